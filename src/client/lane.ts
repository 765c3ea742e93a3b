import { EventBatch } from './event-batch.ts'
import { deferred } from './timing.ts'

interface ReportText {
  readonly runId: string
  /** The body of the call, or the part of it that is the event or the task. */
  readonly text: string
}

/** What a program reports: the start of a run, an event, the state of a task, the completion or the failure of a run. */
export type Report =
  | (ReportText & { readonly kind: 'start'; readonly parentRunId: string | undefined })
  | (ReportText & { readonly kind: 'task'; readonly taskId: string })
  | (ReportText & { readonly kind: 'event' | 'complete' | 'fail' })

/** The start or end of a run, with its number in order of arrival. */
export interface Queued {
  readonly report: Report
  readonly mark: number
}

/** The reports of a task that are sent as one, because later ones say everything that earlier ones do. */
export interface QueuedTask {
  readonly taskId: string
  readonly texts: string[]
  readonly marks: number[]
}

/** What is sent of a run in one go: the start, then events and tasks, then the end. */
export interface Batch {
  readonly start: Queued | undefined
  readonly events: EventBatch | undefined
  readonly tasks: readonly QueuedTask[]
  readonly end: Queued | undefined
}

/** With this many bytes, events are sent without waiting for more. */
const ENOUGH_BYTES = 128 * 1024

/** The reports of one run that wait to be sent. */
export class Lane {
  /** The run that started this one, while its own start is not acknowledged. */
  parent: Lane | undefined
  /** Whether it waits for its turn to be sent, or is being sent. */
  isActive = false
  /** Whether the start of the run waits to be acknowledged. */
  isStarting = false
  /** Why the service refused the start of the run. */
  refusal: unknown
  private start: Queued | undefined
  private end: Queued | undefined
  /** All but the last one are full. */
  private events: EventBatch[] = []
  private tasks = new Map<string, QueuedTask>()
  private readonly started = deferred()

  constructor(readonly runId: string) {}

  get isEmpty(): boolean {
    return this.start === undefined && this.events.length === 0 && this.tasks.size === 0 && this.end === undefined
  }

  /** Whether there is enough for a call, so that waiting for more is pointless. */
  hasEnough(eventsMax: number): boolean {
    const [first] = this.events
    return first !== undefined && (first.size >= ENOUGH_BYTES || first.count >= eventsMax)
  }

  /** @returns how much memory the report takes */
  add(report: Report, mark: number, eventsMax: number): number {
    if (report.kind === 'event') return this.addEvent(report.text, mark, eventsMax)
    if (report.kind === 'task') this.addTask(report.taskId, report.text, mark)
    else if (report.kind === 'start') {
      this.start = { report, mark }
      this.isStarting = true
    } else this.end = { report, mark }
    return report.text.length
  }

  private addEvent(text: string, mark: number, eventsMax: number): number {
    let last = this.events[this.events.length - 1]
    if (last === undefined || !last.hasRoomFor(text.length, eventsMax)) {
      last = new EventBatch(this.runId)
      this.events.push(last)
    }
    return last.add(text, mark)
  }

  private addTask(taskId: string, text: string, mark: number): void {
    const task = this.tasks.get(taskId) ?? { taskId, texts: [], marks: [] }
    this.tasks.set(taskId, task)
    task.texts.push(text)
    task.marks.push(mark)
  }

  /** Removes what can be sent in one go. The end is only part of it when nothing else is left. */
  take(): Batch {
    const { start } = this
    const events = this.events.shift()
    const tasks = [...this.tasks.values()]
    const end = this.events.length === 0 ? this.end : undefined
    this.start = undefined
    this.tasks = new Map()
    if (end !== undefined) this.end = undefined
    return { start, events, tasks, end }
  }

  /** Resolves when the start of the run was acknowledged or refused. */
  get startSettled(): Promise<void> {
    return this.started.promise
  }

  /** Call once the start of the run is acknowledged or refused. @param refusal why it was refused */
  settleStart(refusal?: unknown): void {
    this.refusal = refusal
    this.isStarting = false
    this.started.resolve()
  }
}
