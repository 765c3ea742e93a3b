import { expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { reportingClient } from '../support/report-service.ts'
import { freePort, spawnService } from '../support/service.ts'

const RUNS = 8
const KILLS = 3
/** Acknowledged before each kill, so that it happens in the middle of the load. */
const BETWEEN_KILLS = 5_000

test('every report is there exactly once, in order, although the service is killed while they are sent', async () => {
  const PORT = String(freePort())
  let service = await spawnService({ PORT, LOG_LEVEL: 'silent' })
  const { api, workspaceKey, dataDir, url } = service
  const { agentId, agentKey } = await newAgent(api)
  const { client, errors } = reportingClient({
    url,
    key: agentKey,
    agentId,
    flushIntervalMs: 10,
    whenFull: 'wait',
    waitTimeoutMs: 600_000,
  })
  let isOver = false
  const counts = new Map<string, number>()
  const working = Array.from({ length: RUNS }, async () => {
    while (!isOver) {
      await client.run({ input: {} }, async (run) => {
        await run.task('work', async () => {
          let i = 0
          for (; i < 3_000 && !isOver; i++) {
            await run.event('step', { i })
            if (i % 100 === 0) await Bun.sleep(1)
          }
          counts.set(run.runId, i)
        })
      })
    }
  })
  for (let kill = 0; kill < KILLS; kill++) {
    const before = client.stats.acknowledged
    await eventually(() => client.stats.acknowledged > before + BETWEEN_KILLS)
    service.kill('SIGKILL')
    await service.exited
    service = await spawnService({
      PORT,
      DATA_DIR: dataDir,
      BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
      LOG_LEVEL: 'silent',
    })
  }
  isOver = true
  await Promise.all(working)
  expect(await client.flush()).toBe(true)
  const { retries, ...stats } = client.stats
  expect(errors.filter(({ reason }) => reason !== 'delayed')).toEqual([])
  expect(stats).toMatchObject({ queued: 0, queuedBytes: 0, rejected: 0, dropped: 0 })
  expect(retries).toBeGreaterThan(0)
  const rows = await eventually(async () => {
    const { data } = await service.api('POST', '/api/v1/query', {
      query: `select toString(r.run_id) as run_id, r.status as status, e.n as n, e.misplaced as misplaced, t.n as tasks from runs r
        left join (select run_id, count() as n, countIf(i != row) as misplaced from (
          select run_id, payload.i::UInt32 as i, row_number() over (partition by run_id order by seq) - 1 as row from events
        ) group by run_id) e using run_id
        left join (select run_id, count() as n from tasks where status = 'completed' group by run_id) t using run_id`,
      wait_for: client.stats.lastSeq,
    })
    return data !== null && data.rows.length === counts.size && data.rows.every(isCompleted) && data.rows
  })
  const expected = [...counts].map(([run_id, n]) => ({ run_id, status: 'completed', n, misplaced: 0, tasks: 1 }))
  const byId = (a: { run_id: string }, b: { run_id: string }) => a.run_id.localeCompare(b.run_id)
  expect(rows.toSorted(byId)).toEqual(expected.sort(byId))
  await client.close()
})

function isCompleted({ status }: { status: string }): boolean {
  return status === 'completed'
}
