import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { freshDatabase } from '../support/postgres.ts'
import { invoking } from './invokes.ts'
import { runLoad } from './load.ts'
import { memoryOf } from './memory.ts'
import { ms, type Report, whole } from './report.ts'
import { startBenchService } from './servers.ts'

const PAUSED = 100_000
const TARGET_MIB = 10
const INVOKE_SECONDS = 3
/** Until the allocator has returned unused memory, and the service has polled many times. */
const SETTLE_MS = 12_000
const INSERT_MS_MAX = 120_000

/** Paused runs are only rows: measures what many of them cost a running service. */
export async function measurePaused(modelUrl: string, report: Report): Promise<void> {
  report.heading(`invokes: ${whole(PAUSED)} paused runs`)
  const { url } = await freshDatabase()
  const service = await startBenchService({ OPENAI_BASE_URL: modelUrl, DATABASE_URL: url })
  const requests = [await invoking(service, 'instant')]
  const load = { port: service.port, connections: 1, seconds: INVOKE_SECONDS, requests }
  const { path } = await invoking(service, 'asks')
  const { run_id: runId } = await service.call('POST', path, { background: true })
  const sql = connectPostgres(url, { log: createLog('error'), statementTimeoutMs: INSERT_MS_MAX })
  // The first invokes grow the heap; the growth from as many more of them is not caused by the paused runs.
  await sample()
  const early = await sample()
  const before = await sample()
  await multiply(sql, String(runId))
  const after = await sample()
  await sql.end()
  const grownMiB = after.residentMiB - before.residentMiB
  const baselineMiB = before.residentMiB - early.residentMiB
  report.line(`an invoke takes p50 ${ms(before.p50)} without them, ${ms(after.p50)} beside them`)
  report.target(
    `${whole(PAUSED)} paused runs: ${grownMiB.toFixed(1)} MiB more than ${whole(before.residentMiB)}, ` +
      `without them ${baselineMiB.toFixed(1)} more, target at most ${TARGET_MIB} beyond that`,
    grownMiB - Math.max(baselineMiB, 0) <= TARGET_MIB,
  )

  async function sample() {
    const { p50 } = await runLoad(load)
    await Bun.sleep(SETTLE_MS)
    return { p50, residentMiB: (await memoryOf(service.pid)).residentMiB }
  }
}

/** Copies a paused run with all its rows. */
async function multiply(sql: Sql, runId: string): Promise<void> {
  while ((await sql`select from hosted_runs where run_id = ${runId} and phase = 'paused'`).length === 0)
    await Bun.sleep(20)
  await sql.begin(async (tx) => {
    await tx`
      create temporary table copies on commit drop as
      select gen_random_uuid() as run_id, gen_random_uuid() as call_id, gen_random_uuid() as pause_id
      from generate_series(1, ${PAUSED}::int)`
    const copied: readonly (readonly [table: string, ids: string])[] = [
      ['runs', `'run_id', c.run_id`],
      ['hosted_runs', `'run_id', c.run_id, 'root_run_id', c.run_id`],
      ['run_steps', `'run_id', c.run_id`],
      ['tool_calls', `'run_id', c.run_id, 'call_id', c.call_id`],
      ['pauses', `'run_id', c.run_id, 'call_id', c.call_id, 'pause_id', c.pause_id`],
    ]
    for (const [table, ids] of copied)
      await tx.unsafe(
        `insert into ${table} select copy.* from copies c, ${table} t,
           lateral jsonb_populate_record(t, jsonb_build_object(${ids})) copy
         where t.run_id = $1`,
        [runId],
      )
  })
  await sql`analyze`
}
