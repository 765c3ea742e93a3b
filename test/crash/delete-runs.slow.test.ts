import { expect, test } from 'bun:test'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { placesOf } from '../support/run-places.ts'
import { spawnService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

const RUNS = 12

test('runs and scores whose deletion was answered are deleted although the service is killed at any moment', async () => {
  const [{ url: DATABASE_URL }, { url: CLICKHOUSE_URL }] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  const dataDir = await temporaryDirectory()
  const env = { DATABASE_URL, CLICKHOUSE_URL, DATA_DIR: dataDir }
  let service = await spawnService(env)
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const mark = `mark-${crypto.randomUUID()}`
  const runs = await Promise.all(
    Array.from({ length: RUNS }, async () => {
      const runId = await agent.start({ input: { mark } })
      await agent.events(runId, [{ type: 'a', payload: { mark } }])
      await agent.task(runId, { name: mark, status: 'completed' })
      await agent.end(runId)
      return runId
    }),
  )
  const kept = await agent.start()
  await agent.events(kept, [{ type: 'kept' }])
  const scores = Array.from({ length: RUNS }, (_, index) => ({
    run_id: kept,
    id: `s${index}`,
    name: 'good',
    text: mark,
  }))
  const last = { run_id: kept, id: 'kept', name: 'good', value: 1 }
  await tenant.api('POST', '/api/ingest/v1/scores', { scores: [...scores, last] })
  const erasures: string[] = []
  const places = (runId: string) =>
    placesOf({ databaseUrl: DATABASE_URL, clickhouseUrl: CLICKHOUSE_URL, dataDir }, tenant.workspaceId, runId, mark)
  const as = () => ({ key: tenant.workspaceKey })
  for (const [index, runId] of runs.entries()) {
    for (const path of [runId, `${kept}/scores/s${index}`]) {
      const { status, data } = await service.api('DELETE', `/api/v1/runs/${path}`, undefined, as())
      expect(status).toBe(202)
      erasures.push(data.erasure_id)
    }
    if (index % 4 !== 3) continue
    // Before the round of deletions, within it, and after it.
    await Bun.sleep([0, 1_100, 1_500][(index >> 2) % 3]!)
    service.kill()
    await service.exited
    service = await spawnService(env)
  }
  for (const erasureId of erasures)
    await eventually(
      async () => (await service.api('GET', `/api/v1/erasures/${erasureId}`, undefined, as())).data.status === 'done',
    )
  for (const runId of runs) expect(await places(runId)).toEqual([])
  const query = 'select (select count() from events) as events, (select groupArray(score_id) from scores) as scores'
  const { rows } = (await service.api('POST', '/api/v1/query', { query }, as())).data
  expect(rows).toEqual([{ events: 1, scores: ['kept'] }])
  expect(await places(kept)).not.toContain('journal')
})
