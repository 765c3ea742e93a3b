import { ReportBatch } from './report-batch.ts'
import { deferred } from './timing.ts'

interface ReportText {
  readonly runId: string
  /** The body of the call, or the part of it that is the event, the score or the task. */
  readonly text: string
}

/** What a program reports: the start of a run, an event, a score, the state of a task, the completion or the failure of a run. */
export type Report =
  | (ReportText & { readonly kind: 'start'; readonly parentRunId: string | undefined })
  | (ReportText & { readonly kind: 'task'; readonly taskId: string })
  | (ReportText & { readonly kind: 'event' | 'score' | 'complete' | 'fail' })

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

/** What is sent of a run in one go: the start, then events, scores and tasks, then the end. */
export interface Batch {
  readonly start: Queued | undefined
  readonly events: ReportBatch | undefined
  readonly scores: ReportBatch | undefined
  readonly tasks: readonly QueuedTask[]
  readonly end: Queued | undefined
}

/** With this many bytes, events or scores are sent without waiting for more. */
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
  private readonly events: ReportBatch[] = []
  private readonly scores: ReportBatch[] = []
  private tasks = new Map<string, QueuedTask>()
  private readonly started = deferred()

  constructor(readonly runId: string) {}

  get isEmpty(): boolean {
    return this.start === undefined && this.hasNoBatches && this.tasks.size === 0 && this.end === undefined
  }

  private get hasNoBatches(): boolean {
    return this.events.length === 0 && this.scores.length === 0
  }

  /** Whether there is enough for a call, so that waiting for more is pointless. */
  hasEnough(countMax: number): boolean {
    const isEnough = (first: ReportBatch | undefined) =>
      first !== undefined && (first.size >= ENOUGH_BYTES || first.count >= countMax)
    return isEnough(this.events[0]) || isEnough(this.scores[0])
  }

  /** @returns how much memory the report takes */
  add(report: Report, mark: number, countMax: number): number {
    if (report.kind === 'event') {
      const head = `{"run_id":"${this.runId}","events":[`
      return addTo(this.events, head, report.text, mark, countMax)
    }
    if (report.kind === 'score') return addTo(this.scores, '{"scores":[', report.text, mark, countMax)
    if (report.kind === 'task') this.addTask(report.taskId, report.text, mark)
    else if (report.kind === 'start') {
      this.start = { report, mark }
      this.isStarting = true
    } else this.end = { report, mark }
    return report.text.length
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
    const scores = this.scores.shift()
    const tasks = [...this.tasks.values()]
    const end = this.hasNoBatches ? this.end : undefined
    this.start = undefined
    this.tasks = new Map()
    if (end !== undefined) this.end = undefined
    return { start, events, scores, tasks, end }
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

/** Adds a report to the last batch that has room for it, or to a new one. @returns how many bytes it takes */
function addTo(batches: ReportBatch[], head: string, text: string, mark: number, countMax: number): number {
  let last = batches.at(-1)
  if (last === undefined || !last.hasRoomFor(text.length, countMax)) {
    last = new ReportBatch(head)
    batches.push(last)
  }
  return last.add(text, mark)
}
