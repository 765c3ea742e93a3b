import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { NIL_UUID } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { createApi } from '../support/api.ts'
import { LiveStream, newReporter, newTenant, type Tenant } from '../support/feeds.ts'
import { openLocal } from '../support/journals.ts'
import { alertRow, deliveryRow } from '../support/rows.ts'
import { allInSql, dataOf, rowsInSql, startTestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** Rows of the journal that belong to no run: deliveries, and the events that report transitions of alerts. */

async function rowsOf({ api }: Pick<Tenant, 'api'>, query: string): Promise<Record<string, unknown>[]> {
  await allInSql(api)
  return rowsInSql(api, query)
}

/** What a feed shows from the beginning, up to an event of this type. */
async function typesIn(tenant: Tenant, key: string, last: string): Promise<(string | undefined)[]> {
  const stream = await LiveStream.open(tenant, '/api/v1/stream?after=0&kind=event', { key })
  await stream.until(() => stream.items.some(({ event }) => event?.type === last))
  await stream.close()
  return stream.items.map(({ event }) => event?.type)
}

test('deliveries that were durable when the process ended are in SQL once, and in no feed', async () => {
  const first = await startTestService()
  const tenant = await newTenant(first)
  const agent = await newReporter(tenant.api)
  const run = await agent.start()
  await agent.events(run, [{ type: 'before' }])
  await first.stop()

  // The last that the process did before it ended: no consumer has read these.
  const journal = await openLocal(join(first.dataDir, 'journal'))
  const { workspaceId } = tenant
  const rows = [
    deliveryRow(workspaceId, { run_id: run, status: 'pending', attempt: 1, http_status: null, response: null }),
    deliveryRow(workspaceId, { run_id: null, activity_seq: 7, type: 'alert.fired', attempt: 2 }),
    deliveryRow(Bun.randomUUIDv7()),
  ]
  await Promise.all([journal.appendDeliveries(rows.slice(0, 2)), journal.appendDeliveries(rows.slice(2))])
  await journal.close()

  const columns = ['delivery_id', 'webhook_id', 'type', 'run_id', 'attempt', 'status', 'http_status', 'response']
  const query = `select ${columns.join(', ')}, seq from deliveries order by attempt`
  const expected = rows.slice(0, 2).map((row) => ({
    ...Object.fromEntries(Object.entries(row).filter(([name]) => columns.includes(name))),
    seq: row.activity_seq,
  }))
  for (let start = 1; start <= 2; start++) {
    const service = await startTestService(dataOf(first))
    const again = { ...tenant, url: service.url, api: createApi(service.url, tenant.workspaceKey) }
    expect(await rowsOf(again, query)).toEqual(expected)
    const after = await newReporter(again.api)
    await after.events(await after.start(), [{ type: `start ${start}` }])
    const starts = Array.from({ length: start }, (_, n) => `start ${n + 1}`)
    expect(await typesIn(again, tenant.workspaceKey, `start ${start}`)).toEqual(['before', ...starts])
    await service.stop()
  }
})

test('a workspace event is in SQL, and neither feeds nor searches nor runs show it', async () => {
  const service = await startTestService()
  const [tenant, other] = [await newTenant(service), await newTenant(service)]
  const agent = await newReporter(tenant.api)
  const alert = Bun.randomUUIDv7()
  const payload = {
    ...{ alert_id: alert, name: 'peculiar', series: { agent: 'a' }, state: 'firing', previous_state: 'ok', value: 3 },
    ...{ at: '2026-01-31T09:30:00.000Z', tick: '2026-01-31T09:30:00.000Z', rows: [], row_count: 0, notify: [] },
  }
  const sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  const { workspaceId } = tenant
  const body = RawJson.of(alertRow(workspaceId, { payload: JSON.stringify(payload) }))
  await sql`insert into outbox (workspace_id, kind, body) values (${workspaceId}, 'event', ${body}::json)`
  await allInSql(service.api)
  // What an agent reports itself is not a transition.
  const run = await agent.start()
  await agent.events(run, [{ type: 'alert.fired', payload }])

  expect(await rowsOf(tenant, 'select type, run_id, agent_id from events order by seq')).toEqual([
    { type: 'alert.fired', run_id: NIL_UUID, agent_id: NIL_UUID },
    { type: 'alert.fired', run_id: run, agent_id: agent.agentId },
  ])
  const transitions = 'select alert_id, series, state, previous_state, value, at from alert_states'
  expect(await rowsOf(tenant, transitions)).toEqual([
    {
      ...{ alert_id: alert, series: '{"agent":"a"}', state: 'firing' },
      previous_state: 'ok',
      value: 3,
      at: expect.any(String),
    },
  ])
  expect(await rowsOf(other, transitions)).toEqual([])

  await agent.events(run, [{ type: 'last' }])
  for (const key of [tenant.workspaceKey, agent.agentKey])
    expect(await typesIn(tenant, key, 'last')).toEqual(['alert.fired', 'last'])
  const { data: found } = await tenant.api('GET', '/api/v1/runs?q=peculiar')
  expect(found.items.map(({ run_id }: { run_id: string }) => run_id)).toEqual([run])
  for (const path of ['', '/events', '/tasks', '/stream'])
    expect((await tenant.api('GET', `/api/v1/runs/${NIL_UUID}${path}`)).status).toBe(404)
  const start = { agent_id: agent.agentId, run_id: NIL_UUID }
  const refused = await tenant.api('POST', '/api/ingest/v1/run/start', start, { key: agent.agentKey })
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('stands for no run')])
})
