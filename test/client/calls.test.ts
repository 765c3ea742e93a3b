import { describe, expect, test } from 'bun:test'
import { Client, type ClientOptions, NoResponseError, ServiceError } from '../../src/client/index.ts'
import { Client as NodeClient } from '../../src/client/node.ts'
import clientPackage from '../../src/client/package.json'
import { refuse, serveReports as serve } from '../support/report-service.ts'

/** The calls of the client library that wait for a response (docs/client.md#calls). */

const accept = () => Response.json({ data: { ok: true }, error: null })
const newClient = (url: string, options: ClientOptions = {}) => new Client({ url, key: 'svc_ws_x', ...options })
const createAgent = (client: Client) =>
  client.request('POST', '/api/v1/agents', { body: { name: 'a' }, idempotencyKey: 'i' })

test.each([
  ['429', refuse(429, 'RATE_LIMITED', { 'retry-after': '0' })],
  ['500', refuse(500, 'INTERNAL')],
  ['503', refuse(503, 'UNAVAILABLE', { 'retry-after': '0' })],
  ['a 409 with Retry-After', refuse(409, 'CONFLICT', { 'retry-after': '0' })],
  ["a proxy's 502", () => new Response('<p>', { status: 502 })],
  ["a proxy's 502 in JSON", () => Response.json({ error: 'bad gateway' }, { status: 502 })],
  ['a body that is not JSON', () => new Response('<p>')],
  ['a body without data', () => Response.json(null)],
])('retries %s with the same bytes', async (_, failure) => {
  const { url, received } = serve(failure, failure, accept)
  let retries = 0
  const client = newClient(url, { onRetry: () => retries++ })
  expect(await createAgent(client)).toMatchObject({ ok: true })
  const seen = received.map(({ method, headers, text }) =>
    [method, headers.get('authorization'), headers.get('idempotency-key'), text].join(' '),
  )
  expect([retries, seen]).toEqual([2, Array(3).fill('POST Bearer svc_ws_x i {"name":"a"}')])
})

test.each([
  ['400', refuse(400, 'VALIDATION_ERROR')],
  ['401', refuse(401, 'UNAUTHENTICATED')],
  ['409', refuse(409, 'CONFLICT')],
])('does not retry %s', async (status, refusal) => {
  const { url, received } = serve(refusal)
  const error = await createAgent(newClient(url)).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ServiceError)
  expect(error).toMatchObject({
    status: Number(status),
    detail: 'why',
    reason: undefined,
    problems: [],
    retryAfterMs: undefined,
  })
  expect(received).toHaveLength(1)
})

test('an error tells its reason, its place and all mistakes', async () => {
  const problems = [{ param: 'name', message: 'required' }]
  const about = { reason: 'name_taken', param: 'name', problems }
  const { url } = serve(() =>
    Response.json({ data: null, error: { code: 'X', message: 'm', ...about } }, { status: 400 }),
  )
  const error = await createAgent(newClient(url)).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'X', detail: 'm', message: 'X: m', ...about })
})

test('repeats a call as often as the client says, or the call, with the last error as the cause', async () => {
  const { url, received } = serve(refuse(503, 'UNAVAILABLE', { 'retry-after': '0', 'x-request-id': 'r1' }))
  const client = newClient(url, { maxRetries: 0 })
  const error = await createAgent(client).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(NoResponseError)
  expect(error).toMatchObject({ requestId: 'r1', cause: { status: 503, code: 'UNAVAILABLE', retryAfterMs: 0 } })
  expect(received).toHaveLength(1)
  await expect(client.agents.get('a', { maxRetries: 2 })).rejects.toBeInstanceOf(NoResponseError)
  expect(received).toHaveLength(4)
})

test('ends an attempt after the time-out of the client, or of the call', async () => {
  const { url } = serve(() => new Promise(() => {}))
  let retries = 0
  const client = newClient(url, { maxRetries: 1, timeoutMs: 20, onRetry: () => retries++ })
  await expect(client.runs.get('a')).rejects.toThrow('the service did not respond in time')
  expect(retries).toBe(1)
  const options = { timeoutMs: 20, maxRetries: 0 }
  await expect(newClient(url).runs.list({}, options)).rejects.toBeInstanceOf(NoResponseError)
  await expect(newClient(url).query('select 1', {}, options)).rejects.toBeInstanceOf(NoResponseError)
  await expect(newClient(url).agents.invoke('a', {}, options)).rejects.toBeInstanceOf(NoResponseError)
})

test('an error has the id of the request', async () => {
  const { url } = serve(refuse(404, 'NOT_FOUND', { 'x-request-id': '01ARZ3NDEKTSV4RRFFQ69G5FAV' }))
  const expected = { status: 404, code: 'NOT_FOUND', requestId: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }
  await expect(newClient(url).runs.get('a')).rejects.toMatchObject(expected)
})

test('names itself to the service where the platform permits it', async () => {
  const { url, received } = serve(accept)
  await new NodeClient({ url, key: 'k', flushAtExit: false }).runs.get('a')
  expect(received[0]!.headers.get('user-agent')).toBe(`agent-run-service-js/${clientPackage.version}`)
})

describe('a list', () => {
  const paged = () =>
    serve(({ query }) => {
      const from = Number(query.get('cursor') ?? 0)
      const items = [from, from + 1].map((n) => ({ run_id: `${query.get('tag')}${n}` }))
      return Response.json({ data: { items, next_cursor: from === 4 ? null : String(from + 2) }, error: null })
    })
  const ids = (items: readonly { run_id: string }[]) => items.map(({ run_id }) => run_id)

  test('is read page by page', async () => {
    const { url, received } = paged()
    const page = await newClient(url).runs.list({ tag: 'r' })
    expect([ids(page.items), page.hasMore, page.nextCursor, received.length]).toEqual([['r0', 'r1'], true, '2', 1])
    const next = await page.nextPage()
    const last = await next?.nextPage()
    expect(ids(last!.items)).toEqual(['r4', 'r5'])
    expect([last!.hasMore, await last!.nextPage()]).toEqual([false, null])
    expect(ids(await Array.fromAsync(next!))).toEqual(['r2', 'r3', 'r4', 'r5'])
  })

  test('is an iterable of everything', async () => {
    const { url, received } = paged()
    expect(ids(await Array.fromAsync(newClient(url).runs.list({ tag: 'r' })))).toHaveLength(6)
    expect(received).toHaveLength(3)
  })

  test('throws what its first call throws', async () => {
    const { url } = serve(refuse(401, 'UNAUTHENTICATED'))
    await expect(Array.fromAsync(newClient(url).runs.list())).rejects.toMatchObject({ status: 401 })
    await expect(newClient(url).runs.list()).rejects.toMatchObject({ status: 401 })
  })
})

test('does not follow redirects, so that the key is sent to no other server', async () => {
  const other = serve(accept)
  const { url } = serve(() => Response.redirect(`${other.url}/api/v1/agents`, 307))
  await expect(createAgent(newClient(url))).rejects.toMatchObject({ status: 307 })
  expect(other.received).toEqual([])
})
