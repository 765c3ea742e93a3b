import { beforeAll, expect, test } from 'bun:test'
import { type CheckedQuery, createGuard, type SqlGuard } from '../../src/sql/analytics/guard.ts'
import { explainFailure } from '../../src/sql/analytics/problems.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import { sessionSettings } from '../../src/sql/analytics/session-settings.ts'
import { scopeDatabase, scopedStatement } from '../../src/sql/analytics/views.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { fill, OURS, THEIRS } from '../http/query-tenants.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'

/** What the scope of a query contains. */

let client: ColumnarClient
let guard: SqlGuard

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  guard = createGuard(client, (error) => explainFailure(error, DEFAULT_QUERY_CAPS))
  await fill(client, OURS, 'ours')
  await fill(client, THEIRS, 'SECRET')
})

test('a query gets the columns that it names, and its answer is that of all columns', async () => {
  for (const [query, columns] of Object.entries({
    'select count() from events': 'seq',
    "select 'payload' as x from events": 'seq',
    'select max(occurred_at) as x from events': 'occurred_at',
    'select sum(payload.a) as x, min(e.level) from events e': undefined,
    'select r.status, count() from runs r join events e using (run_id) group by all': undefined,
    'select run_id as x, x = agent_id from runs order by x': undefined,
  })) {
    const checked = await guard.check(query)
    expect(checked.usesWholeRows, query).toBe(false)
    if (columns !== undefined) expect(statement(checked), query).toContain(`(SELECT ${columns} FROM`)
    expect(await answer(checked), query).toEqual(await answer({ ...checked, usesWholeRows: true }))
  }
  for (const query of [
    'select * from events',
    'from events select *',
    'select e.* from events e',
    'select e.* except (payload) from events e',
    "select columns('_at$') from events",
    'select count() from runs natural join tasks',
    'select (select count() from gaps) as n, * from runs',
    'select count() from (select run_id from runs) where run_id in (select run_id from (select * from events))',
  ])
    expect((await guard.check(query)).usesWholeRows, query).toBe(true)
})

function statement(checked: CheckedQuery): string {
  return scopedStatement(checked, client.database, OURS, { rows: 100 })
}

function answer(checked: CheckedQuery): Promise<unknown[]> {
  return rows(statement(checked))
}

function rows(sql: string): Promise<unknown[]> {
  const settings = sessionSettings(client.database, OURS)
  return client.query(sql, { settings, database: scopeDatabase(client.database) })
}
