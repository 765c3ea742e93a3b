import { beforeAll, expect, test } from 'bun:test'
import { NEXT as RUN_NEXT, RUN_STATUSES, type RunStatus, type TerminalStatus } from '../../src/activity/runs/state.ts'
import { NEXT as TASK_NEXT, TASK_STATUSES, type TaskStatus } from '../../src/activity/tasks/state.ts'
import { ApiError } from '../../src/base/errors.ts'
import { mint } from '../../src/base/ids.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type Change, newCaller, storesOn } from '../support/runs.ts'

let sql: Awaited<ReturnType<typeof freshDatabase>>['sql']
beforeAll(async () => {
  sql = (await freshDatabase()).sql
})

type Stores = ReturnType<typeof storesOn>
type Caller = Awaited<ReturnType<typeof newCaller>>

/** A random call; ids come from small sets, so that calls collide. */
type Operation =
  | { readonly call: 'start'; readonly runId: string; readonly variant: number }
  | {
      readonly call: 'end'
      readonly runId: string
      readonly to: Exclude<TerminalStatus, 'timed_out'>
      readonly value: number
    }
  | {
      readonly call: 'task'
      readonly runId: string
      readonly taskId: string
      readonly status: TaskStatus
      readonly value: number
      readonly output: boolean
    }

function someOperation(random: Random, runIds: readonly string[], taskIds: readonly string[]): Operation {
  const runId = random.pick(runIds)
  const kind = random.next()
  if (kind < 0.2) return { call: 'start', runId, variant: random.int(0, 1) }
  if (kind < 0.35) {
    return {
      call: 'end',
      runId,
      to: random.pick(['completed', 'failed', 'cancelled'] as const),
      value: random.int(0, 999),
    }
  }
  const [taskId, status] = [random.pick(taskIds), random.pick(TASK_STATUSES)]
  return { call: 'task', runId, taskId, status, value: random.int(0, 999), output: random.bool() }
}

async function perform({ runs, tasks }: Stores, caller: Caller, operation: Operation): Promise<object> {
  const run_id = operation.runId
  if (operation.call === 'start') {
    const input = new RawJson(`{"variant":${operation.variant}}`)
    return runs.start(caller, { agent_id: caller.agentId, run_id, input }, mint)
  }
  if (operation.call === 'task') {
    const { taskId: id, status, value, output } = operation
    const extra = output ? { output: new RawJson(`{"value":${value}}`) } : {}
    return tasks.report(caller, { run_id, task: { id, name: `${value}`, status, ...extra } })
  }
  if (operation.to === 'completed') {
    return runs.complete(caller, { run_id, output: new RawJson(`{"value":${operation.value}}`) })
  }
  if (operation.to === 'failed') return runs.fail(caller, { run_id, error_message: `${operation.value}` })
  return runs.cancel(caller, run_id, { reason: `${operation.value}` })
}

/** The result, or the code of the error. */
async function outcomeOf(stores: Stores, caller: Caller, operation: Operation): Promise<object | string> {
  return perform(stores, caller, operation).catch((error) => {
    if (error instanceof ApiError) return error.code
    throw error
  })
}

interface ModelRun {
  readonly variant: number
  status: RunStatus
  value: number | null
  readonly tasks: Map<string, { status: TaskStatus; name: string; output: string | null }>
}

/** The rules of the specification, implemented in the simplest way. */
function expected(model: Map<string, ModelRun>, operation: Operation): object | string {
  const run = model.get(operation.runId)
  if (operation.call === 'start') {
    if (run !== undefined && run.variant !== operation.variant) return 'CONFLICT'
    if (run === undefined) {
      model.set(operation.runId, { variant: operation.variant, status: 'running', value: null, tasks: new Map() })
    }
    return { run_id: operation.runId }
  }
  if (run === undefined) return 'NOT_FOUND'
  if (operation.call === 'end') {
    const already = run.status === operation.to
    if (!already && run.status !== 'running') return 'CONFLICT'
    if (!already) Object.assign(run, { status: operation.to, value: operation.value })
    return { run_id: operation.runId, status: operation.to, already }
  }
  const { taskId, status, value } = operation
  const output = operation.output ? `{"value":${value}}` : null
  const task = run.tasks.get(taskId)
  if (task !== undefined && !TASK_NEXT[task.status].includes(status)) {
    return { task_id: taskId, status: task.status, created: false, applied: false }
  }
  run.tasks.set(taskId, { status, name: `${value}`, output: output ?? task?.output ?? null })
  return { task_id: taskId, status, created: task === undefined, applied: true }
}

const uuids = (count: number) => Array.from({ length: count }, () => crypto.randomUUID())

test('sequential random calls leave runs and tasks as the specification says', async () => {
  const random = seededRandom('runs model')
  const caller = await newCaller(sql)
  const stores = storesOn(sql)
  const [runIds, taskIds] = [uuids(12), uuids(3)]
  const model = new Map<string, ModelRun>()
  for (let step = 0; step < 600; step++) {
    const operation = someOperation(random, runIds, taskIds)
    const wanted = expected(model, operation)
    const got = await outcomeOf(stores, caller, operation)
    if (typeof wanted === 'string') expect([step, got]).toEqual([step, wanted])
    else expect(got).toMatchObject(wanted)
  }
  for (const [runId, wanted] of model) {
    const run = await stores.runs.get(caller, runId)
    expect(run.status).toBe(wanted.status)
    const value = run.output === null ? run.error_message : `${(run.output.parse() as { value: number }).value}`
    expect(value).toBe(wanted.value === null ? null : `${wanted.value}`)
    const { items } = await stores.tasks.list(caller, runId, {})
    const got = items.map(
      ({ id, status, name, output }) => [id, { status, name, output: output?.text ?? null }] as const,
    )
    expect(new Map(got)).toEqual(wanted.tasks)
  }
})

test('concurrent random calls of two processes: every change is legal, logged once, and as reported to the callers', async () => {
  const random = seededRandom('runs model, concurrent')
  const caller = await newCaller(sql)
  const processes = [storesOn(sql), storesOn(sql)]
  await sql`truncate outbox`
  let changesAnswered = 0
  const runIds: string[] = []
  for (let round = 0; round < 25; round++) {
    const ids = uuids(4)
    const taskIds = uuids(2)
    runIds.push(...ids)
    const operations = Array.from({ length: 40 }, () => someOperation(random, ids, taskIds))
    const outcomes = await Promise.all(
      operations.map((operation) => outcomeOf(random.pick(processes), caller, operation)),
    )
    const started = new Set<string>()
    outcomes.forEach((outcome, index) => {
      if (typeof outcome === 'string') return
      if ('applied' in outcome) changesAnswered += outcome.applied ? 1 : 0
      else if ('already' in outcome) changesAnswered += outcome.already ? 0 : 1
      else started.add(operations[index].runId)
    })
    changesAnswered += started.size
  }
  const rows = await sql<{ kind: 'run' | 'task'; body: RawJson }[]>`select kind, body from outbox order by outbox_id`
  const changes = rows.map(({ kind, body }) => ({ kind, row: body.parse() }) as Change)
  expect(changes).toHaveLength(changesAnswered)
  for (const runId of runIds) checkHistory(changes.filter(({ row }) => row.run_id === runId))
  const last = new Map(changes.filter(({ kind }) => kind === 'run').map(({ row }) => [row.run_id, row.status]))
  const stored = await sql<{ run_id: string; status: string }[]>`
    select run_id, status from runs where run_id = any(${runIds}::uuid[])`
  expect(new Map(stored.map(({ run_id, status }) => [run_id, status]))).toEqual(last)
})

/** Checks the changes of one run: a start, then legal transitions, with legal transitions of tasks in between. */
function checkHistory(changes: readonly Change[]): void {
  let run: RunStatus | undefined
  const tasks = new Map<string, TaskStatus>()
  for (const change of changes) {
    if (change.kind === 'run') {
      const status = change.row.status as RunStatus
      if (run === undefined) expect(status).toBe('running')
      else expect(RUN_NEXT[run]).toContain(status)
      run = status
    } else {
      expect(run).toBeDefined()
      const { task_id, status } = change.row
      const before = tasks.get(task_id)
      if (before !== undefined) expect(TASK_NEXT[before]).toContain(status as TaskStatus)
      tasks.set(task_id, status as TaskStatus)
    }
  }
}

test('every live status can change to every terminal one, and no terminal status ever changes', () => {
  const endings = ['completed', 'failed', 'cancelled', 'timed_out'] as const
  for (const status of RUN_STATUSES) {
    const ended = (endings as readonly string[]).includes(status)
    expect(RUN_NEXT[status].filter((to) => (endings as readonly string[]).includes(to))).toEqual(
      ended ? [] : [...endings],
    )
    if (ended) expect(RUN_NEXT[status]).toEqual([])
  }
})
