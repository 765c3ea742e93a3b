import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { type RunsApp, runsApp } from './runs-app.ts'

let app: RunsApp
let run: string
beforeAll(async () => {
  app = await runsApp()
  run = await app.start()
})

type Times = { readonly started_at: string | null; readonly completed_at: string | null }
/** A time far from the clock of the service, as the clock of a caller may be. */
const at = (second: number) => new Date(Date.UTC(2020, 0, 31, 9, 30, second)).toISOString()
const report = (task: object) => app.ingest('tasks', { run_id: run, task: { name: 'search', ...task } })

async function recordOf(id: string) {
  const { data } = await app.read(`runs/${run}/tasks?limit=200`)
  return data.items.find((task: { id: string }) => task.id === id)
}

/** Reports one task step by step; returns its times after each step. Throws if a report is rejected. */
async function timesAfter(...steps: object[]): Promise<readonly Times[]> {
  const id = crypto.randomUUID()
  const times: Times[] = []
  for (const step of steps) {
    app.clock.aheadMs += 1_000
    const answer = await report({ id, ...step })
    if (answer.error !== null) throw new Error(answer.error.message)
    const { started_at, completed_at } = await recordOf(id)
    times.push({ started_at, completed_at })
  }
  return times
}

describe('times of tasks', () => {
  test('default to the time of the status change', async () => {
    const id = crypto.randomUUID()
    const seen: string[] = []
    for (const status of ['pending', 'running', 'running', 'completed', 'completed']) {
      app.clock.aheadMs += 1_000
      await report({ id, status })
      seen.push((await recordOf(id)).updated_at)
    }
    expect(await recordOf(id)).toMatchObject({ started_at: seen[1], completed_at: seen[3], updated_at: seen[4] })
  })

  test('are null until the task starts and ends', async () => {
    const [pending, running] = await timesAfter({ status: 'pending' }, { status: 'running' })
    expect(pending).toEqual({ started_at: null, completed_at: null })
    expect(running).toEqual({ started_at: expect.any(String), completed_at: null })
    const [skipped] = await timesAfter({ status: 'skipped' })
    expect(skipped).toEqual({ started_at: null, completed_at: expect.any(String) })
  })

  test('of a task first reported as ended are both the time of that report', async () => {
    for (const status of ['completed', 'failed']) {
      const [times] = await timesAfter({ status })
      expect(times.started_at).toEqual(expect.any(String))
      expect(times.started_at).toBe(times.completed_at)
    }
  })

  test('can be reported in any RFC 3339 form, also far in the past or future', async () => {
    const [whole] = await timesAfter({
      status: 'completed',
      started_at: '2020-01-31T10:30:00.1239+01:00',
      completed_at: '2020-01-31t09:30:01z',
    })
    expect(whole).toEqual({ started_at: '2020-01-31T09:30:00.123Z', completed_at: at(1) })
    const steps = await timesAfter({ status: 'running', started_at: at(1) }, { status: 'failed', completed_at: at(9) })
    expect(steps).toEqual([
      { started_at: at(1), completed_at: null },
      { started_at: at(1), completed_at: at(9) },
    ])
    const future = '2200-01-01T00:00:00.000Z'
    const [begun, ended] = await timesAfter({ status: 'running', started_at: future }, { status: 'completed' })
    expect([begun, ended]).toEqual([
      { started_at: future, completed_at: null },
      { started_at: future, completed_at: future },
    ])
  })

  test('that are reported replace the defaults, and are kept when a later report omits them', async () => {
    const steps = await timesAfter(
      { status: 'completed' },
      { status: 'completed', started_at: at(3), completed_at: at(5) },
      { status: 'completed', output: { late: true } },
      { status: 'completed', started_at: at(4) },
    )
    expect(steps.slice(1)).toEqual([
      { started_at: at(3), completed_at: at(5) },
      { started_at: at(3), completed_at: at(5) },
      { started_at: at(4), completed_at: at(5) },
    ])
  })

  test('a reported end before the default start moves the start, and a start after the default end moves the end', async () => {
    const [, ended] = await timesAfter({ status: 'running' }, { status: 'completed', completed_at: at(5) })
    expect(ended).toEqual({ started_at: at(5), completed_at: at(5) })
    const [alone] = await timesAfter({ status: 'failed', completed_at: at(5) })
    expect(alone).toEqual({ started_at: at(5), completed_at: at(5) })
    const [, late] = await timesAfter(
      { status: 'completed' },
      { status: 'completed', started_at: '2200-01-01T00:00:00Z' },
    )
    expect(late.completed_at).toBe('2200-01-01T00:00:00.000Z')
  })

  test('an out-of-order report does not change them', async () => {
    const steps = await timesAfter(
      { status: 'completed', started_at: at(3), completed_at: at(5) },
      { status: 'running', started_at: at(1) },
    )
    expect(steps[1]).toEqual(steps[0])
  })

  test('are the same in the API, in SQL and in the change table that feeds replay', async () => {
    const id = crypto.randomUUID()
    await report({ id, status: 'failed', started_at: at(1), completed_at: at(2) })
    const record = await recordOf(id)
    await app.relay.flush()
    const find = () =>
      app.client.query<Times>(
        'select started_at, completed_at from tasks final where task_id = {id:UUID} union all select started_at, completed_at from task_changes where task_id = {id:UUID}',
        { params: { id } },
      )
    await eventually(async () => (await find()).length === 2)
    for (const row of await find())
      expect([row.started_at, row.completed_at]).toEqual(
        [record.started_at, record.completed_at].map((time: string) => time.replace('T', ' ').replace('Z', '')),
      )
  })
})

describe('rejects with a VALIDATION_ERROR', () => {
  const rejected: [string, object, string][] = [
    [
      'a start that is not a timestamp',
      { status: 'running', started_at: 'yesterday' },
      'task.started_at: expected an RFC 3339 timestamp of the years 1900 to 2299; got "yesterday"',
    ],
    [
      'an end that is a number',
      { status: 'completed', completed_at: 1_700_000_000 },
      'task.completed_at: expected an RFC 3339 timestamp of the years 1900 to 2299; got 1700000000',
    ],
    [
      'an end before the start',
      { status: 'completed', started_at: at(5), completed_at: at(4) },
      `task.completed_at: expected no time before task.started_at; got "${at(4)}"`,
    ],
    [
      'the start of a pending task',
      { status: 'pending', started_at: at(5) },
      `task.started_at: a pending task has not begun; got "${at(5)}"`,
    ],
    [
      'the end of a running task',
      { status: 'running', completed_at: at(5) },
      `task.completed_at: a running task has not ended; got "${at(5)}"`,
    ],
  ]
  test.each(rejected)('%s', async (_, task, message) => {
    const id = crypto.randomUUID()
    expect((await report({ id, ...task })).error).toMatchObject({ code: 'VALIDATION_ERROR', message })
    expect(await recordOf(id)).toBeUndefined()
  })

  test('an end before a start reported in an earlier call, and changes nothing', async () => {
    const id = crypto.randomUUID()
    await report({ id, status: 'running', started_at: at(5) })
    const before = await recordOf(id)
    const answer = await report({ id, status: 'completed', completed_at: at(4), output: { a: 1 } })
    expect(answer.status).toBe(400)
    expect(answer.error).toMatchObject({
      code: 'VALIDATION_ERROR',
      message: 'task.completed_at: expected no time before the started_at that was reported before',
    })
    expect(await recordOf(id)).toEqual(before)
  })

  test('a start after an end reported in an earlier call', async () => {
    const id = crypto.randomUUID()
    await report({ id, status: 'completed', completed_at: at(5) })
    expect((await report({ id, status: 'completed', started_at: at(6) })).error?.message).toBe(
      'task.started_at: expected no time after the completed_at that was reported before',
    )
    // Both corrected in one call.
    await report({ id, status: 'completed', started_at: at(6), completed_at: at(7) })
    expect(await recordOf(id)).toMatchObject({ started_at: at(6), completed_at: at(7) })
  })
})
