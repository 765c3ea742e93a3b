import { expect, test } from 'bun:test'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import { sessionSettings } from '../../src/sql/analytics/session-settings.ts'
import { scopedStatement } from '../../src/sql/analytics/views.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { createApi } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant, type Tenant } from '../support/feeds.ts'
import { OPERATOR_TOKEN, rowsInSql, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** Counts that ClickHouse answers from the projection `hourly_counts` are those of the events that are there. */

const DAY_MS = 86_400_000
const NOON = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2
const AS_OPERATOR = { key: OPERATOR_TOKEN }
const COUNTS = `select toString(toStartOfHour(received_at)) as hour, agent_id, type, level, count() as n from events
  group by hour, agent_id, type, level order by hour, agent_id, type, level`

/** One service and its stores, restarted for each day. */
async function startDays() {
  let service: TestService | undefined
  const start = async (day: number) => {
    const stores = service && {
      DATA_DIR: service.dataDir,
      DATABASE_URL: service.databaseUrl,
      CLICKHOUSE_URL: service.clickhouseUrl,
      BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey,
    }
    await service?.stop()
    service = await startTestService({ ...stores }, { clock: { now: () => NOON + day * DAY_MS } })
    return service
  }
  const first = await start(0)
  const columnar = createColumnarClient(remoteClickHouse(first.clickhouseUrl))
  atEnd(() => columnar.close())
  return { first, start, columnar }
}

/** Reports events of several types, and some of them twice. */
async function report(tenant: Tenant, type: string, count: number): Promise<void> {
  const agent = await newReporter(tenant.api)
  const runId = await agent.start()
  const events = Array.from({ length: count }, (_, n) => {
    return { id: `${type}-${n}`, type: n % 2 === 0 ? type : 'odd', level: n % 3 === 0 ? 'error' : 'info' }
  })
  const { last_seq } = await agent.events(runId, events)
  expect(await agent.events(runId, events.slice(0, 5))).toMatchObject({ duplicates: 5 })
  await eventually(async () =>
    expect(await rowsInSql(tenant.api, `select 1 from events where seq = ${last_seq}`)).toHaveLength(1),
  )
}

/** Merges parts: the merge computes the projection. */
const merge = (columnar: ColumnarClient) => columnar.command('optimize table events final')

/** Expects that a tenant's counts equal those of a scan, and that there are as many events as `total`. */
async function expectCounts(columnar: ColumnarClient, tenant: Tenant, total: number): Promise<void> {
  const counted = await rowsInSql(tenant.api, COUNTS)
  const scan = await columnar.query<{ n: number }>(
    `select toString(toStartOfHour(received_at)) as hour, agent_id, toString(type) as type, toString(level) as level,
       count() as n from events where workspace_id = {workspace:UUID} group by all order by hour, agent_id, type, level`,
    {
      params: { workspace: tenant.workspaceId },
      settings: { optimize_use_projections: 0, date_time_output_format: 'iso' },
    },
  )
  expect(counted).toEqual(scan)
  expect(scan.reduce((sum, { n }) => sum + n, 0)).toBe(total)
}

/** Whether ClickHouse would answer the counts of a tenant from the projection. */
async function usesProjection({ database, statementText }: ColumnarClient, { workspaceId }: Tenant): Promise<boolean> {
  const query = {
    text: COUNTS,
    jsonPaths: null,
    numberPaths: [],
    typeParameters: [],
    isInfallible: true,
    tables: [],
    usesWholeRows: false,
  }
  const plan = await statementText(`explain ${scopedStatement(query, database, workspaceId)}`, {
    settings: sessionSettings(database, workspaceId, DEFAULT_QUERY_CAPS, query),
  })
  return plan.includes('hourly_counts')
}

test('counts by the projection are those of a scan after merges, duplicates, retention and an erasure', async () => {
  const { first, start, columnar } = await startDays()
  const tenants = { short: await newTenant(first), gone: await newTenant(first), other: await newTenant(first) }
  const at = (service: TestService, tenant: Tenant): Tenant => {
    return { ...tenant, url: service.url, api: createApi(service.url, tenant.workspaceKey) }
  }
  const expectTotals = async (service: TestService, totals: Partial<Record<keyof typeof tenants, number>>) => {
    for (const [name, total] of Object.entries(totals))
      await expectCounts(columnar, at(service, tenants[name as keyof typeof tenants]), total)
  }
  for (const [name, tenant] of Object.entries(tenants))
    for (const round of [1, 2]) await report(tenant, `${name}-${round}`, 20)
  await expectTotals(first, { short: 40, gone: 40, other: 40 })
  await merge(columnar)
  for (const tenant of Object.values(tenants)) expect(await usesProjection(columnar, tenant)).toBe(true)
  await expectTotals(first, { short: 40, gone: 40, other: 40 })
  // An error must not depend on the rows of another workspace, which share granules of the projection.
  for (const query of [
    "select count() as n from events where throwIf(type = 'other-1') = 0",
    "select throwIf(type = 'other-1') as thrown, count() as n from events group by thrown",
    "select intDiv(1, type != 'other-1') as one, count() as n from events group by one",
  ])
    expect(await rowsInSql(tenants.short.api, query)).toEqual([expect.objectContaining({ n: 40 })])

  // Merged and new parts, of two days.
  let service = await start(1)
  for (const tenant of Object.values(tenants)) await report(at(service, tenant), 'later', 7)
  await expectTotals(service, { short: 47, gone: 47, other: 47 })

  await service.api('PATCH', `/api/v1/workspaces/${tenants.short.workspaceId}`, { retention_days: 1 }, AS_OPERATOR)
  service = await start(2)
  service = await start(3)
  const left = () => rowsInSql(at(service, tenants.short).api, 'select count() as n from events')
  await eventually(async () => expect(await left()).toEqual([{ n: 0 }]))
  await expectTotals(service, { short: 0, gone: 47, other: 47 })
  expect(await usesProjection(columnar, tenants.other)).toBe(true)

  await service.api('DELETE', `/api/v1/workspaces/${tenants.gone.workspaceId}`, undefined, AS_OPERATOR)
  await eventually(async () =>
    expect(
      await columnar.query('select count() as n from events where workspace_id = {id:UUID}', {
        params: { id: tenants.gone.workspaceId },
      }),
    ).toEqual([{ n: 0 }]),
  )
  await expectTotals(service, { short: 0, other: 47 })
  expect(await usesProjection(columnar, tenants.other)).toBe(true)
  await merge(columnar)
  await expectTotals(service, { short: 0, other: 47 })
  await service.stop()
})
