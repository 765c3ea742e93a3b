import { expect, test } from 'bun:test'
import { runFleet } from '../../src/cli/demo/fleet.ts'
import { startTestService } from '../support/service.ts'

test('the demo reports realistic runs, and SQL contains exactly what was acknowledged', async () => {
  const service = await startTestService()
  const stop = new AbortController()
  const report = await runFleet(
    { url: service.url, key: service.workspaceKey, agents: 3, rate: 40, durationSeconds: 1.5, seed: 7 },
    { stop: stop.signal },
  )
  const { counters, verification } = report
  expect(verification.comparisons.filter(({ acknowledged, inSql }) => acknowledged !== inSql)).toEqual([])
  expect(verification.holds).toBe(true)
  expect(counters).toMatchObject({ rejected: 0, unconfirmed: 0, runs: { running: 0 } })
  expect(counters.runs.completed).toBeGreaterThan(20)
  expect(counters.runs.failed).toBeGreaterThan(0)
  expect(counters.events).toBeGreaterThan(200)
  expect([...counters.tasks.keys()].sort()).toEqual(['completed', 'failed', 'pending', 'running', 'skipped'])

  const children = await service.api('POST', '/api/v1/query', {
    query: 'select countIf(parent_run_id is not null) as children from runs',
  })
  expect(Number(children.data.rows[0].children)).toBeGreaterThan(0)
})
