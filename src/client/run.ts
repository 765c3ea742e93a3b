import type { components } from './generated/api.ts'
import { uuidv7 } from './ids.ts'
import { describeError, type JsonObject, objectText, objectTextOrProblem } from './json.ts'
import type { Reporter } from './reporter.ts'
import { reportScore, type ScoreArguments, type ScoreOptions } from './score.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** How a run starts; see docs/client.md#reporting. */
export interface RunOptions {
  /** The agent of the run. Default: `agentId` of the client. */
  readonly agentId?: string | undefined
  readonly input?: unknown
  readonly tags?: readonly string[] | undefined
  readonly metadata?: JsonObject | undefined
  /** Your own name for the run. */
  readonly externalRunId?: string | undefined
  /** The conversation that the run belongs to, by your own name for it. */
  readonly sessionId?: string | undefined
  /** Your own name for the user. */
  readonly externalUserId?: string | undefined
  /** The run that started this one. */
  readonly parentRunId?: string | undefined
  readonly triggerType?: 'manual' | 'scheduled' | 'webhook' | 'sdk' | undefined
  /** Chosen by you; default: a new UUID. */
  readonly runId?: string | undefined
}

export interface EventOptions {
  /** Default: `info`. */
  readonly level?: Level | undefined
  /** Default: now. */
  readonly occurredAt?: Date | undefined
  /** A second event of the run with the same id is not stored. Default: a new one. */
  readonly id?: string | undefined
  /** The task that it is part of. Default on Node, Bun and Deno: the task of this run whose work is executing. */
  readonly taskId?: string | undefined
}

export interface TaskOptions {
  readonly input?: unknown
}

export interface EndOptions {
  /** Tokens and cost of the run, instead of the sum of its `llm.call` events. */
  readonly usage?: components['schemas']['ReportedUsage'] | undefined
}

/** What runs and tasks need of their client. */
export interface Reporting {
  readonly reporter: Reporter
  /** Ids of events and scores. */
  readonly newEventId: () => string
  /** The time, as the service wants it. */
  readonly now: () => string
  /** Undefined where the platform cannot track asynchronous work. */
  readonly taskScope: TaskScope | undefined
}

/** Tracks the task whose work is executing, so that what the work reports becomes part of the task. */
export interface TaskScope {
  current(): Task | undefined
  enter<T>(task: Task, work: () => T): T
}

/** Starts a run. @throws Error without an agent */
export function startRun(reporting: Reporting, options: RunOptions): Run {
  const {
    agentId,
    tags,
    externalRunId,
    parentRunId,
    sessionId,
    externalUserId,
    triggerType,
    runId = uuidv7(),
  } = options
  if (agentId === undefined)
    throw new Error('no agent: pass agentId to the client or to the run, or set AGENT_RUN_AGENT_ID')
  const known = { run_id: runId, agent_id: agentId, trigger_type: triggerType, tags }
  const ids = { external_run_id: externalRunId, parent_run_id: parentRunId }
  const fields = JSON.stringify({ ...known, ...ids, session_id: sessionId, external_user_id: externalUserId })
  const start = (textOf: TextOf) => {
    const input = `,"input":${textOf(options.input)}`
    const metadata = options.metadata === undefined ? '' : `,"metadata":${textOf(options.metadata)}`
    return `${fields.slice(0, -1)}${input}${metadata}}`
  }
  const text = textWith(reporting, runId, start)
  void reporting.reporter.add({ kind: 'start', runId, text, parentRunId })
  return new Run(reporting, runId)
}

/** The JSON object of a value that the caller gave. */
type TextOf = (value: unknown) => string

/**
 * The text of the start or end of a run or task. A value in it that JSON cannot express is counted and reported to `onError`,
 * and replaced by an object that says so: the run starts or ends all the same.
 */
function textWith({ reporter }: Reporting, runId: string, make: (textOf: TextOf) => string): string {
  try {
    return make(objectText)
  } catch (error) {
    void reporter.reject(error, runId)
    return make(objectTextOrProblem)
  }
}

type Work<T> = (task: Task) => T | Promise<T>

/** What tasks are part of: a run or another task. */
abstract class TaskParent {
  constructor(protected readonly reporting: Reporting) {}

  /** Reports that a task has begun. End it with `complete`, `fail` or `skip`. */
  abstract startTask(name: string, options?: TaskOptions): Task

  /** Reports a task around `work`: it completes with what `work` returns, or fails with what it throws. */
  task<T>(name: string, work: Work<T>): Promise<T>
  task<T>(name: string, options: TaskOptions, work: Work<T>): Promise<T>
  async task<T>(name: string, ...rest: [Work<T>] | [TaskOptions, Work<T>]): Promise<T> {
    const task = this.startTask(name, rest.length === 2 ? rest[0] : {})
    const work = rest.at(-1) as Work<T>
    const { taskScope } = this.reporting
    try {
      const output = await (taskScope === undefined ? work(task) : taskScope.enter(task, () => work(task)))
      task.complete(output)
      return output
    } catch (error) {
      task.fail(error)
      throw error
    }
  }
}

/** A run that this process reports. Its methods return at once; the promise of `event` says when there is room for more. */
export class Run extends TaskParent {
  private hasEnded = false

  constructor(
    reporting: Reporting,
    readonly runId: string,
  ) {
    super(reporting)
  }

  /** Reports an event. */
  event(type: string, payload?: unknown, options: EventOptions = {}): Promise<void> {
    const { newEventId, now, reporter } = this.reporting
    try {
      const { level = 'info', id = newEventId(), occurredAt, taskId = this.currentTaskId } = options
      const at = occurredAt === undefined ? now() : occurredAt.toISOString()
      const task = taskId === undefined ? '' : `,"task_id":${JSON.stringify(taskId)}`
      const head = `{"id":${JSON.stringify(id)},"type":${JSON.stringify(type)},"level":"${level}","occurred_at":"${at}"`
      return reporter.add({
        kind: 'event',
        runId: this.runId,
        text: `${head}${task},"payload":${objectText(payload)}}`,
      })
    } catch (error) {
      return reporter.reject(error, this.runId)
    }
  }

  /** Reports a score of the run, or of a part of it: a number, `true` or `false`, a label, or options without a value. */
  score(name: string, ...rest: ScoreArguments): Promise<void> {
    return reportScore(this.reporting, this.runId, name, rest)
  }

  override startTask(name: string, options: TaskOptions = {}): Task {
    return new Task(this.reporting, this, name, options, this.currentTaskId)
  }

  /** Reports that the run is complete. Anything but an object becomes `{ value }`. */
  complete(output?: unknown, options: EndOptions = {}): void {
    this.end(
      'complete',
      (textOf) => `{"run_id":"${this.runId}","output":${textOf(output)}${usageText(options, textOf)}}`,
    )
  }

  /** Reports that the run has failed. */
  fail(error: unknown, options: EndOptions = {}): void {
    this.end('fail', (textOf) => {
      const { message, detail } = describeError(error)
      const fields = `"error_message":${JSON.stringify(message)},"error_detail":${detail}${usageText(options, textOf)}`
      return `{"run_id":"${this.runId}",${fields}}`
    })
  }

  /** Without its client. */
  toJSON(): object {
    return { runId: this.runId }
  }

  /** The task of this run whose work is executing. */
  private get currentTaskId(): string | undefined {
    const task = this.reporting.taskScope?.current()
    return task?.run === this ? task.taskId : undefined
  }

  /** The first end counts. */
  private end(kind: 'complete' | 'fail', make: (textOf: TextOf) => string): void {
    if (this.hasEnded) return
    this.hasEnded = true
    const { reporting, runId } = this
    void reporting.reporter.add({ kind, runId, text: textWith(reporting, runId, make) })
  }
}

function usageText({ usage }: EndOptions, textOf: TextOf): string {
  return usage === undefined ? '' : `,"usage":${textOf(usage)}`
}

/** A task of a run: a step with a beginning and an end. Tasks can contain tasks. */
export class Task extends TaskParent {
  readonly taskId = uuidv7()
  private readonly startedAt: string
  private hasEnded = false

  constructor(
    reporting: Reporting,
    readonly run: Run,
    readonly name: string,
    { input }: TaskOptions,
    parentTaskId: string | undefined,
  ) {
    super(reporting)
    const parent = parentTaskId === undefined ? '' : `,"parent_task_id":"${parentTaskId}"`
    this.startedAt = reporting.now()
    const times = `,"started_at":"${this.startedAt}"`
    this.report('running', (textOf) => `${input === undefined ? '' : `,"input":${textOf(input)}`}${parent}${times}`)
  }

  /** Reports an event of the run that is part of this task. */
  event(type: string, payload?: unknown, options?: EventOptions): Promise<void> {
    return this.run.event(type, payload, { taskId: this.taskId, ...options })
  }

  /** Reports a score of this task, or of what the options name. */
  score(name: string, ...rest: ScoreArguments): Promise<void> {
    const [value, options] = rest
    if (typeof value === 'object') return this.run.score(name, this.scored(value))
    return this.run.score(name, value, this.scored(options))
  }

  private scored(options: ScoreOptions = {}): ScoreOptions {
    const { eventId, sessionId } = options
    return eventId === undefined && sessionId === undefined ? { taskId: this.taskId, ...options } : options
  }

  /** Reports that a part of this task has begun. */
  override startTask(name: string, options: TaskOptions = {}): Task {
    return new Task(this.reporting, this.run, name, options, this.taskId)
  }

  /** Reports that the task is complete. */
  complete(output?: unknown): void {
    this.end('completed', (textOf) => (output === undefined ? '' : `,"output":${textOf(output)}`))
  }

  /** Reports that the task has failed. */
  fail(error: unknown): void {
    this.end('failed', () => `,"error_message":${JSON.stringify(describeError(error).message)}`)
  }

  /** Reports that the task was not carried out. */
  skip(): void {
    this.end('skipped', () => '')
  }

  private end(status: string, more: (textOf: TextOf) => string): void {
    if (this.hasEnded) return
    this.hasEnded = true
    let at = this.reporting.now()
    // The clock may have been set back, and the service refuses an end before the start.
    if (at < this.startedAt) at = this.startedAt
    this.report(status, (textOf) => `${more(textOf)},"completed_at":"${at}"`)
  }

  private report(status: string, more: (textOf: TextOf) => string): void {
    const { reporting, taskId } = this
    const { runId } = this.run
    const name = JSON.stringify(this.name)
    const make = (textOf: TextOf) => `{"id":"${taskId}","name":${name},"status":"${status}"${more(textOf)}}`
    void reporting.reporter.add({ kind: 'task', runId, taskId, text: textWith(reporting, runId, make) })
  }

  /** Without its client. */
  toJSON(): object {
    return { taskId: this.taskId, name: this.name }
  }
}
