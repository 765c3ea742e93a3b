import type { RunEnded } from '../../../src/activity/runs/schema.ts'
import { RawJson } from '../../../src/base/raw-json.ts'
import type { Caller } from '../../../src/tenants/keys/schema.ts'
import { time } from '../virtual-time.ts'
import type { Node } from './node.ts'
import type { Work, WorkContext } from './world.ts'

/** What callers were told of a run. */
interface Run {
  readonly id: string
  /** Which of the starts with other values won; undefined: no caller was told. */
  variant: number | undefined
  isStartedMs: number
  /** How it ended, as callers were told: each of them the same. */
  readonly endings: Set<string>
  /** How often a caller was told that it was the one who ended it. */
  enders: number
  readonly tasks: Map<string, Task>
}

interface Task {
  /** The final status, as callers were told. */
  readonly finals: Set<string>
  creators: number
  appliers: number
}

interface StoredRun {
  readonly run_id: string
  readonly status: string
  readonly completed_at: Date | null
  readonly metadata: RawJson
}

/** What the journal gets. */
interface Change {
  readonly kind: 'run' | 'task'
  readonly run_id: string
  readonly task_id: string | null
  readonly status: string
}

const RUNS = 6
const TASKS = 2
const ENDINGS = ['complete', 'fail', 'cancel'] as const
const TASK_STATUSES = ['pending', 'running', 'completed', 'failed'] as const
const FINALS: readonly string[] = ['completed', 'failed']

/** Runs of an external agent, and their tasks: several callers start and end the same ones. */
export class RunsWork implements Work {
  private readonly runs: readonly Run[]

  constructor(
    private readonly context: WorkContext,
    private readonly caller: Caller & { readonly agentId: string },
  ) {
    this.runs = Array.from({ length: RUNS }, (_, index) => ({
      id: idOf(1, index),
      variant: undefined,
      isStartedMs: Number.POSITIVE_INFINITY,
      endings: new Set(),
      enders: 0,
      tasks: new Map(
        Array.from({ length: TASKS }, (_, task) => [idOf(2, task), { finals: new Set(), creators: 0, appliers: 0 }]),
      ),
    }))
  }

  step(): void {
    const { random } = time
    const run = random.pick(this.runs)
    const pick = random.next()
    if (pick < 0.4 || run.variant === undefined) this.start(run, random.int(1, 2))
    else if (pick < 0.7) this.report(run, random.pick([...run.tasks.keys()]), random.pick(TASK_STATUSES))
    else this.end(run, random.pick(ENDINGS))
  }

  private start(run: Run, variant: number): void {
    const { caller, context } = this
    const body = { run_id: run.id, agent_id: caller.agentId, metadata: new RawJson(`{"variant":${variant}}`) }
    const ask = ({ runs }: Node) => runs.start(caller, body, NO_MINT)
    context.call(`start run ${nameOf(run.id)}, variant ${variant}`, ask, (answer) => {
      const isOurs = !('refused' in answer)
      if (!isOurs && answer.refused !== 'id_taken') this.problem(run, `start: ${answer.message}`)
      const won = isOurs ? variant : 3 - variant
      if ((run.variant ?? won) !== won)
        this.problem(run, `variants ${run.variant} and ${won} were both told to have won`)
      run.variant = won
      run.isStartedMs = Math.min(run.isStartedMs, time.nowMs)
      return isOurs ? 'started' : answer.refused
    })
  }

  private end(run: Run, how: (typeof ENDINGS)[number]): void {
    const { caller, context } = this
    const body = { run_id: run.id }
    const ask = ({ runs }: Node): Promise<RunEnded> =>
      how === 'complete'
        ? runs.complete(caller, body)
        : how === 'fail'
          ? runs.fail(caller, { ...body, error_message: 'failed' })
          : runs.cancel(caller, run.id, {})
    context.call(`${how} run ${nameOf(run.id)}`, ask, (answer, askedMs) => {
      if ('refused' in answer) {
        const status = /^run is already (\w+);/.exec(answer.message)?.[1]
        if (status === undefined) {
          if (askedMs > run.isStartedMs) this.problem(run, `end: ${answer.message}`)
        } else if (![...run.endings].every((ending) => ending.startsWith(status)))
          this.problem(run, `told to be ${status}, and before: ${[...run.endings].join()}`)
        return answer.message
      }
      run.endings.add(`${answer.status} ${answer.completed_at}`)
      if (!answer.already) run.enders++
      return `${answer.status}${answer.already ? ' already' : ''}`
    })
  }

  private report(run: Run, id: string, status: (typeof TASK_STATUSES)[number]): void {
    const { caller, context } = this
    const task = run.tasks.get(id)!
    const ask = ({ tasks }: Node) => tasks.report(caller, { run_id: run.id, task: { id, name: 'a task', status } })
    context.call(`report task ${nameOf(id)} of run ${nameOf(run.id)} as ${status}`, ask, (answer, askedMs) => {
      if ('refused' in answer) {
        if (askedMs > run.isStartedMs) this.problem(run, `task: ${answer.message}`)
        return answer.message
      }
      if (FINALS.includes(answer.status)) task.finals.add(answer.status)
      if (answer.created) task.creators++
      if (answer.applied) task.appliers++
      return `${answer.status}${answer.applied ? '' : ', not applied'}`
    })
  }

  async check(): Promise<void> {
    const { server } = this.context
    const { workspaceId } = this.caller
    const stored = await server.read(
      (sql) =>
        sql<StoredRun[]>`select run_id, status, completed_at, metadata from runs where workspace_id = ${workspaceId}`,
    )
    const changes = await server.read(
      (sql) => sql<Change[]>`
        select kind, body ->> 'run_id' as run_id, body ->> 'task_id' as task_id, body ->> 'status' as status
        from outbox where workspace_id = ${workspaceId} and kind in ('run', 'task') order by outbox_id`,
    )
    for (const run of this.runs) {
      const { id, variant, endings, enders } = run
      const row = stored.find(({ run_id }) => run_id === id)
      const changesOf = (taskId: string | null) =>
        changes.flatMap(({ run_id, task_id, status }) => (run_id === id && task_id === taskId ? [status] : []))
      if (row === undefined) {
        if (variant !== undefined) this.problem(run, 'was started, and does not exist')
        continue
      }
      const { status, completed_at: at } = row
      if (variant !== undefined && row.metadata.text !== `{"variant":${variant}}`)
        this.problem(run, `variant ${variant} won, and ${row.metadata.text} is stored`)
      for (const told of endings)
        if (told !== `${status} ${at?.toISOString()}`)
          this.problem(run, `told to be ${told}, is ${status} ${at?.toISOString()}`)
      if (enders > 1) this.problem(run, `${enders} callers have ended it`)
      const wanted = at === null ? ['running'] : ['running', status]
      if (changesOf(null).join() !== wanted.join())
        this.problem(run, `is ${status}, and the journal gets ${changesOf(null).join()}`)
      for (const [taskId, task] of run.tasks) this.checkTask(run, taskId, task, changesOf(taskId))
    }
  }

  private checkTask(run: Run, id: string, { finals, creators, appliers }: Task, changes: readonly string[]): void {
    const what = `task ${nameOf(id)}: the journal gets ${changes.join()}`
    if (creators > 1) this.problem(run, `${what}; ${creators} callers have created it`)
    if (appliers > changes.length) this.problem(run, `${what}; ${appliers} were told that their report applied`)
    const first = changes.findIndex((status) => FINALS.includes(status))
    const final = first < 0 ? undefined : changes[first]
    if (first >= 0 && changes.slice(first).some((status) => status !== final))
      this.problem(run, `${what}, after its end`)
    for (const told of finals) if (told !== final) this.problem(run, `${what}; told to be ${told}`)
  }

  private problem({ id }: Run, what: string): void {
    this.context.problem(`run ${nameOf(id)}: ${what}`)
  }
}

const NO_MINT = {
  uuid: (): string => {
    throw new Error('the caller has chosen the id')
  },
  ulid: (): string => '',
  secret: () => Buffer.alloc(0),
}

/** An id, with what it is of, and its number. */
export function idOf(kind: number, number: number): string {
  return `00000000-0000-4000-8000-${String(kind).padStart(6, '0')}${String(number).padStart(6, '0')}`
}

/** The end of an id, which tells it from others. */
export function nameOf(id: string): string {
  return String(Number(id.slice(-6)))
}
