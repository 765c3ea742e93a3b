import { beforeAll, describe, expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { reportingClient } from '../support/report-service.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Reporting with the client library (docs/client.md#reporting), to the running service. */

let service: TestService
let agent: { agentId: string; agentKey: string }
beforeAll(async () => {
  service = await startTestService()
  agent = await newAgent(service.api)
})

const newClient = (options: object = {}) =>
  reportingClient({ url: service.url, key: agent.agentKey, agentId: agent.agentId, ...options })

const read = async (path: string) => (await service.api('GET', `/api/v1/runs/${path}`)).data

test('a start and an end that are reported twice at once are both settled, and take nothing with them', async () => {
  const { client, errors } = newClient()
  const runId = crypto.randomUUID()
  for (const text of ['one', 'two']) {
    const run = client.startRun({ runId })
    run.event('step', { text })
    run.complete({ text: 'done' })
  }
  expect(await client.flush(20_000)).toBe(true)
  expect(errors).toEqual([])
  expect(client.stats).toMatchObject({ queued: 0, queuedBytes: 0, acknowledged: 6 })
  expect((await read(`${runId}/events`)).items).toHaveLength(2)
})

describe('a run around a function', () => {
  test('starts, reports events and nested tasks with their times, and completes with the output', async () => {
    const { client, errors } = newClient()
    let runId = ''
    let otherId = ''
    const output = await client.run(
      {
        input: { question: 'Why?' },
        tags: ['a', 'b'],
        externalRunId: 'mine',
        sessionId: 'a chat',
        externalUserId: 'ada',
        metadata: { n: 1 },
        triggerType: 'webhook',
      },
      async (run) => {
        runId = run.runId
        run.event('llm.call', { model: 'm', text: 'ä€🎉' })
        const found = await run.task('search', { input: { q: 'x' } }, async (task) => {
          task.event('tool.call', { n: 2 }, { level: 'warn' })
          await task.task('fetch', () => Bun.sleep(3))
          return { hits: 3 }
        })
        await run.task('outer', async (outer) => {
          await Bun.sleep(1)
          run.event('within')
          await run.task('inner', () => run.event('deeper'))
          run.event('named', {}, { taskId: outer.taskId })
          run.startTask('sibling of inner').event('on the task')
          // Events of another run are not part of this task.
          await client.run({}, (other) => {
            otherId = other.runId
            void other.event('apart')
          })
        })
        run.event('after')
        return { found }
      },
    )
    expect(output).toEqual({ found: { hits: 3 } })
    expect(await client.flush()).toBe(true)
    expect(errors).toEqual([])
    expect(await read(runId)).toMatchObject({
      status: 'completed',
      input: { question: 'Why?' },
      output: { found: { hits: 3 } },
      tags: ['a', 'b'],
      external_run_id: 'mine',
      session_id: 'a chat',
      external_user_id: 'ada',
      metadata: { n: 1 },
      trigger_type: 'webhook',
    })
    const { items: events } = await read(`${runId}/events`)
    expect(events).toMatchObject([
      { type: 'llm.call', level: 'info', payload: { model: 'm', text: 'ä€🎉' } },
      { type: 'tool.call', level: 'warn', payload: { n: 2 } },
      ...['within', 'deeper', 'named', 'on the task', 'after'].map((type) => ({ type })),
    ])
    const { items: tasks } = await read(`${runId}/tasks`)
    const byName = Object.fromEntries(tasks.map((task: { name: string }) => [task.name, task]))
    const nameOf = (id: string) => tasks.find((task: { id: string }) => task.id === id)?.name
    expect(events.map(({ type, task_id }: { type: string; task_id: string }) => [type, nameOf(task_id)])).toEqual([
      ['llm.call', undefined],
      ['tool.call', 'search'],
      ['within', 'outer'],
      ['deeper', 'inner'],
      ['named', 'outer'],
      ['on the task', 'sibling of inner'],
      ['after', undefined],
    ])
    expect([byName.inner, byName['sibling of inner']].map((task) => nameOf(task.parent_task_id))).toEqual([
      'outer',
      'outer',
    ])
    expect((await read(`${otherId}/events`)).items).toMatchObject([{ type: 'apart' }])
    expect((await read(`${otherId}/events`)).items[0]).not.toHaveProperty('task_id')
    expect(byName.search).toMatchObject({ status: 'completed', input: { q: 'x' }, output: { hits: 3 } })
    expect(byName.fetch).toMatchObject({ status: 'completed', parent_task_id: byName.search.id })
    expect(Date.parse(byName.fetch.completed_at) - Date.parse(byName.fetch.started_at)).toBeGreaterThanOrEqual(2)
    expect(client.stats).toMatchObject({ queued: 0, queuedBytes: 0, acknowledged: 21, rejected: 0, dropped: 0 })
    expect(await client.close()).toBe(true)
  })
})

test('scores of a run, its parts and an earlier run are there once; what is refused takes no others with it', async () => {
  const { client, errors } = newClient()
  const earlier = client.startRun()
  earlier.complete()
  await client.flush()
  const run = client.startRun()
  run.event('llm.call', {}, { id: 'call-1' })
  run.score('correct', true)
  run.score('similarity', 0.25, { id: 's1' })
  run.score('similarity', 0.75, { id: 's1', comment: 'again', source: 'judge', metadata: { model: 'm' } })
  run.score('answer', 'right', { eventId: 'call-1' })
  run.score('', 1)
  const task = run.startTask('step')
  task.score('review', { text: 'Zu lang. ä€🎉' })
  task.complete()
  run.complete()
  client.score(earlier.runId, 'feedback', false, { id: 'user-1', source: 'person' })
  client.score(crypto.randomUUID(), 'nobody', 1)
  expect(await client.close()).toBe(true)
  expect(errors.map(({ reason, reports }) => [reason, reports])).toEqual([
    ['rejected', 1],
    ['rejected', 1],
  ])
  const owner = newClient({ key: service.workspaceKey }).client
  const scoresOf = async (runId: string) => (await Array.fromAsync(owner.runs.scores(runId))).toReversed()
  expect(await scoresOf(run.runId)).toMatchObject([
    { name: 'correct', value: true, label: null, source: 'api', task_id: null },
    { name: 'similarity', value: 0.75, id: 's1', comment: 'again', source: 'judge', metadata: { model: 'm' } },
    { name: 'answer', value: null, label: 'right', event_id: 'call-1' },
    { name: 'review', text: 'Zu lang. ä€🎉', task_id: task.taskId },
  ])
  expect(await scoresOf(earlier.runId)).toMatchObject([{ name: 'feedback', value: false, source: 'person' }])
})

test('a workspace key is told at the first report, with the call that makes a key of the agent', async () => {
  const { client, errors } = newClient({ key: service.workspaceKey })
  expect((await client.runs.list({ limit: 1 })).items).toHaveLength(1)
  expect(errors).toEqual([])
  client.startRun()
  expect(errors).toMatchObject([{ reason: 'delayed', reports: 1 }])
  client.startRun()
  expect(errors).toHaveLength(1)
  await client.close(0)
})

test.skipIf(Bun.which('curl') === null)('the call that a workspace key is told makes a key that works', async () => {
  const { client, errors } = newClient({ key: service.workspaceKey })
  client.startRun()
  const [, call] = errors[0]!.message.split('AGENT_RUN_KEY: ')
  const command = call!.replace('<the workspace key>', service.workspaceKey)
  const { data } = JSON.parse(await Bun.$`sh -c ${`${command} -s`}`.text())
  const right = newClient({ key: data.key })
  right.client.startRun().complete()
  expect(await right.client.close()).toBe(true)
  expect(right.errors).toEqual([])
  await client.close(0)
})

describe('a run', () => {
  test('fails with the message and the details of the error, which is thrown again', async () => {
    const { client } = newClient()
    let runId = ''
    const error = Object.assign(new TypeError('no \0 answer'), { code: 'E_NONE' })
    const thrown = await client
      .run({}, (run) => {
        runId = run.runId
        return run.task('ask', () => {
          throw error
        })
      })
      .catch((caught: unknown) => caught)
    expect(thrown).toBe(error)
    await client.close()
    expect(await read(runId)).toMatchObject({
      status: 'failed',
      error_message: 'no \ufffd answer',
      error_detail: { name: 'TypeError', code: 'E_NONE', stack: expect.stringContaining('reporting.test') },
    })
    expect((await read(`${runId}/tasks`)).items).toMatchObject([
      { name: 'ask', status: 'failed', error_message: 'no \ufffd answer' },
    ])
  })

  test('can be started and ended without a function; the first end counts', async () => {
    const { client } = newClient()
    const run = client.startRun({ runId: crypto.randomUUID() })
    const [done, skipped] = [run.startTask('one'), run.startTask('two')]
    done.complete('a text')
    skipped.skip()
    run.complete([1, 2])
    run.fail(new Error('too late'))
    await client.close()
    expect(await read(run.runId)).toMatchObject({ status: 'completed', output: { value: [1, 2] } })
    const { items } = await read(`${run.runId}/tasks`)
    expect(items.map(({ name, status, output }: Record<string, unknown>) => [name, status, output]).sort()).toEqual([
      ['one', 'completed', { value: 'a text' }],
      ['two', 'skipped', null],
    ])
  })

  test('can be the child of another run that starts in the same moment', async () => {
    const { client, errors } = newClient({ bufferBytes: 2 ** 26 })
    const parent = client.startRun()
    const children = Array.from({ length: 40 }, () => client.startRun({ parentRunId: parent.runId }))
    for (const child of children) {
      for (let i = 0; i < 500; i++) child.event('step', { text: 'x'.repeat(600) })
      child.complete()
    }
    parent.complete()
    await client.close(60_000)
    expect(errors).toEqual([])
    const { items } = await read(`${parent.runId}/children?limit=200`)
    expect(items.length).toBe(children.length)
  })

  test('needs an agent', () => {
    const { client } = newClient({ agentId: undefined })
    expect(() => client.startRun()).toThrow('AGENT_RUN_AGENT_ID')
  })
})

describe('what the service refuses', () => {
  test('is reported and counted, and takes nothing else with it', async () => {
    const { client, errors } = newClient()
    const run = client.startRun()
    run.event('good', { n: 1 })
    run.event('run.started')
    run.event('', {})
    run.event('good', { n: 2 })
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    run.event('cycle', cycle)
    run.event('good', { n: 3 })
    await client.close()
    const { items } = await read(`${run.runId}/events`)
    expect(items.map(({ payload }: { payload: { n: number } }) => payload.n)).toEqual([1, 2, 3])
    expect(client.stats).toMatchObject({ acknowledged: 4, rejected: 3, dropped: 0, queued: 0 })
    expect(errors.map(({ reason, reports, runId }) => [reason, reports, runId])).toEqual([
      ['invalid', 1, run.runId],
      ['rejected', 2, run.runId],
    ])
    expect(errors[1]?.message).toContain('events[1].type')
  })

  test('a run whose start is refused is reported with everything that belongs to it', async () => {
    const { client, errors } = newClient({ agentId: crypto.randomUUID() })
    const run = client.startRun()
    run.event('step')
    run.startTask('task')
    run.complete()
    await client.close()
    expect(client.stats).toMatchObject({ acknowledged: 0, rejected: 4, queued: 0, queuedBytes: 0 })
    expect(errors.map(({ reason, reports }) => [reason, reports])).toEqual([
      ['rejected', 1],
      ['rejected', 3],
    ])
    expect(errors[0]?.cause).toMatchObject({ status: 404, code: 'NOT_FOUND' })
  })

  test('batches that are too large for this service are sent in parts', async () => {
    const strict = await startTestService({ LIMIT_EVENTS_PER_CALL: '10', LIMIT_BODY_BYTES: '20000' })
    const { agentId, agentKey } = await newAgent(strict.api)
    const { client, errors } = newClient({ url: strict.url, key: agentKey, agentId })
    const run = client.startRun()
    for (let i = 0; i < 100; i++) run.event('step', { i, text: 'x'.repeat(i === 50 ? 30_000 : i * 30) })
    run.complete()
    await client.close(60_000)
    expect(errors.map(({ reports, cause }) => [reports, (cause as { status: number }).status])).toEqual([[1, 413]])
    expect(client.stats).toMatchObject({ acknowledged: 101, rejected: 1, queued: 0, queuedBytes: 0 })
    const { items } = (await strict.api('GET', `/api/v1/runs/${run.runId}/events?limit=200`)).data
    const order = items.map(({ payload }: { payload: { i: number } }) => payload.i)
    expect(order).toEqual(Array.from({ length: 100 }, (_, i) => i).filter((i) => i !== 50))
  })
})
