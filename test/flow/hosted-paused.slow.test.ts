import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type ScriptedAgent, startBackends } from '../support/hosted-rig.ts'
import { spawnService, startTestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** A paused run that waits for years must cost nothing but rows. */

const PAUSED = 20_000
/** Two services in the same state differ by a quarter of this. An object with the ids of a run alone is larger. */
const HEAP_BYTES_PER_RUN_MAX = 200
const HEAP_READINGS = 5
const HEAP_PROBE = join(import.meta.dir, '..', 'support', 'heap-probe.ts')

test('twenty thousand paused runs cost no memory and no startup time, and each can be resumed', async () => {
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
  const env = {
    ...backends.env,
    DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
  }

  const few = await measured(env, sql, agent)
  await multiply(sql, data.run_id)
  const many = await measured(env, sql, agent)
  expect(many.rowsRead - few.rowsRead).toBeLessThan(PAUSED / 10)
  expect((many.heapBytes - few.heapBytes) / PAUSED).toBeLessThan(HEAP_BYTES_PER_RUN_MAX)

  const [{ pause_id, run_id }] = await sql<[{ pause_id: string; run_id: string }]>`
    select pause_id, run_id from pauses where status = 'pending' order by pause_id offset ${PAUSED / 2} limit 1`
  const readBefore = await rowsRead(sql)
  const service = await startTestService(env)
  const page = await service.api('GET', '/api/v1/approvals?status=pending&limit=200')
  expect(page.data.items).toHaveLength(200)
  const answer = await service.api('POST', `/api/v1/approvals/${pause_id}/approve`, {})
  expect(answer.data).toMatchObject({ run_id, status: 'completed', output: { text: 'paid' } })
  await untilStatus(service, run_id, 'completed')
  await service.stop()
  expect((await rowsRead(sql)) - readBefore).toBeLessThan(PAUSED / 10)
})

/**
 * The life of one service: its heap after the expiry of a pause and the end of a run, and the number of rows Postgres
 * read for it. A process of its own, because other tests leave objects in this one and release them at any time. Rows
 * rather than seconds, which depend on the load of the machine.
 */
async function measured(env: Record<string, string>, sql: Sql, agent: ScriptedAgent) {
  const before = await rowsRead(sql)
  const unix = join(await temporaryDirectory(), 'heap')
  const service = await spawnService({ ...env, HEAP_PROBE: unix }, { preload: HEAP_PROBE })
  const { data } = await service.api('POST', `/api/v1/agents/${agent.agentId}/invoke`, {})
  await sql`update pauses set expires_at = now() where pause_id = ${data.awaiting_approval.approval_id}`
  await untilStatus(service, data.run_id, 'timed_out')
  // The least of several: what is in progress during one reading does not count.
  let heapBytes = Number.POSITIVE_INFINITY
  for (let reading = 0; reading < HEAP_READINGS; reading++) {
    const response = await fetch('http://heap/', { unix })
    heapBytes = Math.min(heapBytes, Number(await response.text()))
  }
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
  return { heapBytes, rowsRead: (await rowsRead(sql)) - before }
}

/** Rows of this database read so far. Only reads of closed connections are certain to be counted. */
async function rowsRead(sql: Sql): Promise<number> {
  await eventually(async () => {
    const others = await sql`
      select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and backend_type = 'client backend'`
    return others.length === 0
  })
  await sql`select pg_stat_force_next_flush()`
  const [{ rows }] = await sql<[{ rows: string }]>`
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) as rows from pg_stat_user_tables`
  return Number(rows)
}

/** Copies a paused run under new ids. */
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
