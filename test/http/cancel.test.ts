import { beforeAll, describe, expect, test } from 'bun:test'
import { verdict } from './auth-app.ts'
import { type RunsApp, runsApp } from './runs-app.ts'

let app: RunsApp
beforeAll(async () => {
  app = await runsApp()
})

const cancel = (runId: string, body?: unknown, key = app.workspace.key) =>
  app.call('POST', `/api/v1/runs/${runId}/cancel`, { key, body })

describe('cancel', () => {
  test('ends a live run and keeps the reason', async () => {
    const run = await app.start()
    const answer = await cancel(run.toUpperCase(), { reason: 'no longer needed' })
    expect(answer.status).toBe(200)
    expect(answer.data).toMatchObject({ run_id: run, status: 'cancelled', already: false })
    const { data } = await app.read(`runs/${run}`)
    expect(data).toMatchObject({ status: 'cancelled', error_message: 'no longer needed', output: null })
    expect(data.completed_at).toBe(answer.data.completed_at)
  })

  test("needs no body and accepts a key of the run's agent", async () => {
    expect((await cancel(await app.start())).data.status).toBe('cancelled')
    expect((await cancel(await app.start(), {}, app.agent.key)).data.status).toBe('cancelled')
  })

  test('is idempotent; cancelling a completed run and completing a cancelled one are CONFLICT', async () => {
    const run = await app.start()
    const first = await cancel(run)
    expect((await cancel(run, { reason: 'again' })).data).toEqual({ ...first.data, already: true })
    expect((await app.read(`runs/${run}`)).data.error_message).toBeNull()
    expect(verdict(await app.ingest('run/complete', { run_id: run }))).toBe('409 CONFLICT')
    const done = await app.start()
    await app.ingest('run/complete', { run_id: done })
    expect((await cancel(done)).error).toMatchObject({
      code: 'CONFLICT',
      message: 'run is already completed; it cannot become cancelled',
    })
  })

  test('cancels a run from every live status', async () => {
    for (const status of ['queued', 'running', 'awaiting_approval', 'awaiting_input']) {
      const run = await app.start()
      await app.sql`update runs set status = ${status}, started_at = ${status === 'queued' ? null : new Date()} where run_id = ${run}`
      const { data } = await cancel(run)
      expect(data).toMatchObject({ status: 'cancelled', already: false })
      expect(data.duration_ms === null).toBe(status === 'queued')
    }
  })

  test('a key of another agent is FORBIDDEN, a key of another workspace NOT_FOUND', async () => {
    const run = await app.start()
    const sibling = await app.newAgent(app.workspace.workspaceId)
    expect(verdict(await cancel(run, {}, sibling.key))).toBe('403 FORBIDDEN')
    expect(verdict(await cancel(run, {}, (await app.newWorkspace()).key))).toBe('404 NOT_FOUND')
    expect(verdict(await cancel('00000000-0000-7000-8000-000000000000'))).toBe('404 NOT_FOUND')
    expect(verdict(await cancel('x'))).toBe('400 VALIDATION_ERROR')
    expect(verdict(await cancel(run, { why: 'x' }))).toBe('400 VALIDATION_ERROR')
    expect((await app.read(`runs/${run}`)).data.status).toBe('running')
  })
})
