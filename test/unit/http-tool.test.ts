import { describe, expect, test } from 'bun:test'
import { mint } from '../../src/base/ids.ts'
import { httpTool } from '../../src/hosted/tools/http-tool.ts'
import type { ToolOutcome } from '../../src/hosted/tools/tool.ts'
import { parseEgressAllow } from '../../src/outbound/egress/allow-list.ts'
import { createEgress } from '../../src/outbound/egress/egress.ts'
import { SecretStore } from '../../src/tenants/secrets/store.ts'
import { createVault } from '../../src/tenants/secrets/vault.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** HTTP tools (docs/hosted-agents.md) against a real server, with real secrets and the real egress guard. */

const SECRET = 'tok/en+12345 "quoted"'
const { sql } = await freshDatabase()
const workspaceId = mint.uuid()
await sql`insert into workspaces (workspace_id, name, created_at, updated_at) values (${workspaceId}, 'w', now(), now())`
const vault = createVault({ key: undefined, dataDir: await temporaryDirectory() })
const secrets = new SecretStore({ sql, clock: { now: Date.now }, vault })
await secrets.put({ workspaceId } as never, 'TOKEN', { value: SECRET }, undefined)
const egress = createEgress({ allow: parseEgressAllow('127.0.0.1'), timeoutMs: 1_000 })

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: string
}

/** Answers with what the test sets, and records the requests. */
const asked: Seen[] = []
let answer: (seen: Seen) => Response | Promise<Response> = () => new Response()
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const seen = {
      method: request.method,
      url: request.url.slice(request.url.indexOf('/', 8)),
      headers: request.headers,
      body: await request.text(),
    }
    asked.push(seen)
    return answer(seen)
  },
})
atEnd(() => server.stop(true))
const base = `http://127.0.0.1:${server.port}`

interface Call {
  readonly input?: Record<string, unknown>
  readonly url?: string
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

function toolOf({ url = `${base}/tool`, method = 'POST', headers }: Call) {
  const definition = {
    type: 'http',
    name: 'look_up',
    description: 'Looks up.',
    parameters: { type: 'object' },
  } as const
  return httpTool(
    { ...definition, method, url, ...(headers === undefined ? {} : { headers }) },
    { egress, secrets, workspaceId },
  )
}

function call(what: Call = {}): Promise<ToolOutcome> {
  const { input = {}, signal = new AbortController().signal } = what
  return toolOf(what).call(input, { idempotencyKey: 'call-1', signal })
}

/** The outcome of a call that gets this answer. */
function of(body: BodyInit | null, init: ResponseInit | string = {}): Promise<ToolOutcome> {
  answer = () => new Response(body, typeof init === 'string' ? { headers: { 'content-type': init } } : init)
  return call({ headers: { authorization: 'Bearer {{secret:TOKEN}}' } })
}

const last = () => asked.at(-1) as Seen

describe('a call', () => {
  test('exposes its definition to the agent loop', () => {
    const tool = toolOf({})
    expect(tool).toMatchObject({
      name: 'look_up',
      description: 'Looks up.',
      requiresApproval: false,
      isRepeatable: true,
    })
    expect(tool.parameters).toEqual({ type: 'object' })
  })

  test.each(['POST', 'PUT', 'PATCH'] as const)('a %s call sends the arguments as JSON', async (method) => {
    const input = { city: 'Köln', n: 1.5, nested: { list: [1, null, 'x'] }, none: null }
    await call({ method, input, url: `${base}/tool?v=1` })
    expect(last()).toMatchObject({ method, url: '/tool?v=1', body: JSON.stringify(input) })
    expect(last().headers.get('content-type')).toBe('application/json')
  })

  test.each(['GET', 'DELETE'] as const)(
    'a %s call sends the arguments in the query string: text unchanged, the rest as JSON',
    async (method) => {
      const input = {
        city: 'Köln & more',
        n: 1.5,
        flag: false,
        list: [1, 'x'],
        object: { a: 1 },
        none: null,
        empty: '',
      }
      await call({ method, input, url: `${base}/tool?v=1#part` })
      const url = new URL(last().url, base)
      expect(last().method).toBe(method)
      expect(last().body).toBe('')
      expect(last().headers.has('content-type')).toBe(false)
      expect(url.pathname).toBe('/tool')
      expect([...url.searchParams]).toEqual([
        ['v', '1'],
        ['city', 'Köln & more'],
        ['n', '1.5'],
        ['flag', 'false'],
        ['list', '[1,"x"]'],
        ['object', '{"a":1}'],
        ['empty', ''],
      ])
    },
  )

  test('arguments cannot override the query string of the URL', async () => {
    const before = asked.length
    const outcome = await call({ method: 'GET', url: `${base}/tool?account=mine`, input: { account: 'theirs' } })
    expect(outcome).toEqual({ ok: false, error: "argument account: the tool's address sets it already" })
    expect(asked.length).toBe(before)
  })

  test('keeps no state between calls', async () => {
    const tool = toolOf({ method: 'GET' })
    const signal = new AbortController().signal
    await tool.call({ a: '1' }, { idempotencyKey: 'k1', signal })
    await tool.call({ b: '2' }, { idempotencyKey: 'k2', signal })
    expect(last().url).toBe('/tool?b=2')
    expect(last().headers.get('idempotency-key')).toBe('k2')
  })

  test('sends the headers of the definition with secrets filled in; Idempotency-Key and framing headers are its own', async () => {
    await call({
      input: { a: 1 },
      headers: {
        Authorization: 'Bearer {{secret:TOKEN}}',
        'User-Agent': 'mine',
        'Content-Type': 'application/vnd.api+json',
        'IDEMPOTENCY-KEY': 'forged',
        Host: 'evil.test',
        'Content-Length': '0',
        'Transfer-Encoding': 'chunked',
        Connection: 'close, authorization',
      },
    })
    const headers = Object.fromEntries(last().headers)
    expect(headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      'user-agent': 'mine',
      'content-type': 'application/vnd.api+json',
      'idempotency-key': 'call-1',
      host: `127.0.0.1:${server.port}`,
      'content-length': '7',
      connection: 'keep-alive',
    })
    expect(headers['transfer-encoding']).toBeUndefined()
  })

  test('sends default User-Agent and Accept headers unless the definition sets them', async () => {
    await call()
    expect(last().headers.get('user-agent')).toBe('agent-run-service')
    expect(last().headers.get('accept')).toStartWith('application/json')
  })

  test('is not sent when a secret it needs is missing', async () => {
    const before = asked.length
    const outcome = await call({ headers: { authorization: '{{secret:OTHER}}' } })
    expect(outcome).toEqual({ ok: false, error: 'secret OTHER does not exist: PUT /api/v1/secrets/OTHER' })
    expect(asked.length).toBe(before)
  })
})

describe('an answer', () => {
  test.each([
    ['application/json', '{"a":[1,{"b":null}]}', { a: [1, { b: null }] }],
    ['application/problem+json; charset=utf-8', '"text"', 'text'],
    ['APPLICATION/JSON', 'null', null],
    ['application/json', 'no JSON', 'no JSON'],
    ['text/html; charset=utf-8', '<p>hé</p>', '<p>hé</p>'],
    ['text/plain', '{"a":1}', '{"a":1}'],
    ['application/xml', '<a/>', '<a/>'],
    ['application/x-ndjson', '{}\n{}', '{}\n{}'],
    ['image/svg+xml', '<svg/>', '[a body of type image/svg+xml and 6 bytes, which is not shown]'],
    ['image/png', '\x89PNG', '[a body of type image/png and 5 bytes, which is not shown]'],
    ['text/plain', 'a\0b', '[a binary body of 3 bytes, which is not shown]'],
    ['application/json', '', null],
  ])('of type %s: %p', async (type, body, output) => {
    expect(await of(body, type)).toEqual({ ok: true, output })
  })

  test('without a content type is text if it can be; character sets are decoded, unknown ones guessed', async () => {
    // Bun sends application/octet-stream here.
    expect(await of(new Uint8Array([104, 105]))).toEqual({ ok: true, output: 'hi' })
    const binary = '[a body of type application/octet-stream and 2 bytes, which is not shown]'
    expect(await of(new Uint8Array([104, 255]))).toEqual({ ok: true, output: binary })
    expect(await of(new Uint8Array([0xe9]), 'text/plain; charset=ISO-8859-1')).toEqual({ ok: true, output: 'é' })
    expect(await of('é', 'text/plain; charset="nonsense"')).toEqual({ ok: true, output: 'é' })
  })

  test('without a body is null', async () => {
    expect(await of(null, { status: 204 })).toEqual({ ok: true, output: null })
  })

  test.each([400, 404, 409, 429, 500, 503])("of status %d is a failure with the server's message", async (status) => {
    const outcome = await of('{"error": "no such city"}', { status, headers: { 'content-type': 'application/json' } })
    expect(outcome).toEqual({ ok: false, error: `HTTP ${status}: {"error":"no such city"}` })
  })

  test('of a failure is truncated after its beginning, and may be empty', async () => {
    const outcome = await of('x'.repeat(10_000), { status: 500 })
    expect(outcome).toEqual({ ok: false, error: `HTTP 500: ${'x'.repeat(2_000)}… [cut: 10000 characters in all]` })
    expect(await of(null, { status: 502, statusText: 'Bad Gateway' })).toEqual({
      ok: false,
      error: 'HTTP 502: Bad Gateway',
    })
  })

  test('that is long is truncated and marked; one beyond the limit is rejected', async () => {
    const { output } = (await of('y'.repeat(300_000), 'text/plain')) as { output: string }
    expect(output).toBe(`${'y'.repeat(256 * 1024)}… [cut: 300000 characters in all]`)
    const json = (await of(JSON.stringify({ text: 'z'.repeat(300_000) }), 'application/json')) as { output: string }
    expect(json.output).toStartWith('{"text":"zzz')
    expect(json.output).toEndWith('[cut: 300011 characters in all]')
    expect(await of('x'.repeat(1024 * 1024 + 1))).toEqual({
      ok: false,
      error: 'the answer of 127.0.0.1 is larger than 1048576 bytes',
    })
  })

  test('that is nested too deeply for JSON is passed on as text', async () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    const { output } = (await of(deep, 'application/json')) as { output: string }
    expect(output).toStartWith('[[[[')
    const fine = '['.repeat(90) + ']'.repeat(90)
    expect(JSON.stringify(((await of(fine, 'application/json')) as { output: unknown }).output)).toBe(fine)
  })
})

describe('redacts a secret that is sent back', () => {
  const echoes: [string, BodyInit, ResponseInit][] = [
    ['as text', `you said ${SECRET}!`, {}],
    [
      'as JSON',
      JSON.stringify({ [SECRET]: [`Bearer ${SECRET}`] }),
      { headers: { 'content-type': 'application/json' } },
    ],
    [
      'as JSON with escapes',
      `{"a": "tok\\/en\\u002b12345 \\u0022quoted\\u0022"}`,
      { headers: { 'content-type': 'application/json' } },
    ],
    [
      'as JSON within JSON',
      JSON.stringify(JSON.stringify({ a: SECRET })),
      { headers: { 'content-type': 'application/json' } },
    ],
    ['in base64', Buffer.from(`user:${SECRET}`).toString('base64'), {}],
    ['in a failure', SECRET, { status: 401 }],
    [
      'in a failure as JSON',
      JSON.stringify({ key: SECRET }),
      { status: 401, headers: { 'content-type': 'application/json' } },
    ],
    ['in the type of a body', 'x', { headers: { 'content-type': `image/${SECRET}` } }],
    ['at the point of truncation', 'x'.repeat(256 * 1024 - 5) + SECRET.repeat(9), {}],
    ['in a redirect', '', { status: 302, headers: { location: `/?t=${encodeURIComponent(SECRET)}` } }],
  ]
  test.each(echoes)('%s', async (_, body, init) => {
    const outcome = JSON.stringify(await of(body, init))
    expect(last().headers.get('authorization')).toBe(`Bearer ${SECRET}`)
    expect(outcome).not.toMatch(/tok|en\+1|12345|quoted|[A-Za-wyz0-9+/]{30}/)
    expect(outcome).toContain('•••')
  })
})

describe('an unreachable tool', () => {
  test.each([
    [
      'http://169.254.169.254/latest/meta-data',
      'is not a public address, and EGRESS_ALLOW does not list it for port 80',
    ],
    ['http://2852039166/', '169.254.169.254 is not a public address'],
    ['http://[::1]:1/', '::1 is not a public address'],
    ['http://127.0.0.1:1/', '127.0.0.1 refuses connections'],
  ])('fails with the reason: %s', async (url, reason) => {
    const outcome = await call({ url })
    expect(outcome.ok).toBe(false)
    expect((outcome as { error: string }).error).toContain(reason)
  })

  test('fails when the server does not answer in time', async () => {
    answer = () => new Promise(() => {})
    expect(await call()).toEqual({ ok: false, error: '127.0.0.1 did not answer within 1 s' })
  })
})

test('throws only for an abort, and at once', async () => {
  answer = () => new Promise(() => {})
  const ending = new AbortController()
  const before = asked.length
  const calling = call({ signal: ending.signal }).catch((error: unknown) => error)
  await eventually(() => asked.length > before)
  const reason = new Error('cancelled')
  ending.abort(reason)
  expect(await calling).toBe(reason)
  expect(await call({ signal: ending.signal }).catch((error: unknown) => error)).toBe(reason)
  expect(asked.length).toBe(before + 1)
})
