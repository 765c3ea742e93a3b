import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createLog } from '../../src/log.ts'
import { connectPostgres, type Sql } from '../../src/postgres/connect.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type ScriptedAgent, startBackends } from '../support/hosted-rig.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** What waits for people for years must cost nothing but rows. */

const PAUSED = 20_000

test('twenty thousand paused runs cost no memory and no time at the start, and any of them can be resumed', async () => {
  const backends = startBackends()
  const first = await startTestService(backends.env)
  const sql = connectPostgres(first.databaseUrl, { log: createLog('error'), max: 1, statementTimeoutMs: 60_000 })
  atEnd(() => sql.end({ timeout: 1 }))
  const agent = await backends.agent(first, [callTurn(['pay', { n: 1 }]), { text: 'paid' }], {
    tools: [backends.tools.tool('pay', { requires_approval: true })],
  })
  const { data } = await agent.invoke()
  await first.stop()
  const { dataDir, databaseUrl, clickhouseUrl, workspaceKey } = first
  const again = () =>
    startTestService({
      ...backends.env,
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      CLICKHOUSE_URL: clickhouseUrl,
      BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
    })

  const few = await measured(again, sql, agent)
  await few.service.stop()
  await multiply(sql, data.run_id)
  const many = await measured(again, sql, agent)
  expect(many.startMs).toBeLessThan(few.startMs + 500)
  expect(many.heapBytes - few.heapBytes).toBeLessThan(4 * 1024 * 1024)

  const [{ pause_id, run_id }] = await sql<[{ pause_id: string; run_id: string }]>`
    select pause_id, run_id from pauses where status = 'pending' order by pause_id offset ${PAUSED / 2} limit 1`
  const { api } = many.service
  const page = await api('GET', '/api/v1/approvals?status=pending&limit=200')
  expect(page.data.items).toHaveLength(200)
  const startedAt = performance.now()
  const answer = await api('POST', `/api/v1/approvals/${pause_id}/approve`, {})
  expect(answer.data).toMatchObject({ run_id, status: 'completed', output: { text: 'paid' } })
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  await untilStatus(many.service, run_id, 'completed')
  await many.service.stop()
})

/** A start, and what it holds once the watch over what expires has come round, and a run has gone its way. */
async function measured(start: () => Promise<TestService>, sql: Sql, agent: ScriptedAgent) {
  const startedAt = performance.now()
  const service = await start()
  const startMs = performance.now() - startedAt
  const { data } = await service.api('POST', `/api/v1/agents/${agent.agentId}/invoke`, {})
  await sql`update pauses set expires_at = now() where run_id = ${data.run_id}`
  await untilStatus(service, data.run_id, 'timed_out')
  Bun.gc(true)
  return { service, startMs, heapBytes: heapStats().heapSize }
}

/** Copies of a paused run, under ids of their own. */
async function multiply(sql: Sql, runId: string): Promise<void> {
  await sql`create temporary table copies as
    select gen_random_uuid() as run_id, gen_random_uuid() as call_id, gen_random_uuid() as pause_id
    from generate_series(1, ${PAUSED})`
  const tables = { runs: ['run_id'], hosted_runs: ['run_id', 'root_run_id'], run_steps: ['run_id'] }
  for (const [table, ids] of Object.entries(tables)) await copy(sql, table, runId, ids, [])
  await copy(sql, 'tool_calls', runId, ['run_id'], ['call_id'])
  await copy(sql, 'pauses', runId, ['run_id'], ['call_id', 'pause_id'])
}

async function copy(sql: Sql, table: string, runId: string, runIds: string[], ids: string[]): Promise<void> {
  const columns = await sql<{ name: string }[]>`
    select column_name as name from information_schema.columns
    where table_schema = current_schema() and table_name = ${table} order by ordinal_position`
  const names = columns.map(({ name }) => name)
  const values = names.map((name) =>
    runIds.includes(name) ? 'c.run_id' : ids.includes(name) ? `c.${name}` : `o.${name}`,
  )
  await sql.unsafe(
    `insert into ${table} (${names.join(', ')}) select ${values.join(', ')} from ${table} o, copies c where o.run_id = $1`,
    [runId],
  )
}
