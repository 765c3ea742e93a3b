import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { definedOf } from '../../src/base/defined.ts'
import { ApiError } from '../../src/base/errors.ts'
import { encodeJson } from '../../src/base/raw-json.ts'
import { Analytics } from '../../src/sql/analytics/analytics.ts'
import { createGuard, type SqlGuard } from '../../src/sql/analytics/guard.ts'
import { explainFailure } from '../../src/sql/analytics/problems.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import type { RunQuery } from '../../src/sql/analytics/schema.ts'
import { sessionSettings } from '../../src/sql/analytics/session-settings.ts'
import { scopeDatabase, scopedStatement } from '../../src/sql/analytics/views.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { inParallel } from '../support/in-parallel.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { BOMBS, FORBIDDEN_PARTS, HARMLESS, PLACEHOLDER_ATTACKS, POSITIONS } from './query-attack-parts.ts'
import { attacks, namesUnknownInScope, ORACLES } from './query-attacks.ts'
import { caller, failure, fill, loadedThrough, NEW, OURS, THEIRS } from './query-tenants.ts'

/** Tenant SQL reads only its own rows: through the endpoint, and with each layer of protection alone. */

const NEVER = new AbortController().signal
const LEAKS = /SECRET|workspace_id = |PREWHERE|root:x:/

let client: ColumnarClient
let guard: SqlGuard
let loot: string
let list: readonly { aim: string; query: string }[]

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  guard = createGuard(client, (error) => explainFailure(error, DEFAULT_QUERY_CAPS))
  loot = join(await temporaryDirectory(), 'loot')
  await fill(client, OURS, 'ours')
  await fill(client, THEIRS, 'SECRET')
  // One part and one granule, so that reading our rows also scans theirs.
  for (const table of ['events', 'runs', 'tasks']) await client.command(`optimize table ${table} final`)
  list = attacks(client.database, THEIRS, loot).flatMap(({ aim, queries }) => queries.map((query) => ({ aim, query })))
})

describe('tenant isolation', () => {
  test('rejects the attack list with a VALIDATION_ERROR, and nothing changes', async () => {
    expect(new Set(list.map(({ query }) => query)).size).toBeGreaterThan(250)
    const before = await stored()
    const passed: string[] = []
    await inParallel(list, async ({ aim, query }) => {
      const refused = await guard.check(query).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (refused === undefined) {
        passed.push(query)
        await expectRejected({ query }, aim)
      } else expectRefusal(refused, `${aim}: ${query.slice(0, 300)}`)
    })
    // The guard alone lets through only names that do not exist in the scope.
    expect(passed.sort()).toEqual([...namesUnknownInScope(client.database, THEIRS)].sort())
    expect(await stored()).toEqual(before)
    expect(await Bun.file(loot).exists()).toBe(false)
  })

  test('rejects forbidden expressions in every position of a SELECT', async () => {
    for (const position of POSITIONS) await expectAccepted(position.replaceAll('§', '1'))
    const all = POSITIONS.flatMap((position, i) =>
      [0, 3, 6].map((j) => position.replaceAll('§', FORBIDDEN_PARTS[(i + j) % FORBIDDEN_PARTS.length]!)),
    )
    await inParallel(all, async (query) => {
      const error = await failure(guard.check(query))
      expect((error as Error).message, query).toMatch(/ not allowed/)
    })
  })

  test('binds placeholders as values only', async () => {
    await inParallel(PLACEHOLDER_ATTACKS, (request) => expectRejected(request, 'placeholder'))
  })

  test('answers harmless queries that look like attacks, from our own rows', async () => {
    await inParallel(HARMLESS, async ([query, rows, params]) => {
      const answer = await run(definedOf({ query, params })).then(encodeJson, String)
      expect(answer, query).not.toMatch(LEAKS)
      expect(JSON.parse(answer).rows, query).toEqual(rows)
    })
  })

  test('errors, sort orders and aggregates reveal nothing about rows of another tenant', async () => {
    for (const query of ORACLES) {
      const result = await run({ query }).then(encodeJson, (error: ApiError) => error.message)
      expect(result, query).not.toContain('SECRET')
      expect(result, query).not.toContain('throwIf')
    }
  })

  test('a new workspace sees empty tables, and statistics cover only its own result', async () => {
    for (const table of ['events', 'runs', 'tasks']) {
      const answer = await run({ query: `select * from ${table}` }, NEW)
      expect(answer).toMatchObject({ row_count: 0, statistics: { rows_read: 0, bytes_read: 2 } })
    }
  })

  test('stops expensive queries at their limit, names the limit, and does not affect other queries', async () => {
    const caps = { ...DEFAULT_QUERY_CAPS, seconds: 1, memoryBytes: 2 ** 26 }
    const bombed = new Analytics(client, loadedThrough(7), caps)
    const bombs = inParallel(
      BOMBS,
      async ([query, expected]) => {
        // A busy engine that has not stopped a query some seconds after its limit is not waited for: such a query is repeated.
        await eventually(async () => {
          const error = await failure(bombed.run(caller(OURS), { query }, NEVER))
          expect((error as Error).message, query).toMatch(expected)
        })
      },
      2,
    )
    let done = false
    const others = (async () => {
      while (!done) expect((await run({ query: 'select count() from events' }, THEIRS)).row_count).toBe(1)
    })()
    await bombs.finally(() => {
      done = true
    })
    await others
  })
})

test('rejects calls with quadratic cost unless an argument is known to be short', async () => {
  const many = Array.from({ length: 1_001 }, (_, i) => i).join(', ')
  for (const query of [
    'select hasAll(range(1000000), range(1000000))',
    'select hasAny(a, b) from (select groupArray(seq) as a, groupArray(seq) as b from events)',
    `select hasAny(range(1000000), [${many}])`,
    'select hasAll(tags, b) from (select groupArray(type) as tags, groupArray(type) as b from events)',
    "select kolmogorovSmirnovTest('two-sided', 'exact')(seq, seq % 2) from events",
    "select kolmogorovSmirnovTestIf('two-sided', 'exact')(seq, seq % 2, 1) from events",
    "select KOLMOGOROVSMIRNOVTEST('two-sided', {method:String})(seq, seq % 2) from events",
    "select JSON_VALUE(payload, '$.a[*]') from events",
    "select JSON_QUERY(payload, '$.a[0 to 3]') from events",
    "select JSON_EXISTS(payload, '$.a[1, 2]') from events",
    'select JSON_QUERY(payload, type) from events',
  ]) {
    const error = await failure(run({ query, params: { method: 'exact' } }))
    expect(error, query).toMatchObject({ code: 'VALIDATION_ERROR' })
    expect((error as Error).message, query).toMatch(/compares every pair|computation methods|without \* and ranges/)
  }
  for (const query of [
    "select hasAny(tags, ['a', 't']) as v from runs",
    "select hasAll(r.tags, splitByChar(',', 't')) as v from runs as r",
    "select hasAny([type, level], ['info']) as v from events limit 1",
    "select hasAny(splitByChar(',', type), {wanted:Array(String)}) as v from events limit 1",
    "select kolmogorovSmirnovTest('two-sided')(seq, seq % 2) is not null as v from events",
    "select JSON_VALUE(payload, '$.a.b') = '1' or 1 as v from events limit 1",
    "select JSON_EXISTS('{\"a\":[1]}', '$.a[0]') as v",
  ]) {
    const answer = await run({ query, params: { wanted: ['llm.call'] } })
    expect(JSON.parse(encodeJson(answer)).rows, query).toEqual([{ v: 1 }])
  }
})

describe('without the guard', () => {
  test('the session cannot write or change settings', async () => {
    const before = await stored()
    const changing = list.filter(
      ({ aim, query }) =>
        aim.startsWith('changes') &&
        /^(insert|drop|truncate|alter|delete|create|attach|optimize|rename|system|backup|set r|grant|exchange|detach|restore|move)/.test(
          query,
        ),
    )
    for (const { query } of changing) expect(await failure(alone(query)), query).toBeInstanceOf(Error)
    expect(await failure(alone('select 1 settings readonly = 0'))).toBeInstanceOf(Error)
    expect(await stored()).toEqual(before)
    expect(await Bun.file(loot).exists()).toBe(false)
  })

  test('the session sees only its own rows in every tenant table', async () => {
    const tables = await client.query<{ name: string }>(
      `select c.table as name from system.columns as c where database = '${client.database}' and c.name = 'workspace_id' order by c.table`,
    )
    expect(tables.map(({ name }) => name)).toEqual([
      'agent_versions',
      'alert_states',
      'deliveries',
      'events',
      'events_to_alert_states',
      'events_to_pauses',
      'pauses',
      'run_changes',
      'runs',
      'score_changes',
      'score_changes_to_scores',
      'scores',
      'task_changes',
      'task_changes_to_tasks',
      'tasks',
    ])
    for (const { name } of tables) {
      await fillChanges(name)
      const rows = await client.query(
        `select distinct workspace_id as w from ${client.database}.${name}`,
        session(OURS),
      )
      expect(rows, name).toEqual([{ w: OURS }])
    }
  })

  test('the session cannot read files, URLs or processes as tables', async () => {
    for (const query of [
      "select * from file('/etc/passwd', 'LineAsString')",
      "select * from url('http://127.0.0.1:1/', 'LineAsString')",
      "select * from filesystem('/etc')",
      "select * from executable('cat', 'LineAsString', 's String')",
      `select * from remote('127.0.0.1', '${client.database}', 'events')`,
      `select * from loop('${client.database}', 'events') limit 30`,
      "select * from mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
      "select * from postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')",
      "select * from sqlite('/tmp/x.db', 't')",
    ])
      expect(String(await failure(client.queryText(query, 'JSON', session(OURS)))), query).not.toMatch(LEAKS)
  })

  test('and without the session, the scope shows one workspace and no other unqualified name', async () => {
    const scoped = (query: string) =>
      client.query<Record<string, unknown>>(
        scopedStatement(
          {
            text: query,
            jsonPaths: null,
            numberPaths: [],
            typeParameters: [],
            isInfallible: false,
            tables: [],
            usesWholeRows: true,
          },
          client.database,
          OURS,
          { rows: 100 },
        ),
        { database: scopeDatabase(client.database) },
      )
    for (const query of [
      ...ORACLES,
      'select payload from events',
      'select * from runs final',
      'select * from tasks prewhere 1',
    ]) {
      const result = await scoped(query).then(JSON.stringify, (error: Error) => error.message)
      expect(result, query).not.toContain('SECRET')
      expect(result, query).not.toContain('throwIf')
    }
    expect(await failure(scoped('select * from schema_migrations'))).toMatchObject({ type: 'UNKNOWN_TABLE' })
  })
})

async function expectRejected(request: Pick<RunQuery, 'query' | 'params'>, aim: string): Promise<void> {
  expectRefusal(await failure(run(request)), `${aim}: ${request.query.slice(0, 300)}`)
}

function expectRefusal(error: unknown, what: string): void {
  expect(error, what).toBeInstanceOf(ApiError)
  expect((error as ApiError).code, `${what}: ${error}`).toBe('VALIDATION_ERROR')
  expect((error as ApiError).message, what).not.toMatch(LEAKS)
}

/** Checks that a position is valid: the same query with a harmless expression is accepted. */
async function expectAccepted(query: string): Promise<void> {
  expect((await guard.check(query).catch((error) => ({ text: `${query}: ${error}` }))).text).toMatch(
    /^[(]?(SELECT|WITH)/,
  )
}

function session(workspaceId: string) {
  return { settings: sessionSettings(client.database, workspaceId), database: scopeDatabase(client.database) }
}

function alone(statement: string): Promise<void> {
  return client.command(statement, session(OURS))
}

function run(request: Pick<RunQuery, 'query' | 'params'>, workspaceId = OURS) {
  return new Analytics(client, loadedThrough(7)).run(caller(workspaceId), request, NEVER)
}

function stored() {
  return client.query(
    `select (select count() from events) as events, (select count() from runs) as runs, (select count() from tasks) as tasks,
            (select groupArray(name) from (select name from system.tables where database = currentDatabase() order by name)) as tables`,
  )
}

/** Fills a table that the sink does not fill here with rows of every tenant. */
async function fillChanges(table: string): Promise<void> {
  const states = { run_changes: 'runs', task_changes: 'tasks', events_to_pauses: 'runs' }[table]
  if (table === 'agent_versions') return fillAgents()
  if (['deliveries', 'alert_states', 'score_changes'].includes(table)) return fillOutsideRuns(table)
  if (states === undefined) return
  for (const workspace of [OURS, THEIRS])
    await client.command(
      `insert into ${table.replace('events_to_', '')} (workspace_id, run_id, seq) select workspace_id, run_id, seq from ${states}
      where workspace_id = {workspace:UUID}`,
      { params: { workspace } },
    )
}

async function fillOutsideRuns(table: string): Promise<void> {
  for (const workspace of [OURS, THEIRS])
    await client.command(`insert into ${table} (workspace_id, seq) values ({workspace:UUID}, 1)`, {
      params: { workspace },
    })
}

async function fillAgents(): Promise<void> {
  for (const workspace of [OURS, THEIRS])
    await client.command(
      'insert into agent_versions (workspace_id, agent_id, version) values ({workspace:UUID}, {workspace:UUID}, 1)',
      { params: { workspace } },
    )
}
