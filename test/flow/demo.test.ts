import { expect, test } from 'bun:test'
import { runFleet } from '../../src/cli/demo/fleet.ts'
import { startTestService } from '../support/service.ts'

test('the demo reports realistic runs, and SQL contains exactly what was reported', async () => {
  const service = await startTestService()
  const stop = new AbortController()
  const report = await runFleet(
    { url: service.url, key: service.workspaceKey, agents: 3, rate: 40, durationSeconds: 1.5, seed: 7 },
    { stop: stop.signal },
  )
  const { reported, total, ackMs, lastProblem } = report.progress
  expect({ differences: report.differences, problem: lastProblem() }).toEqual({ differences: [], problem: undefined })
  expect(report.keysRevoked).toBe(true)
  expect([total('queued'), total('rejected'), total('dropped')]).toEqual([0, 0, 0])
  expect(reported['runs completed']).toBeGreaterThan(20)
  expect(reported['runs failed']).toBeGreaterThan(0)
  expect(reported.runs).toBe(reported['runs completed'] + reported['runs failed'])
  expect(reported['tasks skipped']).toBeGreaterThan(0)
  expect(reported.events).toBeGreaterThan(200)
  expect(ackMs(99)).toBeGreaterThan(ackMs(0.1))

  const children = await service.api('POST', '/api/v1/query', {
    query: 'select countIf(parent_run_id is not null) as children from runs',
  })
  expect(Number(children.data.rows[0].children)).toBeGreaterThan(0)
})
