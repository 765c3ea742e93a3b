import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type ClickHouseClient, ClickHouseError, type ClickHouseSettings } from '@clickhouse/client'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { newAgent } from '../support/api.ts'
import { runningStatements, untilRunning } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { inParallel } from '../support/in-parallel.ts'
import { OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { clientOf, rowsOf } from './clickhouse-client.ts'
import { attacks, ORACLES } from './query-attacks.ts'
import { failure } from './query-tenants.ts'

/**
 * `/clickhouse/` through ClickHouse's official client and over plain HTTP. Tenant isolation is tested with the same attack
 * list as on the JSON endpoint.
 */

/** Matches queries that run, not those being checked by the guard. */
const OF_ENDPOINT = 'SELECT * FROM (SELECT count() AS of_endpoint %'

let service: TestService
let engine: ColumnarClient
let client: ClickHouseClient
let agentKey: string
let otherWorkspace: string
let otherKey: string
let runId: string

const rows = (query: string, params?: Record<string, unknown>, by = client) => rowsOf(by, query, params)

beforeAll(async () => {
  service = await startTestService({}, { bounds: { queries: { atOnce: 4, rows: 1000 } } })
  engine = createColumnarClient(remoteClickHouse(service.clickhouseUrl))
  client = clientOf(service)
  const { data } = await service.api('POST', '/api/v1/workspaces', { name: 'SECRET' }, { key: OPERATOR_TOKEN })
  otherWorkspace = data.workspace_id
  otherKey = data.key
  ;({ runId, agentKey } = await report(service.workspaceKey, 'ours'))
  await report(data.key, 'SECRET')
})

describe('with the official client', () => {
  test.each(['/clickhouse', '/clickhouse/'])('pings at %s', async (pathname) => {
    const other = clientOf(service, { pathname })
    expect(await other.ping()).toMatchObject({ success: true })
    expect(await other.ping({ select: true })).toMatchObject({ success: true })
    expect(await rows('select 1 as a', {}, other)).toEqual([{ a: 1 }])
  })

  test.each([
    ['JSON', '{"data":[{"n":0,"s":"0"},{"n":1,"s":"1"}],"rows":2}'],
    ['JSONStrings', '{"data":[{"n":"0","s":"0"},{"n":"1","s":"1"}]}'],
    ['JSONCompact', '{"data":[[0,"0"],[1,"1"]]}'],
    ['JSONCompactStrings', '{"data":[["0","0"],["1","1"]]}'],
    ['JSONColumnsWithMetadata', '{"data":{"n":[0,1],"s":["0","1"]}}'],
    ['JSONObjectEachRow', '{"row_1":{"n":0,"s":"0"},"row_2":{"n":1,"s":"1"}}'],
    ['JSONEachRow', '[{"n":0,"s":"0"},{"n":1,"s":"1"}]'],
    ['JSONStringsEachRow', '[{"n":"0","s":"0"},{"n":"1","s":"1"}]'],
    ['JSONCompactEachRow', '[[0,"0"],[1,"1"]]'],
    ['JSONCompactEachRowWithNames', '[["n","s"],[0,"0"],[1,"1"]]'],
    ['JSONCompactEachRowWithNamesAndTypes', '[["n","s"],["UInt64","String"],[0,"0"],[1,"1"]]'],
    ['JSONCompactStringsEachRow', '[["0","0"],["1","1"]]'],
  ] as const)('returns %s, and does not reveal how much was scanned', async (format, expected) => {
    const result = await client.query({ query: 'select number as n, toString(number) as s from numbers(2)', format })
    const answer = await result.json()
    expect(answer).toMatchObject(JSON.parse(expected))
    expect(JSON.stringify(answer)).not.toMatch(/"(rows|bytes)_read":[^0]/)
    expect(result.response_headers['x-clickhouse-summary']).toContain('"read_rows":"0"')
  })

  test('reads our tables by short and qualified names, with times in ClickHouse format', async () => {
    const query = `select events.type as type, payload.word::String as word, occurred_at from default.events where default.events.run_id = {run:UUID}`
    expect(await rows(query, { run: runId })).toEqual([
      { type: 'llm.call', word: 'ours', occurred_at: '2026-01-31 09:30:00.123' },
    ])
    expect(await rows("select count() as n from runs where status = 'running'")).toEqual([{ n: 1 }])
  })

  test('binds query parameters as values', async () => {
    const params = { n: 5, s: "it's\t'x'\n", list: ['a', "b'"], long: 'x'.repeat(50_000) }
    // URLs of more than 16 KiB are rejected.
    const inBody = clientOf(service, { use_multipart_params_auto: true })
    expect(
      await rows(
        'select {n:UInt64} as n, {s:String} as s, {list:Array(String)} as list, length({long:String}) as long',
        params,
        inBody,
      ),
    ).toEqual([{ n: 5, s: params.s, list: params.list, long: 50_000 }])
    expect(await failure(rows('select * from {t:Identifier}', { t: 'system.parts' }))).toMatchObject({ code: '497' })
  })

  test('streams a long result as JSON and CSV', async () => {
    let count = 0
    const json = await client.query({ query: 'select number from numbers(300000)', format: 'JSONEachRow' })
    for await (const chunk of json.stream()) count += chunk.length
    expect(count).toBe(300_000)
    const csv = await client.query({ query: 'select number from numbers(300000)', format: 'CSVWithNames' })
    for await (const chunk of csv.stream()) count += chunk.length
    expect(count).toBe(600_001)
  })

  test('compresses the result on request', async () => {
    const zipped = clientOf(service, { compression: { response: true, request: true } })
    expect(await rows('select number as n from numbers(2)', {}, zipped)).toEqual([{ n: 0 }, { n: 1 }])
    const response = await ask({ query: 'select 1', enable_http_compression: '1' }, { 'accept-encoding': 'gzip' })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(await response.text()).toBe('1\n')
  })

  test.each([
    ['select 1 +', '62', 'SYNTAX_ERROR', 'position'],
    [
      'SELECT number FR',
      '47',
      'UNKNOWN_IDENTIFIER',
      'Unknown expression identifier `number` in scope SELECT number AS FR',
    ],
    ['SELECT typ FROM events', '47', 'UNKNOWN_IDENTIFIER', "in scope SELECT typ FROM events; maybe you meant ['type']"],
    [
      'SELECT * FROM unknown_table',
      '60',
      'UNKNOWN_TABLE',
      "Unknown table expression identifier 'unknown_table' in scope SELECT * FROM unknown_table",
    ],
    [
      "SELECT throwIf(number = 10, 'boom') FROM system.numbers",
      '395',
      'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
      "boom: while executing 'FUNCTION throwIf",
    ],
    [
      'SELECT * FROM system.numbers WHERE number > {n: UInt64} LIMIT 3',
      '456',
      'UNKNOWN_QUERY_PARAMETER',
      '`n` is not set',
    ],
    ["select file('/etc/passwd')", '497', 'ACCESS_DENIED', 'file'],
    ['drop table events', '164', 'READONLY', 'only SELECT'],
    ['select 1 settings max_threads = 1', '164', 'READONLY', 'only reading'],
    ["select toUInt8('x')", '6', 'CANNOT_PARSE_TEXT', 'Cannot parse'],
    ['select length(range(400000000))', '241', 'MEMORY_LIMIT_EXCEEDED', '1 GiB'],
    ['select 1 format Template', '73', 'UNKNOWN_FORMAT', 'Template'],
    ['select 1; select 2', '62', 'SYNTAX_ERROR', 'Multi'],
  ])('%s fails with the code, name and message of ClickHouse', async (query, code, type, message) => {
    const error = (await failure(client.exec({ query }))) as ClickHouseError
    expect(error).toBeInstanceOf(ClickHouseError)
    expect(error).toMatchObject({ code, type })
    expect(error.message).toContain(message)
    expect(String(error)).not.toMatch(/workspace_id|_scope|PREWHERE|test_|__table/)
  })

  test('rejects insert and command like a read-only server', async () => {
    const insert = client.insert({ table: 'events', values: [{ seq: 1 }], format: 'JSONEachRow' })
    expect(await failure(insert)).toMatchObject({ code: '164', type: 'READONLY' })
    for (const query of ['create table x (a Int8) engine = Memory', 'truncate table events', 'optimize table events'])
      expect(await failure(client.command({ query }))).toMatchObject({ code: '164', type: 'READONLY' })
  })

  test('reports a failure in the middle of a stream with its error code', async () => {
    const query = "select throwIf(number = 500000, 'too far') as x from numbers(1000000)"
    // Repeated, because a client that has not read the rest 2 s after the failure, as on a busy machine, learns no reason.
    for (const other of [client, clientOf(service, { compression: { response: true } })])
      await eventually(async () => {
        const result = await other.query({ query, format: 'JSONEachRow' })
        const taken = failure(Array.fromAsync(result.stream()))
        expect(await taken).toMatchObject({ code: '395', message: expect.stringContaining('too far') })
      })
    // A client that reads it as one text gets an error for the truncated response.
    const text = await client.query({ query, format: 'CSV' })
    await expect(text.text()).rejects.toBeInstanceOf(Error)
  })

  test('an abort stops the query and frees its slot', async () => {
    const gone = new AbortController()
    const query = 'select count() as of_endpoint from numbers(100000000000) where sipHash64(number) = 1'
    const slow = [1, 2, 3, 4].map(() => failure(client.query({ query, abort_signal: gone.signal })))
    await untilRunning(engine, OF_ENDPOINT, slow)
    expect(await failure(rows('select 1'))).toMatchObject({ code: '202', type: 'TOO_MANY_SIMULTANEOUS_QUERIES' })
    gone.abort()
    await Promise.all(slow)
    await eventually(async () => expect(await unfinished()).toBe(0))
    expect(await rows('select 1 as a')).toEqual([{ a: 1 }])
  })

  test('accepts output settings and lower limits', async () => {
    const value = async (clickhouse_settings: ClickHouseSettings) => {
      const query = 'select toUInt64(5) as n'
      return (await client.query({ query, format: 'JSONEachRow', clickhouse_settings })).json()
    }
    expect(await value({ output_format_json_quote_64bit_integers: 1 })).toEqual([{ n: '5' }])
    expect(await value({ readonly: '1', cancel_http_readonly_queries_on_client_close: 1 })).toEqual([{ n: 5 }])
    const query = 'select number from numbers(100)'
    const few = await client.query({
      query,
      format: 'JSONEachRow',
      clickhouse_settings: { max_result_rows: '3', result_overflow_mode: 'break' },
    })
    expect(await few.json()).toHaveLength(3)
    const brief = client.query({
      query: 'select sum(sipHash64(number)) from numbers(100000000000)',
      clickhouse_settings: { max_execution_time: 1 },
    })
    expect(await failure(brief)).toMatchObject({ code: '159', type: 'TIMEOUT_EXCEEDED' })
  })

  test('a format that cannot be streamed has the row limit of a JSON result', async () => {
    const text = async (query: string) => (await (await client.exec({ query })).stream.toArray()).join('')
    expect(await text('select 1 as a, 2 as b format Vertical')).toBe('Row 1:\n──────\na: 1\nb: 2\n')
    expect(await text('select number from numbers(1000) format Values')).toEndWith(',(999)')
    expect(await failure(text('select number from numbers(1001) format Values'))).toMatchObject({
      code: '396',
      message: expect.stringContaining('1000 rows'),
    })
  })
})

describe('introspection queries of tools', () => {
  test.each([
    ['SELECT version()', ['version()']],
    ['SELECT version(), timezone()', ['version()', 'timezone()']],
    ['SELECT currentUser() AS user, timezone() AS timezone, version() AS version', ['user', 'timezone', 'version']],
    ['SELECT displayName(), currentDatabase() AS `the db`', ['displayName()', 'the db']],
  ])('%s', async (query, names) => {
    const [row] = await rows(query)
    expect(Object.keys(row)).toEqual(names)
  })

  test.each([
    [
      'SHOW TABLES',
      ['events', 'runs', 'tasks', 'scores', 'pauses', 'agents', 'agent_versions', 'deliveries', 'alert_states', 'gaps'],
    ],
    ["show tables from default like 'r%'", ['runs']],
    ['SHOW DATABASES', ['default', 'system']],
    [
      "select name from system.tables where database = 'default' and name like '%s' order by name",
      ['agent_versions', 'agents', 'alert_states', 'deliveries', 'events', 'gaps', 'pauses', 'runs', 'scores', 'tasks'],
    ],
    ["with 'runs' as t select name from system.tables where name = t", ['runs']],
    ['select name from `system`.databases', ['default', 'system']],
    ["select 'system.tables' as name", ['system.tables']],
    ["SELECT name, value, readonly AS readonly FROM system.settings WHERE name = 'readonly'", ['readonly']],
  ])('%s', async (query, names) => {
    expect((await rows(query)).map(({ name }) => name)).toEqual(names)
  })

  test('lists the columns of tables', async () => {
    const described = await rows('DESCRIBE TABLE default.tasks')
    expect(described.map(({ name, type }) => `${name} ${type}`).slice(0, 2)).toEqual(['task_id UUID', 'run_id UUID'])
    const query = "select name, type from system.columns where table = 'tasks' order by position"
    expect(await rows(query)).toEqual(described.map(({ name, type }) => ({ name, type })))
  })
})

describe('over plain HTTP', () => {
  test.each([
    ['Basic', { authorization: () => `Basic ${btoa(`anyone:${service.workspaceKey}`)}` }],
    ['headers', { 'x-clickhouse-user': () => 'anyone', 'x-clickhouse-key': () => service.workspaceKey }],
    ['Bearer', { authorization: () => `Bearer ${service.workspaceKey}` }],
  ])('accepts the key as %s', async (_what, given) => {
    const headers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value()]))
    const response = await ask({ query: 'select 1' }, headers, false)
    expect([response.status, await response.text()]).toEqual([200, '1\n'])
  })

  test('accepts the key in the URL, and the query in the URL, the body, or both', async () => {
    expect(await text({ query: 'select 1', user: 'x', password: service.workspaceKey }, {}, false)).toBe('1\n')
    expect(await text({}, {}, true, 'select 2')).toBe('2\n')
    expect(await text({ query: 'select' }, {}, true, '3')).toBe('3\n')
    expect(await text({ query: 'select {n:Int8} as n', param_n: '4', default_format: 'JSONCompactEachRow' })).toBe(
      '[4]\n',
    )
    expect(await text({ query: 'select 5 as n format CSVWithNames', default_format: 'JSON' })).toBe('"n"\n5\n')
  })

  test('sets the headers that clients read', async () => {
    const { headers } = await ask({ query: 'select 1', query_id: 'mine', default_format: 'JSONEachRow' })
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/x-ndjson; charset=UTF-8',
      'x-clickhouse-query-id': 'mine',
      'x-clickhouse-format': 'JSONEachRow',
      'x-clickhouse-timezone': 'UTC',
      'x-request-id': expect.any(String),
    })
  })

  test('distinguishes a missing or invalid key from an agent key', async () => {
    const answer = async (headers: Record<string, string>) => {
      const response = await ask({ query: 'select 1' }, headers, false)
      return [
        response.status,
        response.headers.get('x-clickhouse-exception-code'),
        (await response.text()).slice(0, 10),
      ]
    }
    expect(await answer({})).toEqual([401, '516', 'Code: 516.'])
    expect(await answer({ 'x-clickhouse-key': 'svc_ws_wrong' })).toEqual([401, '516', 'Code: 516.'])
    expect(await answer({ 'x-clickhouse-key': agentKey })).toEqual([403, '497', 'Code: 497.'])
  })

  test('rejects unsupported parameters', async () => {
    const code = async (parameters: Record<string, string>) =>
      (await ask({ query: 'select 1', ...parameters })).headers.get('x-clickhouse-exception-code')
    expect(await code({ database: 'information_schema' })).toBe('81')
    expect(await code({ database: 'default' })).toBeNull()
    expect(await code({ compress: '1' })).toBe('48')
    expect(await code({ role: 'admin' })).toBe('48')
    const long = await ask({}, {}, true, `select '${'x'.repeat(100_000)}'`)
    expect(long.headers.get('x-clickhouse-exception-code')).toBe('62')
  })

  test("ignores sessions, which Python's driver names in every request", async () => {
    const ofDriver = {
      ...{ session_id: crypto.randomUUID(), session_timeout: '60', session_check: '0', session_timezone: 'UTC' },
      ...{ client_protocol_version: '54405', send_progress_in_http_headers: '1', wait_end_of_query: '1' },
      ...{ http_headers_progress_interval_ms: '120000', cancel_http_readonly_queries_on_client_close: '1' },
      ...{ enable_http_compression: '1', database: 'default' },
    }
    for (let again = 0; again < 2; again++) {
      const response = await ask({ query: 'SELECT count() AS n FROM runs FORMAT JSONEachRow', ...ofDriver })
      expect([response.status, await response.text()]).toEqual([200, '{"n":1}\n'])
    }
    // A session makes nothing possible.
    for (const query of ['CREATE TEMPORARY TABLE t (a Int8)', 'SET max_threads = 64'])
      expect((await ask({ query, ...ofDriver })).headers.get('x-clickhouse-exception-code')).toBe('164')
  })

  test('answers a request without a query with Ok.', async () => {
    for (const path of ['/clickhouse', '/clickhouse/', '/clickhouse/ping'])
      expect(await (await fetch(service.url + path)).text()).toBe('Ok.\n')
  })
})

describe('tenant isolation', () => {
  /** Attacks that are legitimate queries on this endpoint; they return only the caller's own tables. */
  const LEGITIMATE =
    /^select (version|currentUser|user|currentDatabase|hostName|displayName|uptime)\(\)$|^select \* from ([`"]?sys(t|\\x74)em[`"]? ?\. ?[`"]?(tables|settings|one)[`"]?|default\.events)$|^select 1 in system\.one$|^select count\(\) from system\.numbers limit 1$|^show (tables|databases)$|^desc(ribe table)? events$|^select 1 format CSV$/

  test('rejects the attack list, or answers from our own tables', async () => {
    const loot = join(await temporaryDirectory(), 'loot')
    const all = attacks(engine.database, otherWorkspace, loot).flatMap(({ queries }) => queries)
    const answered: string[] = []
    await inParallel(all, async (query) => {
      const response = await askPatiently(query)
      const body = await response.text()
      if (response.status === 200) answered.push(query)
      else expect(response.headers.get('x-clickhouse-exception-code'), query).toMatch(/^\d+$/)
      expect(body, query).not.toMatch(/SECRET|workspace_id = | PREWHERE /)
      if (response.status === 200) expect(body, query).not.toContain(engine.database)
    })
    expect(answered.filter((query) => !LEGITIMATE.test(query))).toEqual([])
    expect(await Bun.file(loot).exists()).toBe(false)
  })

  test('errors, sort orders and aggregates reveal nothing about rows of another tenant', async () => {
    for (const query of ORACLES) {
      const body = await (await askPatiently(query)).text()
      expect(body, query).not.toContain('SECRET')
      expect(body, query).not.toContain('throwIf')
    }
  })

  test("aborting a query does not stop another tenant's query with the same id", async () => {
    const gone = new AbortController()
    const query = 'select count() as of_endpoint from numbers(100000000000) where sipHash64(number) = 2'
    const theirs = failure(text({ query, query_id: 'same', password: otherKey }, {}, false))
    const ours = failure(client.query({ query, query_id: 'same', abort_signal: gone.signal }))
    await untilRunning(engine, OF_ENDPOINT, [theirs, ours])
    gone.abort()
    await ours
    await eventually(async () => expect(await unfinished()).toBe(1))
    await Bun.sleep(100)
    expect(await unfinished()).toBe(1)
    await engine.command("kill query where query like '%sipHash64(number) = 2%' and query not like '%kill%' async")
    await theirs
  })
})

/** A plain HTTP request. */
function ask(parameters: Record<string, string>, headers: Record<string, string> = {}, withKey = true, body?: string) {
  return fetch(`${service.url}/clickhouse/?${new URLSearchParams(parameters)}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...(withKey ? { 'x-clickhouse-key': service.workspaceKey } : {}), ...headers },
    ...(body !== undefined && { body }),
  })
}

async function text(...request: Parameters<typeof ask>): Promise<string> {
  return (await ask(...request)).text()
}

/** Many of these run at once; each waits for a free slot. One of them counts endlessly, so all have a short limit. */
async function askPatiently(query: string): Promise<Response> {
  return eventually(async () => {
    const response = await ask({ max_execution_time: '2' }, {}, true, query)
    if (response.status !== 429) return response
    await response.text()
    return false
  })
}

async function unfinished(): Promise<number> {
  return runningStatements(engine, OF_ENDPOINT)
}

/** Reports a run with an event and a task for a new agent, and waits until SQL can read them. */
async function report(key: string, word: string) {
  const call: TestService['api'] = (method, path, body, options) => service.api(method, path, body, { key, ...options })
  const agent = await newAgent(call, { name: word })
  const asAgent = { key: agent.agentKey }
  const run = await call('POST', '/api/ingest/v1/run/start', { agent_id: agent.agentId, input: { word } }, asAgent)
  const run_id = run.data.run_id
  const task = { id: crypto.randomUUID(), name: word, status: 'running' }
  await call('POST', '/api/ingest/v1/tasks', { run_id, task }, asAgent)
  const events = [{ id: word, type: 'llm.call', payload: { word, s: word }, occurred_at: '2026-01-31T09:30:00.123Z' }]
  const { data } = await call('POST', '/api/ingest/v1/events', { run_id, events }, asAgent)
  await eventually(async () => {
    const query = 'select (select count() from tasks) + (select count() from runs) + (select count() from events) as n'
    const answer = await call('POST', '/api/v1/query', { query, wait_for: data.last_seq })
    return answer.data?.rows[0].n === 3
  })
  return { runId: run_id as string, agentKey: agent.agentKey }
}
