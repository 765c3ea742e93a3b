import { beforeAll, describe, expect, test } from 'bun:test'
import type { ApiError } from '../../src/base/errors.ts'
import { encodeJson } from '../../src/base/raw-json.ts'
import { Analytics } from '../../src/sql/analytics/analytics.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import type { RunQuery } from '../../src/sql/analytics/schema.ts'
import { TABLES } from '../../src/sql/analytics/tables.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase, runningStatements } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { caller, failure, fill, loadedThrough, OURS, THEIRS } from './query-tenants.ts'

let client: ColumnarClient
const partitions = loadedThrough(7)

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  await fill(client, OURS, 'ours')
  await fill(client, THEIRS, 'SECRET')
  // One part and one granule, so that reading our rows also scans theirs.
  for (const table of ['events', 'runs', 'tasks']) await client.command(`optimize table ${table} final`)
})

describe('POST /api/v1/query', () => {
  test('returns columns, rows and counts', async () => {
    const answer = await ask('select seq, type, level, payload.s as s, occurred_at from events order by seq limit 2')
    expect(answer.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'seq UInt64',
      'type String',
      'level String',
      's Dynamic',
      "occurred_at DateTime64(3, 'UTC')",
    ])
    expect(answer.rows).toEqual([
      { seq: 0, type: 'llm.call', level: 'info', s: 'ours', occurred_at: '2026-01-31T09:30:00.123Z' },
      { seq: 1, type: 'llm.call', level: 'info', s: 'ours', occurred_at: '2026-01-31T09:30:00.123Z' },
    ])
    expect(answer).toMatchObject({ row_count: 2, truncated: false, complete_through: 'epoch-1.7' })
  })

  test('has exactly the specified columns and types', async () => {
    const settings =
      'name, description, runtime_type, status, model, prompt, tools, output_schema, input_schema, expose, allow_input_requests, temperature, max_output_tokens, max_steps, timeout_seconds, budget_usd, stale_after_seconds, metadata'
    const names = {
      events: 'seq, event_id, run_id, agent_id, task_id, type, level, payload, occurred_at, received_at',
      runs: 'run_id, agent_id, agent_name, agent_version, status, trigger_type, external_run_id, parent_run_id, session_id, external_user_id, tags, metadata, input, output, error_message, error_detail, created_at, started_at, completed_at, duration_ms, active_ms, waiting_ms, waiting_since, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd',
      tasks:
        'task_id, run_id, agent_id, parent_task_id, name, status, input, output, error_message, created_at, updated_at, started_at, completed_at',
      scores:
        'score_id, run_id, agent_id, task_id, event_id, session_id, name, value, data_type, label, text, comment, source, metadata, seq, created_at, received_at',
      pauses:
        'pause_id, run_id, agent_id, kind, status, tool, input, edited_input, question, options, answer, comment, requested_at, expires_at, decided_at, waiting_ms, decided_by, decided_by_person',
      agents: `agent_id, ${settings}, version, created_at, updated_at`,
      agent_versions: `agent_id, version, ${settings}, created_at, created_by, created_by_person, changes, restored_from`,
      deliveries: 'delivery_id, webhook_id, type, run_id, seq, attempt, status, http_status, duration_ms, response, at',
      alert_states: 'alert_id, series, state, previous_state, value, seq, at',
      gaps: 'after_seq, through_seq, reason, noticed_at',
    }
    expect(Object.keys(names)).toEqual([...TABLES.keys()])
    for (const [table, expected] of Object.entries(names)) {
      const { columns } = await ask(`select * from ${table} limit 0`)
      expect(columns.map(({ name }) => name).join(', ')).toBe(expected)
      const whole = TABLES.get(table)!.columns.filter(({ isByNameOnly }) => isByNameOnly !== true)
      expect(columns).toEqual(whole.map(({ name, type }) => ({ name, type })))
    }
  })

  test('shows only the latest state of a run and a task', async () => {
    expect((await ask('select status, output.text as text from runs')).rows).toEqual([
      { status: 'completed', text: 'done' },
    ])
    expect((await ask('select name, status from tasks')).rows).toEqual([{ name: 'ours', status: 'completed' }])
  })

  test.each([
    [
      'by path, nested and dotted keys alike',
      'select payload.a.b as v from events where payload.`x.y` = 1 and seq = 3',
      [{ v: 3 }],
    ],
    ['by path, cast for arithmetic', 'select sum(payload.a.b::Int64) as v from events', [{ v: 190 }]],
    ['grouped by a path', 'select payload.s as v, count() as n from events group by v', [{ v: 'ours', n: 20 }]],
    [
      'with an ISO 8601 time',
      "select count() as v from events where occurred_at = '2026-01-31T09:30:00.123Z'",
      [{ v: 20 }],
    ],
    ['joined', 'select count() as v from events e join runs r on e.run_id = r.run_id', [{ v: 20 }]],
    ['with its own CTEs', 'with e as (select seq from events), 2 as k select max(seq) * k as v from e', [{ v: 38 }]],
    ['with a CTE that hides a table', 'with events as (select 5 as x) select x as v from events', [{ v: 5 }]],
    ['as a union', 'select 1 as v union all select 1', [{ v: 1 }, { v: 1 }]],
    ['in parentheses', '(select 1 as v)', [{ v: 1 }]],
    ['from numbers', 'select sum(number) as v from numbers(4)', [{ v: 6 }]],
    ['from values', "select v from values('v String', 'a', 'b') order by v desc", [{ v: 'b' }, { v: 'a' }]],
    [
      'with window functions',
      'select max(r) as v from (select row_number() over (partition by type order by seq) as r from events)',
      [{ v: 20 }],
    ],
    ['in upper and mixed case', 'SELECT COUNT(*) AS v, Sum(seq) AS w FROM events', [{ v: 20, w: 190 }]],
    [
      'with combinators',
      "select countIf(level = 'info') as v, uniqExactIf(run_id, 1) as w from events",
      [{ v: 20, w: 1 }],
    ],
    ['with a subquery in IN', 'select count() as v from events where run_id in (select run_id from runs)', [{ v: 20 }]],
    ['with a comment', 'select 1 as v -- ; drop', [{ v: 1 }]],
    ['with a semicolon at the end', 'select 1 as v;', [{ v: 1 }]],
    ['with an empty result', 'select 1 as v where 0', []],
  ])('accepts a query %s', async (_what, query, rows) => {
    expect((await ask(query)).rows).toEqual(rows)
  })

  test('keeps 64-bit integers and strings exact', async () => {
    const { text } = await ask('select 18446744073709551615 as big, \'a\\n\\t],\\n"data":\' as odd')
    expect(text).toContain('"big": 18446744073709551615')
    expect(JSON.parse(text).rows).toEqual([{ big: expect.any(Number), odd: 'a\n\t],\n"data":' }])
  })

  test('binds placeholders as values, never as SQL', async () => {
    const params = { s: "x' or 1 = 1 --", n: 2, list: ['e1', 'e2'], none: null }
    const answer = await ask(
      'select {s:String} as s, {none:Nullable(Int8)} as none, count() as n from events where seq < {n:UInt64} or event_id in {list:Array(String)}',
      { params },
    )
    expect(answer.rows).toEqual([{ s: params.s, none: null, n: 3 }])
    expect(await rejectionOf('select {missing:String}')).toContain('missing')
    expect(await rejectionOf('select * from {t:Identifier}', { params: { t: 'system.one' } })).toContain('Identifier')
  })

  test('refuses an integer that its placeholder cannot hold, instead of wrapping it round', async () => {
    expect(await rejectionOf('select 1 limit {n:UInt8}', { params: { n: 300 } })).toBe(
      'params.n: expected UInt8, 0 to 255; got 300',
    )
    expect(await rejectionOf('select {n:Int64}', { params: { n: '9223372036854775808' } })).toContain('expected Int64')
    expect(await rejectionOf('select {n:Array(Nullable(Int8))}', { params: { n: [1, -129] } })).toContain('got -129')
    const params = { n: '-9223372036854775808', m: [127, null], s: '300', x: '18446744073709551615' }
    const query =
      "select {n:Int64} as n, {m:Array(Nullable(Int8))} as m, {s:String} as s, {x:UInt64} as x, '{s:UInt8}' as q"
    expect((await ask(query, { params })).text).toContain('"n": -9223372036854775808,"m": [127,null],"s": "300"')
  })

  test('runs three queries per workspace concurrently, and rejects a fourth without affecting other workspaces', async () => {
    const slow = 'select count() from numbers(10000000003) where sipHash64(number) = 1'
    const gone = new AbortController()
    const analytics = new Analytics(client, partitions, { ...DEFAULT_QUERY_CAPS, seconds: 200 })
    const running = Array.from({ length: 3 }, () => failure(analytics.run(caller(OURS), { query: slow }, gone.signal)))
    expect(await failure(analytics.run(caller(OURS), { query: 'select 1' }, NEVER))).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterSeconds: 1,
    })
    expect((await analytics.run(caller(THEIRS), { query: 'select 1' }, NEVER)).row_count).toBe(1)
    gone.abort(new Error('gone'))
    await Promise.all(running)
    expect((await analytics.run(caller(OURS), { query: 'select 1' }, NEVER)).row_count).toBe(1)
    await eventually(async () => (await runningStatements(client, '%numbers(10000000003)%')) === 0)
  })

  test('wait_for delays a query until its position is readable', async () => {
    expect((await ask('select 1', { wait_for: 7 })).row_count).toBe(1)
    expect((await ask('select 1', { wait_for: 'epoch-1.7' })).row_count).toBe(1)
    expect(await failure(run('select 1', { wait_for: 8 }))).toMatchObject({ code: 'UNAVAILABLE' })
    expect(await failure(run('select 1', { wait_for: 'epoch-0.1' }))).toMatchObject({ code: 'VALIDATION_ERROR' })
    expect(await failure(run('select 1', { wait_for: 'x' }))).toMatchObject({ code: 'VALIDATION_ERROR' })
  })

  test.each([
    ['select typ from events', "maybe you meant ['type']"],
    ['select * from nope', 'nope'],
    [
      'select * from system.tables',
      'the tables are events, runs, tasks, scores, pauses, agents, agent_versions, deliveries, alert_states and gaps',
    ],
    ['select groupBitAnd(payload.a.b) from events', 'payload.tokens.in::Float64'],
    ['select toUInt8(payload.s) from events', "Cannot parse string 'ours' as UInt8"],
    ['select run_id, max(seq) from events', 'run_id'],
    ['select 1 +', 'Syntax error'],
    ['select 1; select 2', 'Multi-statements are not allowed'],
    ['select system.x from events', 'system.x'],
  ])('explains the error in %s without internal names', async (query, expected) => {
    const message = await rejectionOf(query)
    expect(message).toContain(expected)
    expect(message).not.toMatch(
      /workspace_id|PREWHERE|test_|_scope|system\.one|formatQuery|__table|MergeTree|Expected one of/,
    )
    expect(message).not.toContain(OURS)
  })

  test('is UNAVAILABLE while ClickHouse is unreachable', async () => {
    const away = createColumnarClient({
      url: 'http://127.0.0.1:1',
      username: '',
      password: '',
      database: 'x',
      isRestarting: false,
      whenReady: async () => {},
      stop: async () => {},
    })
    const error = await failure(new Analytics(away, partitions).run(caller(OURS), { query: 'select 1' }, NEVER))
    expect(error).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
  })
})

const NEVER = new AbortController().signal

function run(query: string, request: Partial<RunQuery> = {}, workspaceId = OURS) {
  return new Analytics(client, partitions).run(caller(workspaceId), { query, ...request }, NEVER)
}

/** The result as a client parses it. */
async function ask(query: string, request: Partial<RunQuery> = {}) {
  const text = encodeJson(await run(query, request))
  return { text, ...JSON.parse(text) } as {
    text: string
    columns: { name: string; type: string }[]
    rows: Record<string, unknown>[]
    row_count: number
  }
}

async function rejectionOf(query: string, request: Partial<RunQuery> = {}): Promise<string> {
  const error = await failure(run(query, request))
  expect(error, query).toMatchObject({ code: 'VALIDATION_ERROR' })
  return (error as ApiError).message
}
