import { beforeAll, describe, expect, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'
import { callLegacy, callModern, postMcp } from '../support/mcp-client.ts'
import { startTestService } from '../support/service.ts'

/** The MCP server (docs/mcp.md): what its tools answer, to whom, and how it refuses. */

const ERAS = { '2025-11-25': callLegacy, '2026-07-28': callModern }

let rig: HostedRig
let url: string
let ours: Tenant
let theirs: Tenant
let reporter: Reporter
let runId: string
beforeAll(async () => {
  rig = await startHostedRig()
  url = rig.service.url
  ;[ours, theirs] = [await newTenant(rig.service), await newTenant(rig.service)]
  reporter = await newReporter(ours.api)
  runId = await reporter.start({ input: { amount: 12345678901234567890n.toString() }, session_id: 'a session' })
})

const tool = (key: string, name: string, input: object, call = callModern) =>
  call(url, key, 'tools/call', { name, arguments: input })
const dataOf = async (...call: Parameters<typeof tool>) => {
  const { text, message } = await tool(...call)
  if (message.result?.structuredContent === undefined) throw new Error(text)
  return message.result.structuredContent
}
const problemOf = async (...call: Parameters<typeof tool>) => {
  const { message } = await tool(...call)
  expect(message.result.isError).toBe(true)
  return message.result.content[0].text as string
}

describe.each(Object.entries(ERAS))('a client of revision %s', (_revision, call) => {
  test('queries what was just reported, with all digits of numbers', async () => {
    const { last_seq } = await reporter.events(runId, [{ type: 'paid', payload: { n: 1 } }])
    const query = {
      sql: `select type, 12345678901234567890 as big, {n:UInt8} as n from events where run_id = '${runId}' limit 1`,
      params: { n: 7 },
      wait_for: last_seq,
    }
    const { text, message } = await tool(ours.workspaceKey, 'query', query, call)
    expect(message.result.structuredContent).toMatchObject({
      columns: [{ name: 'type' }, { name: 'big', type: 'UInt64' }, { name: 'n' }],
      rows: [{ type: 'paid', n: 7 }],
      truncated: false,
    })
    expect(message.result.structuredContent.complete_through).toBeString()
    expect(text.match(/12345678901234567890/g)?.length).toBe(2)
    expect(JSON.parse(message.result.content[0].text)).toEqual(message.result.structuredContent)
  })

  test('reads runs, tables and prompts', async () => {
    const key = ours.workspaceKey
    const found = await dataOf(key, 'search_runs', { session_id: 'a session', status: 'running' }, call)
    expect(found.runs.map(({ run_id }: { run_id: string }) => run_id)).toEqual([runId])
    expect((await dataOf(key, 'get_run', { run_id: runId }, call)).run).toMatchObject({ run_id: runId, input: {} })
    expect((await dataOf(key, 'describe_tables', { table: 'gaps' }, call)).tables[0].columns.length).toBe(4)
    const run = await call(url, key, 'resources/read', { uri: `run://${runId}` })
    expect(JSON.parse(run.message.result.contents[0].text)).toMatchObject({ run_id: runId })
    const table = await call(url, key, 'resources/read', { uri: 'schema://gaps' })
    expect(JSON.parse(table.message.result.contents[0].text)).toMatchObject({ name: 'gaps' })
    const guide = await call(url, key, 'resources/read', { uri: 'guide://mcp.md' })
    expect(guide.message.result.contents[0].text).toStartWith('# MCP')
    const prompt = await call(url, key, 'prompts/get', { name: 'slowest-tools', arguments: { days: '3' } })
    expect(prompt.message.result.messages[0].content.text).toContain('{"days":"3"}')
  })
})

describe('query', () => {
  test('answers at most 200 rows and 64 KiB', async () => {
    const many = await dataOf(ours.workspaceKey, 'query', { sql: 'select number from numbers(300)' })
    expect([many.rows.length, many.truncated]).toEqual([200, true])
    const wide = await dataOf(ours.workspaceKey, 'query', { sql: "select repeat('é', 1000) as s from numbers(100)" })
    expect(wide.rows.length).toBeGreaterThan(25)
    expect(Buffer.byteLength(JSON.stringify(wide.rows))).toBeLessThanOrEqual(64 * 1024)
    expect(wide.truncated).toBe(true)
    const huge = await dataOf(ours.workspaceKey, 'query', { sql: "select repeat('a', 100000) as s" })
    expect([huge.rows, huge.truncated]).toEqual([[], true])
  })
})

describe('what a model did wrong is a result that names the place', () => {
  test.each([
    ['query', { sql: 'select x' }, 'VALIDATION_ERROR: sql: Unknown expression identifier'],
    ['query', { sqll: 'select 1' }, 'VALIDATION_ERROR: sqll: unknown field; did you mean "sql"?'],
    ['query', { sql: 'drop table runs' }, 'VALIDATION_ERROR: sql: '],
    ['query', { sql: 'select 1', params: { n: {} } }, 'VALIDATION_ERROR: params.n: '],
    ['describe_tables', { table: 'nope' }, 'VALIDATION_ERROR: table: expected one of events, '],
    ['search_runs', { limit: 51 }, 'VALIDATION_ERROR: limit: expected an integer from 1 to 50; got 51'],
    ['search_runs', { cursor: 'x' }, 'VALIDATION_ERROR: '],
    ['get_run', {}, 'VALIDATION_ERROR: run_id: required'],
    ['get_run', { run_id: crypto.randomUUID() }, 'NOT_FOUND: run does not exist'],
    ['decide', {}, 'VALIDATION_ERROR: approval_id: required, or input_request_id'],
    ['decide', { approval_id: crypto.randomUUID() }, 'VALIDATION_ERROR: approve: required with approval_id'],
    ['decide', { input_request_id: crypto.randomUUID(), answer: 'a', comment: 'b' }, 'VALIDATION_ERROR: comment: '],
    ['decide', { approval_id: crypto.randomUUID(), approve: true }, 'NOT_FOUND: approval does not exist'],
    ['list_waiting', { limit: 0 }, 'VALIDATION_ERROR: limit: '],
  ])('%s %j', async (name, input, problem) => {
    expect(await problemOf(ours.workspaceKey, name, input)).toStartWith(problem)
  })
})

describe('what a client did wrong is an error of the protocol', () => {
  test.each([
    ['tools/call', { name: 'nope', arguments: {} }, -32602, 'params.name: tool does not exist: nope'],
    ['tools/call', { name: 'constructor', arguments: {} }, -32602, 'params.name: tool does not exist: constructor'],
    ['tools/call', { name: 'query', arguments: [] }, -32602, 'params.arguments: expected an object'],
    ['tools/list', { cursor: 'x' }, -32602, 'cursor: '],
    ['prompts/get', { name: 'nope' }, -32602, 'params.name: prompt does not exist: nope'],
    [
      'prompts/get',
      { name: 'slowest-tools', arguments: { day: '1' } },
      -32602,
      'params.arguments["day"]: unknown argument',
    ],
    ['resources/read', { uri: 'schema://nope' }, -32602, 'resource does not exist: schema://nope'],
    ['resources/read', { uri: `run://${crypto.randomUUID()}` }, -32602, 'run does not exist'],
  ] as const)('%s %j', async (method, params, code, problem) => {
    const { status, message } = await callModern(url, ours.workspaceKey, method, params)
    expect([status, message.error.code]).toEqual([200, code])
    expect(message.error.message).toContain(problem)
  })

  test('unknown methods, broken JSON, other types, and messages that are none', async () => {
    const key = ours.workspaceKey
    const unknown = await callModern(url, key, 'nope')
    expect([unknown.status, unknown.message.error.code]).toEqual([404, -32601])
    expect((await callLegacy(url, key, 'nope')).message.error.code).toBe(-32601)
    expect((await callModern(url, key, 'subscriptions/listen')).message.error.code).toBe(-32601)
    const broken = await postMcp(url, key, '{"jsonrpc":')
    expect([broken.status, broken.message.error.code]).toEqual([400, -32700])
    const latin = new Uint8Array([
      ...Buffer.from('{"jsonrpc":"2.0","id":"'),
      0xe9,
      ...Buffer.from('","method":"ping"}'),
    ])
    const coded = await postMcp(url, key, latin)
    expect([coded.status, coded.message.error.code]).toEqual([400, -32700])
    const typed = await postMcp(url, key, '{}', { headers: { 'content-type': 'text/plain' } })
    expect([typed.status, typed.message.error.code]).toEqual([415, -32600])
    for (const body of ['{}', '1', 'null', '[]', '[1]', '{"jsonrpc":"2.0","id":{},"method":"ping"}']) {
      const { status, message } = await postMcp(url, key, body)
      expect([body, status]).toEqual([body, 400])
      expect(message.error.code).toBeOneOf([-32600, -32700])
    }
    const deep = await postMcp(url, key, `${'['.repeat(500)}${']'.repeat(500)}`)
    expect([deep.status, deep.message.error.code]).toEqual([400, -32700])
  })

  test('a message is small beside its arguments', async () => {
    const large = { pad: 'a'.repeat(70_000) }
    const { status, message } = await callModern(url, ours.workspaceKey, 'tools/list', large)
    expect([status, message.error.code]).toEqual([400, -32600])
    expect(await problemOf(ours.workspaceKey, 'query', { sql: 'select 1', ...large })).toContain('pad: unknown field')
  })

  test('a batch is bounded, and its requests have different ids', async () => {
    const key = ours.workspaceKey
    const one = (id: number, sql: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'query', arguments: { sql } },
    })
    const both = await postMcp(url, key, JSON.stringify([one(1, 'select 1 as a'), one(2, 'select 2 as a')]))
    const values = both.message.map((each: typeof both.message) => [each.id, each.result.structuredContent.rows[0].a])
    expect(values.sort()).toEqual([
      [1, 1],
      [2, 2],
    ])
    const many = Array.from({ length: 21 }, (_, id) => one(id, 'select 1'))
    for (const batch of [many, [one(1, 'select 1'), one(1, 'select 2')]]) {
      const { status, message } = await postMcp(url, key, JSON.stringify(batch))
      expect([status, message.error.code]).toEqual([400, -32600])
    }
  })
})

describe('keys', () => {
  test('a missing or wrong key is 401 with WWW-Authenticate, in the shape of the protocol', async () => {
    for (const key of [null, 'nope', `${ours.workspaceKey}x`]) {
      const { status, headers, message } = await callModern(url, key, 'tools/list')
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
      expect(message).toMatchObject({ jsonrpc: '2.0', error: { data: { code: 'UNAUTHENTICATED' } } })
    }
  })

  test('sessions are not offered', async () => {
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await fetch(`${url}/mcp`, { method })
      expect([status, headers.get('allow')]).toEqual([405, 'POST'])
    }
  })

  test('an agent key sees its own agent only, and neither SQL nor its tables', async () => {
    const own = reporter.agentKey
    const other = await newAgent(ours.api)
    const { message } = await callModern(url, own, 'tools/list')
    const names = message.result.tools.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['search_runs', 'get_run', 'list_waiting', 'decide'])
    expect((await callModern(url, own, 'prompts/list')).message.result.prompts).toEqual([])
    const { resources } = (await callModern(url, own, 'resources/list')).message.result
    expect(resources.filter(({ uri }: { uri: string }) => !uri.startsWith('guide://'))).toEqual([])
    for (const [name, input] of [
      ['query', { sql: 'select 1' }],
      ['describe_tables', {}],
    ] as const)
      expect(await problemOf(own, name, input)).toStartWith('FORBIDDEN: this tool takes a workspace key')
    const table = await callModern(url, own, 'resources/read', { uri: 'schema://gaps' })
    expect(table.message.error.data).toEqual({ code: 'FORBIDDEN' })
    expect((await dataOf(own, 'get_run', { run_id: runId })).run.run_id).toBe(runId)
    expect(await problemOf(other.agentKey, 'get_run', { run_id: runId })).toStartWith('FORBIDDEN')
    const read = await callModern(url, other.agentKey, 'resources/read', { uri: `run://${runId}` })
    expect([read.status, read.message.error.code, read.message.error.data]).toEqual([
      200,
      -32011,
      { code: 'FORBIDDEN' },
    ])
    expect((await dataOf(other.agentKey, 'search_runs', {})).runs).toEqual([])
    expect(await problemOf(other.agentKey, 'search_runs', { agent_id: reporter.agentId })).toStartWith('FORBIDDEN')
  })

  test('nothing of a workspace reaches another', async () => {
    const key = theirs.workspaceKey
    expect((await dataOf(key, 'search_runs', {})).runs).toEqual([])
    expect(await problemOf(key, 'get_run', { run_id: runId })).toBe('NOT_FOUND: run does not exist')
    const read = await callModern(url, key, 'resources/read', { uri: `run://${runId}` })
    expect(read.message.error.data).toEqual({ code: 'NOT_FOUND', uri: `run://${runId}` })
    expect((await dataOf(key, 'query', { sql: 'select count() as n from runs' })).rows).toEqual([{ n: 0 }])
  })

  test('calls of many keys at once get their own answers', async () => {
    const tenants = await Promise.all(Array.from({ length: 4 }, () => newTenant(rig.service)))
    const starts = tenants.map(async ({ api, workspaceKey }) => ({
      key: workspaceKey,
      run: await (await newReporter(api)).start(),
    }))
    const each = await Promise.all(starts)
    const calls = each.flatMap(({ key, run }) =>
      [callLegacy, callModern].flatMap((call) =>
        Array.from({ length: 8 }, async () => {
          const { runs } = await dataOf(key, 'search_runs', {}, call)
          expect(runs.map(({ run_id }: { run_id: string }) => run_id)).toEqual([run])
        }),
      ),
    )
    await Promise.all(calls)
  })

  test('a revoked key ends its open calls', async () => {
    const { data: key } = await ours.api('POST', '/api/v1/keys', { name: 'soon revoked' })
    const slow = tool(key.key, 'query', {
      sql: 'select count() from numbers(10000000000000) where sipHash64(number) = 1',
    })
    const running = async () => {
      const { data } = await ours.api('GET', `/api/v1/keys`)
      return data.items.some(({ key_id }: { key_id: string }) => key_id === key.key_id)
    }
    await eventually(running)
    await ours.api('POST', `/api/v1/keys/${key.key_id}/revoke`, {})
    const { status, message } = await slow
    expect(status).toBe(401)
    expect(message.error.data.code).toBe('UNAUTHENTICATED')
  })
})

describe('budgets', () => {
  test('are those of the key, answered with HTTP 429 in the shape of the protocol', async () => {
    const limited = await startTestService({ RATE_LIMIT_QUERIES_PER_MINUTE: '2', RATE_LIMIT_READS_PER_MINUTE: '10' })
    const send = (method: string, params: object = {}) =>
      callModern(limited.url, limited.workspaceKey, method, params).then(({ status, headers, message }) => {
        expect([method, status === 429]).toEqual([method, message.error?.data?.code === 'RATE_LIMITED'])
        if (status === 429) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
        return status
      })
    const query = { name: 'query', arguments: { sql: 'select 1' } }
    // A call of query costs one of both budgets. The loops end when a budget is used up, however fast it refills.
    const statuses: number[] = []
    while (statuses.at(-1) !== 429) statuses.push(await send('tools/call', query))
    expect(statuses.length).toBeGreaterThan(2)
    expect(await send('tools/list')).toBe(200)
    let status = 200
    for (let i = 0; i < 30 && status !== 429; i++) status = await send('tools/list')
    expect(status).toBe(429)
    const tooLarge = await postMcp(limited.url, limited.workspaceKey, ' '.repeat(10 * 1024 * 1024 + 1))
    expect([tooLarge.status, tooLarge.message.error.data.code]).toEqual([413, 'PAYLOAD_TOO_LARGE'])
  })
})

describe('pages', () => {
  test('of another origin are refused', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://localhost:1', `${url}.evil.example`]) {
      const { status, message } = await callModern(url, ours.workspaceKey, 'tools/list', {}, { headers: { origin } })
      expect([origin, status]).toEqual([origin, 403])
      expect(message.error.data).toEqual({ code: 'FORBIDDEN' })
      for (const method of ['GET', 'DELETE'])
        expect((await fetch(`${url}/mcp`, { method, headers: { origin } })).status).toBe(403)
    }
    const own = { headers: { origin: new URL(url).origin } }
    expect((await callModern(url, ours.workspaceKey, 'tools/list', {}, own)).status).toBe(200)
  })
})

describe('decisions', () => {
  test('bind the exact arguments, once, and are recorded under the key', async () => {
    const turns = [callTurn(['pay', { n: 2.5 }]), { text: 'done' }]
    const agent = await rig.agent(ours, turns, { tools: [rig.tools.tool('pay', { requires_approval: true })] })
    const { data } = await agent.invoke({})
    const { waiting } = await dataOf(ours.workspaceKey, 'list_waiting', {})
    const [{ approval_id, tool: name, input, run_id }] = waiting
    expect([name, input, run_id]).toEqual(['pay', { n: 2.5 }, data.run_id])
    expect((await dataOf(theirs.workspaceKey, 'list_waiting', {})).waiting).toEqual([])
    const decide = (key: string, more: object) => problemOf(key, 'decide', { approval_id, ...more })
    expect(await decide(theirs.workspaceKey, { approve: true })).toBe('NOT_FOUND: approval does not exist')
    expect(await decide(reporter.agentKey, { approve: true })).toStartWith('FORBIDDEN')
    const inexact = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"decide","arguments":{"approval_id":"${approval_id}","approve":true,"edited_input":{"n":12345678901234567890}}}}`
    const refused = await postMcp(url, ours.workspaceKey, inexact)
    expect(refused.message.result.content[0].text).toStartWith('VALIDATION_ERROR: edited_input.n')
    expect(await decide(ours.workspaceKey, { approve: true, edited_input: { n: 'x' } })).toContain('edited_input')
    const edited_input = { n: 1 }
    const decided = await dataOf(ours.workspaceKey, 'decide', { approval_id, approve: true, edited_input })
    expect(decided).toMatchObject({ run_id, output: null })
    await untilStatus(ours, run_id, 'completed')
    expect(rig.tools.of('pay').map(({ input: made }) => made)).toEqual([edited_input])
    expect(await decide(ours.workspaceKey, { approve: false })).toStartWith('CONFLICT: this was already approved at ')
  })
})

describe('the official clients', () => {
  test('of 2026-07-28', async () => {
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${ours.workspaceKey}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
    await useEverything(client)
    await client.close()
  })

  test('of 2025-11-25', async () => {
    const client = new LegacyClient({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${ours.workspaceKey}` } }
    await client.connect(new LegacyTransport(new URL(`${url}/mcp`), { requestInit }))
    await useEverything(client)
    await client.close()
  })

  async function useEverything(client: Pick<Client, 'listTools' | 'listResources' | 'listPrompts'> | LegacyClient) {
    const all = client as LegacyClient
    const { tools } = await all.listTools()
    expect(tools.map(({ name }) => name)).toContain('query')
    expect((await all.listResources()).resources.length).toBeGreaterThan(5)
    expect((await all.listResourceTemplates()).resourceTemplates.length).toBe(2)
    expect((await all.listPrompts()).prompts.length).toBeGreaterThan(10)
    expect((await all.getPrompt({ name: 'slowest-tools' })).messages.length).toBe(1)
    expect((await all.readResource({ uri: `run://${runId}` })).contents.length).toBe(1)
    // The clients check structuredContent against outputSchema.
    for (const [name, input] of [
      ['query', { sql: 'select 1 as one' }],
      ['search_runs', {}],
      ['get_run', { run_id: runId }],
      ['list_waiting', {}],
    ] as const)
      expect((await all.callTool({ name, arguments: input })).structuredContent).toBeDefined()
    expect((await all.callTool({ name: 'query', arguments: { sql: 'x' } })).isError).toBe(true)
  }
})
