import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createAnalytics, sessionSettings } from '../../src/analytics/analytics.ts'
import { createGuard } from '../../src/analytics/guard.ts'
import { explainFailure } from '../../src/analytics/problems.ts'
import type { RunQuery } from '../../src/analytics/schema.ts'
import { scopeDatabase, scopedStatement, TABLES } from '../../src/analytics/views.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/columnar/client.ts'
import { ApiError } from '../../src/http/errors.ts'
import { encodeJson } from '../../src/http/raw-json.ts'
import type { Caller } from '../../src/keys/schema.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { inParallel } from '../support/in-parallel.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { attacks, ORACLES } from './query-attacks.ts'

const OURS = 'a0000000-0000-7000-8000-000000000001'
const THEIRS = 'b0000000-0000-7000-8000-000000000002'
/** A workspace without rows. */
const NEW = 'c0000000-0000-7000-8000-000000000003'

let client: ColumnarClient
let loot: string
const loaded = 7
const sink = {
  epoch: 'epoch-1',
  loadedSeq: () => loaded,
  waitFor: async (seq: number) => seq <= loaded,
}

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  loot = join(await temporaryDirectory(), 'loot')
  await fill(client, OURS, 'ours')
  await fill(client, THEIRS, 'SECRET')
  // One part, one granule: whatever reads our rows passes over theirs.
  for (const table of ['events', 'runs', 'tasks']) await client.command(`optimize table ${table} final`)
})

describe('POST /api/v1/query', () => {
  test('answers columns, rows and counts', async () => {
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

  test('shows the columns of the contract and no others, of the types that we say', async () => {
    const names = {
      events: 'seq, event_id, run_id, agent_id, type, level, payload, occurred_at, received_at',
      runs: 'run_id, agent_id, agent_name, status, trigger_type, external_run_id, parent_run_id, session_id, tags, input, output, error_message, created_at, started_at, completed_at, duration_ms, input_tokens, output_tokens, cost_usd',
      tasks: 'task_id, run_id, agent_id, name, status, input, output, created_at, updated_at',
    }
    for (const [table, expected] of Object.entries(names)) {
      const { columns } = await ask(`select * from ${table} limit 0`)
      expect(columns.map(({ name }) => name).join(', ')).toBe(expected)
      expect(columns).toEqual(TABLES[table].columns.map(({ name, type }) => ({ name, type })))
    }
  })

  test('shows the latest state of a run and of a task once', async () => {
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
      'with time as it is sent',
      "select count() as v from events where occurred_at = '2026-01-31T09:30:00.123Z'",
      [{ v: 20 }],
    ],
    ['joined', 'select count() as v from events e join runs r on e.run_id = r.run_id', [{ v: 20 }]],
    ['with its own CTEs', 'with e as (select seq from events), 2 as k select max(seq) * k as v from e', [{ v: 38 }]],
    ['with a CTE that hides a table', 'with events as (select 5 as x) select x as v from events', [{ v: 5 }]],
    ['as a union', 'select 1 as v union all select 1', [{ v: 1 }, { v: 1 }]],
    ['in brackets', '(select 1 as v)', [{ v: 1 }]],
    ['from numbers', 'select sum(number) as v from numbers(4)', [{ v: 6 }]],
    ['from values', "select v from values('v String', 'a', 'b') order by v desc", [{ v: 'b' }, { v: 'a' }]],
    [
      'with window functions',
      'select max(r) as v from (select row_number() over (partition by type order by seq) as r from events)',
      [{ v: 20 }],
    ],
    ['in any case', 'SELECT COUNT(*) AS v, Sum(seq) AS w FROM events', [{ v: 20, w: 190 }]],
    [
      'with combinators',
      "select countIf(level = 'info') as v, uniqExactIf(run_id, 1) as w from events",
      [{ v: 20, w: 1 }],
    ],
    ['with a subquery in IN', 'select count() as v from events where run_id in (select run_id from runs)', [{ v: 20 }]],
    ['with a comment', 'select 1 as v -- ; drop', [{ v: 1 }]],
    ['with a semicolon at the end', 'select 1 as v;', [{ v: 1 }]],
    ['of nothing', 'select 1 as v where 0', []],
  ])('takes a query %s', async (_what, query, rows) => {
    expect((await ask(query)).rows).toEqual(rows)
  })

  test('keeps the digits of 64-bit integers and the text of strings', async () => {
    const { text } = await ask('select 18446744073709551615 as big, \'a\\n\\t],\\n"data":\' as odd')
    expect(text).toContain('"big": 18446744073709551615')
    expect(JSON.parse(text).rows).toEqual([{ big: expect.any(Number), odd: 'a\n\t],\n"data":' }])
  })

  test('fills placeholders as values, never as SQL', async () => {
    const params = { s: "x' or 1 = 1 --", n: 2, list: ['e1', 'e2'], none: null }
    const answer = await ask(
      'select {s:String} as s, {none:Nullable(Int8)} as none, count() as n from events where seq < {n:UInt64} or event_id in {list:Array(String)}',
      { params },
    )
    expect(answer.rows).toEqual([{ s: params.s, none: null, n: 3 }])
    expect(await refusalOf('select {missing:String}')).toContain('missing')
    expect(await refusalOf('select * from {t:Identifier}', { params: { t: 'system.one' } })).toContain('Identifier')
  })

  test('caps the rows and says so', async () => {
    const answer = await ask('select number from numbers(20000) order by number desc')
    expect(answer).toMatchObject({ row_count: 10_000, truncated: true })
    expect(answer.rows).toHaveLength(10_000)
    expect(answer.rows[9_999]).toEqual({ number: 10_000 })
    expect(await ask('select number from numbers(10000)')).toMatchObject({ row_count: 10_000, truncated: false })
  })

  test('caps memory and the size of the answer', async () => {
    expect(await refusalOf('select length(range(400000000))')).toContain('1 GiB')
    expect(await refusalOf("select repeat('x', 10000) from numbers(5000)")).toContain('too large')
  })

  test('runs three at a time in a workspace and refuses a fourth, while others may go on', async () => {
    const slow = 'select count() from numbers(10000000000) where sipHash64(number) = 1'
    const gone = new AbortController()
    const analytics = createAnalytics({ client, sink })
    const running = Array.from({ length: 3 }, () => failure(analytics.run(caller(OURS), { query: slow }, gone.signal)))
    expect(await failure(analytics.run(caller(OURS), { query: 'select 1' }, NEVER))).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterSeconds: 1,
    })
    expect((await analytics.run(caller(THEIRS), { query: 'select 1' }, NEVER)).row_count).toBe(1)
    gone.abort(new Error('gone'))
    await Promise.all(running)
    expect((await analytics.run(caller(OURS), { query: 'select 1' }, NEVER)).row_count).toBe(1)
    await eventually(
      async () =>
        (
          await client.query(
            "select 1 from system.processes where query like '%sipHash64(number) = 1%' and query not like '%processes%'",
          )
        ).length === 0,
    )
  })

  test('wait_for holds a query until its position is readable', async () => {
    expect((await ask('select 1', { wait_for: 7 })).row_count).toBe(1)
    expect((await ask('select 1', { wait_for: 'epoch-1.7' })).row_count).toBe(1)
    expect(await failure(run('select 1', { wait_for: 8 }))).toMatchObject({ code: 'UNAVAILABLE' })
    expect(await failure(run('select 1', { wait_for: 'epoch-0.1' }))).toMatchObject({ code: 'VALIDATION_ERROR' })
    expect(await failure(run('select 1', { wait_for: 'x' }))).toMatchObject({ code: 'VALIDATION_ERROR' })
  })

  test('says which formats there are', async () => {
    expect(await refusalOf('select 1', { format: 'parquet' })).toContain('json')
  })

  test.each([
    ['select typ from events', "maybe you meant ['type']"],
    ['select * from nope', 'nope'],
    ['select sum(payload.a.b) from events', 'payload.tokens.in::Float64'],
    ['select toUInt8(payload.s) from events', "Cannot parse string 'ours' as UInt8"],
    ['select run_id, max(seq) from events', 'run_id'],
    ['select 1 +', 'Syntax error'],
    ['select 1; select 2', 'Multi-statements are not allowed'],
    ['select system.x from events', 'system.x'],
  ])('says what is wrong with %s, and nothing of ours', async (query, expected) => {
    const message = await refusalOf(query)
    expect(message).toContain(expected)
    expect(message).not.toMatch(
      /workspace_id|PREWHERE|test_|_scope|system\.one|formatQuery|__table|MergeTree|Expected one of/,
    )
    expect(message).not.toContain(OURS)
  })

  test('is unavailable while ClickHouse is away', async () => {
    const away = createColumnarClient({
      url: 'http://127.0.0.1:1',
      username: '',
      password: '',
      database: 'x',
      state: 'down',
      whenReady: async () => {},
      stop: async () => {},
    })
    const error = await failure(createAnalytics({ client: away, sink }).run(caller(OURS), { query: 'select 1' }, NEVER))
    expect(error).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
    await away.close()
  })
})

describe('nothing of another tenant is reachable', () => {
  test('the attack list is refused, each with what is wrong, and changes nothing', async () => {
    const before = await stored()
    const all = attacks(client.database, THEIRS, loot).flatMap(({ aim, queries }) =>
      queries.map((query) => ({ aim, query })),
    )
    expect(all.length).toBeGreaterThan(120)
    await inParallel(all, async ({ aim, query }) => {
      const error = await failure(run(query))
      expect(error, `${aim}: ${query}`).toBeInstanceOf(ApiError)
      expect((error as ApiError).code, `${aim}: ${query}`).toBe('VALIDATION_ERROR')
      expect((error as ApiError).message, query).not.toMatch(/SECRET|workspace_id = |PREWHERE/)
    })
    expect(await stored()).toEqual(before)
    expect(await Bun.file(loot).exists()).toBe(false)
  }, 30_000)

  test('errors, orders and aggregates tell nothing of rows that are not ours', async () => {
    for (const query of ORACLES) {
      const result = await run(query).then(encodeJson, (error: ApiError) => error.message)
      expect(result, query).not.toContain('SECRET')
      expect(result, query).not.toContain('throwIf')
    }
  })

  test('a new workspace sees empty tables, and statistics speak of its answer only', async () => {
    for (const table of ['events', 'runs', 'tasks']) {
      const answer = await run(`select * from ${table}`, {}, NEW)
      expect(answer).toMatchObject({ row_count: 0, statistics: { rows_read: 0, bytes_read: 2 } })
    }
  })
})

describe('each layer alone', () => {
  test('the guard refuses the attack list by itself, but for names that mean nothing in the scope', async () => {
    const guard = createGuard(client, (error) => explainFailure(error, { seconds: 10, memoryBytes: 2 ** 30 }))
    const passed: string[] = []
    const all = attacks(client.database, THEIRS, loot).flatMap(({ queries }) => queries)
    await inParallel(all, (query) =>
      guard.check(query).then(
        () => passed.push(query),
        () => {},
      ),
    )
    expect(passed.sort()).toEqual(
      [
        'select workspace_id from events',
        `select * from events where workspace_id = '${THEIRS}'`,
        'select _part, _partition_id from events',
        'select _table, _database from events',
        'select * from events final',
        'select * from events prewhere 1',
      ].sort(),
    )
  })

  test('without the guard, the session neither writes nor changes a setting', async () => {
    const before = await stored()
    const changing = attacks(client.database, THEIRS, loot).find(({ aim }) => aim.startsWith('changes'))!
    for (const query of changing.queries.filter((sql) =>
      /^(insert|drop|truncate|alter|delete|create|attach|optimize|rename|system|backup|set r|grant)/.test(sql),
    )) {
      expect(await failure(client.command(query, session(OURS))), query).toBeInstanceOf(Error)
    }
    expect(await failure(client.command('select 1 settings readonly = 0', session(OURS)))).toBeInstanceOf(Error)
    expect(await stored()).toEqual(before)
  })

  test('without the guard, the session sees only its own rows in the stored tables', async () => {
    for (const table of ['events', 'runs', 'tasks']) {
      const sql = `select distinct workspace_id as w from ${client.database}.${table}`
      expect(await client.query(sql, session(OURS))).toEqual([{ w: OURS }])
    }
  })

  test('without guard and session, the scope answers for one workspace, and knows no other unqualified name', async () => {
    const scoped = (query: string) =>
      client.query<Record<string, unknown>>(
        scopedStatement({ text: query, jsonPaths: null }, client.database, OURS, 100),
        {
          database: scopeDatabase(client.database),
        },
      )
    for (const query of ORACLES) {
      const result = await scoped(query).then(JSON.stringify, (error: Error) => error.message)
      expect(result, query).not.toContain('SECRET')
      expect(result, query).not.toContain('throwIf')
    }
    expect(await failure(scoped('select * from schema_migrations'))).toMatchObject({ type: 'UNKNOWN_TABLE' })
  })
})

const NEVER = new AbortController().signal

function caller(workspaceId: string): Caller {
  return { keyId: 'k', type: 'workspace', workspaceId, agentId: null } as Caller
}

function session(workspaceId: string) {
  return { settings: sessionSettings(client.database, workspaceId), database: scopeDatabase(client.database) }
}

function run(query: string, request: Partial<RunQuery> = {}, workspaceId = OURS) {
  return createAnalytics({ client, sink }).run(caller(workspaceId), { query, ...request }, NEVER)
}

/** The answer as a client reads it. */
async function ask(query: string, request: Partial<RunQuery> = {}) {
  const text = encodeJson(await run(query, request))
  return { text, ...JSON.parse(text) } as {
    text: string
    columns: { name: string; type: string }[]
    rows: Record<string, unknown>[]
    row_count: number
    truncated: boolean
  }
}

async function refusalOf(query: string, request: Partial<RunQuery> = {}): Promise<string> {
  const error = await failure(run(query, request))
  expect(error, query).toMatchObject({ code: 'VALIDATION_ERROR' })
  return (error as ApiError).message
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => new Error(`did not fail: ${encodeJson(value).slice(0, 200)}`),
    (error) => error,
  )
}

function stored() {
  return client.query(
    `select (select count() from events) as events, (select count() from runs) as runs, (select count() from tasks) as tasks,
            (select groupArray(name) from (select name from system.tables where database = currentDatabase() order by name)) as tables`,
  )
}

/** Twenty events, one run in two states and one task in two states. */
async function fill(target: ColumnarClient, workspace: string, word: string): Promise<void> {
  const params = { workspace, word, id: word === 'SECRET' ? 'SECRET' : 'e' }
  await target.command(
    `insert into events
     select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, number, {id:String} || toString(number), 'llm.call', 'info',
            '{"a":{"b":' || toString(number) || '},"s":"' || {word:String} || '","x.y":1,"dup":1,"dup":2}',
            toDateTime64('2026-01-31 09:30:00.123', 3, 'UTC'), now64(3), 'epoch-1'
     from numbers(20)`,
    { params },
  )
  for (const [seq, status, output] of [
    [1, 'running', null],
    [2, 'completed', '{"text":"done"}'],
  ] as const) {
    await target.command(
      `insert into runs (workspace_id, agent_id, run_id, agent_name, status, trigger_type, tags, input, output, created_at, seq)
       select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {word:String}, {status:String}, 'sdk', ['t'], '{"q":1}',
              {output:Nullable(String)}, now64(3), {seq:UInt64}`,
      { params: { ...params, seq, status, output } },
    )
    await target.command(
      `insert into tasks (workspace_id, agent_id, run_id, task_id, name, status, created_at, updated_at, seq)
       select {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {workspace:UUID}, {word:String}, {status:String}, now64(3), now64(3), {seq:UInt64}`,
      { params: { ...params, seq, status } },
    )
  }
}
