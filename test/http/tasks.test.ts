import { beforeAll, describe, expect, test } from 'bun:test'
import { TASK_STATUSES } from '../../src/activity/tasks/state.ts'
import { pagesOf } from '../support/api.ts'
import { verdict } from './auth-app.ts'
import { type RunsApp, runsApp } from './runs-app.ts'

let app: RunsApp
let run: string
beforeAll(async () => {
  app = await runsApp({ run_input_bytes: 2_000, run_output_bytes: 4_000, task_name_length: 20 })
  run = await app.start()
})

const NO_RUN = '00000000-0000-7000-8000-000000000000'
const report = (task: object, run_id = run, key?: string) =>
  app.ingest('tasks', { run_id, task: { id: crypto.randomUUID(), name: 'search', status: 'pending', ...task } }, key)
const taskOf = async (id: string, run_id = run) =>
  (await app.read(`runs/${run_id}/tasks?limit=200`)).data.items.find((task: { id: string }) => task.id === id)

describe('POST tasks', () => {
  test('creates a task with any initial status', async () => {
    for (const status of TASK_STATUSES) {
      const id = crypto.randomUUID()
      const answer = await report({ id: id.toUpperCase(), status })
      expect(answer.data).toEqual({ task_id: id, status, created: true, applied: true })
      expect(await taskOf(id)).toMatchObject({ id, run_id: run, agent_id: app.agent.agentId, name: 'search', status })
    }
  })

  const legal = new Set(['pending>running', 'pending>completed', 'pending>failed', 'pending>skipped'])
  for (const end of ['completed', 'failed', 'skipped']) legal.add(`running>${end}`)
  for (const from of TASK_STATUSES) {
    for (const to of TASK_STATUSES) {
      const applied = from === to || legal.has(`${from}>${to}`)
      test(`${from} to ${to}: ${applied ? 'applied' : 'changes nothing'}`, async () => {
        const id = crypto.randomUUID()
        await report({ id, status: from, name: 'first', output: { n: 1 } })
        const before = await taskOf(id)
        const answer = await report({ id, status: to, name: 'second', output: { n: 2 } })
        expect(answer.data).toEqual({ task_id: id, status: applied ? to : from, created: false, applied })
        const after = await taskOf(id)
        if (applied) expect(after).toMatchObject({ status: to, name: 'second', output: { n: 2 } })
        else expect(after).toEqual(before)
      })
    }
  }

  test('fields omitted in a later call keep their exact value', async () => {
    const id = crypto.randomUUID()
    const parent_task_id = crypto.randomUUID()
    const input = '{"big":12345678901234567890,"nul":"\\u0000"}'
    const body = `{"run_id":"${run}","task":{"id":"${id}","name":"n","status":"pending","input":${input},"parent_task_id":"${parent_task_id}"}}`
    await app.ingest('tasks', body)
    await report({ id, status: 'running', error_message: 'a warning' })
    await report({ id, status: 'completed', output: { done: true } })
    const { text } = await app.read(`runs/${run}/tasks?limit=1`)
    expect(text).toContain(`"input":${input}`)
    expect(await taskOf(id)).toMatchObject({
      parent_task_id,
      name: 'search',
      status: 'completed',
      output: { done: true },
      error_message: 'a warning',
    })
  })

  test('applies concurrent reports of one task one after the other', async () => {
    const id = crypto.randomUUID()
    const statuses = ['pending', 'running', 'running', 'completed', 'failed', 'running', 'completed'] as const
    const answers = await Promise.all(statuses.map((status, index) => report({ id, status, name: `${index}` })))
    expect(answers.filter((answer) => answer.data.created)).toHaveLength(1)
    const { status } = await taskOf(id)
    expect(['completed', 'failed']).toContain(status)
    answers.forEach((answer, index) => {
      if (answer.data.applied) expect(answer.data.status).toBe(statuses[index])
    })
    const other = status === 'completed' ? 'failed' : 'completed'
    answers.forEach((answer, index) => {
      if (statuses[index] === other) expect(answer.data).toMatchObject({ applied: false, status })
    })
  })

  test('stores a task of an ended run, which stays ended', async () => {
    const ended = await app.start()
    await app.ingest('run/complete', { run_id: ended })
    const answer = await report({ status: 'completed' }, ended)
    expect(answer.data).toMatchObject({ created: true, applied: true })
    expect((await app.read(`runs/${ended}`)).data.status).toBe('completed')
  })

  test('the same task id in two runs makes two tasks', async () => {
    const id = crypto.randomUUID()
    expect((await report({ id, status: 'completed' })).data.created).toBe(true)
    expect((await report({ id, status: 'pending' }, await app.start())).data.created).toBe(true)
  })

  test('a run of another agent is FORBIDDEN; one of another workspace or an unknown one is NOT_FOUND', async () => {
    const siblings = await app.start({}, await app.newAgent(app.workspace.workspaceId))
    const theirs = await app.start({}, await app.newAgent((await app.newWorkspace()).workspaceId))
    expect(verdict(await report({}, siblings))).toBe('403 FORBIDDEN')
    expect(verdict(await report({}, theirs))).toBe('404 NOT_FOUND')
    expect(verdict(await report({}, NO_RUN))).toBe('404 NOT_FOUND')
    expect(verdict(await report({}, run, app.workspace.key))).toBe('403 FORBIDDEN')
  })

  const rejected: [string, object, string][] = [
    [
      'an unknown status',
      { status: 'done' },
      'task.status: expected one of pending, running, completed, failed, skipped; got "done"',
    ],
    ['an id that is not a UUID', { id: 't1' }, 'task.id: expected a UUID; got "t1"'],
    [
      'an unknown field',
      { result: {} },
      'task.result: unknown field; expected only id, name, status, input, output, error_message, parent_task_id, started_at, completed_at',
    ],
    ['an empty name', { name: '' }, 'task.name: expected at least 1 character; got ""'],
    [
      'a name that is too long',
      { name: 'x'.repeat(21) },
      `task.name: expected at most 20 characters; got "${'x'.repeat(21)}"`,
    ],
    ['an input that is not an object', { input: 'x' }, 'task.input: expected a JSON object; got "x"'],
    ['no name', { name: undefined }, 'task.name: required'],
  ]
  test.each(rejected)('%s is a VALIDATION_ERROR that names the field', async (_, task, message) => {
    expect((await report(task)).error).toMatchObject({ code: 'VALIDATION_ERROR', message })
  })

  test('input and output over the limit are PAYLOAD_TOO_LARGE', async () => {
    expect((await report({ input: { x: 'x'.repeat(2_000) } })).error?.message).toStartWith(
      'task.input: expected at most 2000 bytes',
    )
    expect((await report({ output: { x: 'x'.repeat(4_000) } })).error?.message).toStartWith(
      'task.output: expected at most 4000 bytes',
    )
    expect((await report({ output: { x: 'x'.repeat(4_000) } })).status).toBe(413)
  })
})

describe('GET /runs/:run_id/tasks', () => {
  test('lists the tasks of the run newest first, in pages', async () => {
    const of = await app.start()
    const ids: string[] = []
    for (let index = 0; index < 7; index++) {
      app.clock.aheadMs += index % 2
      const { data } = await report({ name: `${index}` }, of)
      ids.push(data.task_id)
    }
    type Task = { id: string; created_at: string }
    const pages = await pagesOf<Task>((cursor) => app.read(`runs/${of}/tasks?limit=3${cursor}`))
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
    const tasks = pages.flat()
    expect(tasks.map(({ id }) => id).sort()).toEqual(ids.toSorted())
    const times = tasks.map(({ created_at }) => created_at)
    expect(times).toEqual(times.toSorted().reverse())
  })

  test("an agent key can read only the tasks of its agent's runs", async () => {
    const sibling = await app.newAgent(app.workspace.workspaceId)
    expect((await app.read(`runs/${run}/tasks`, app.agent.key)).status).toBe(200)
    expect(verdict(await app.read(`runs/${run}/tasks`, sibling.key))).toBe('403 FORBIDDEN')
    const other = await app.newWorkspace()
    expect(verdict(await app.read(`runs/${run}/tasks`, other.key))).toBe('404 NOT_FOUND')
    expect(verdict(await app.read(`runs/${NO_RUN}/tasks`))).toBe('404 NOT_FOUND')
    expect(verdict(await app.read(`runs/${run}/tasks?cursor=nonsense`))).toBe('400 VALIDATION_ERROR')
  })
})
