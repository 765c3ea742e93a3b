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

/** Reports that wait no longer. */
export interface Settled {
  /** The memory they took. */
  readonly length: number
  readonly marks: readonly number[]
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
  private start: (Queued & { readonly report: { readonly kind: 'start' } }) | undefined
  private end: Queued | undefined
  /** All but the last one are full. */
  private events: ReportBatch[] = []
  private scores: ReportBatch[] = []
  private tasks = new Map<string, QueuedTask>()
  /** Starts and ends that were reported again before the first one was sent. */
  private later: Queued[] = []
  private hasStarted = false
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
    else if ((report.kind === 'start' ? this.start : this.end) !== undefined) this.later.push({ report, mark })
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
    const later = this.later
    this.later = []
    for (const { report, mark } of later) this.add(report, mark, 0)
    return { start, events, scores, tasks, end }
  }

  /** The run that started this one, while the start of this one waits here. */
  get parentRunId(): string | undefined {
    return this.start?.report.parentRunId
  }

  /** The end of the run, or its start if `alsoOpen`: by then all of the run is here. Infinity if it is not. */
  wholeAt(alsoOpen: boolean): number {
    const last = alsoOpen ? this.start : this.end
    return this.start === undefined || last === undefined ? Number.POSITIVE_INFINITY : last.mark
  }

  get hasEnd(): boolean {
    return this.end !== undefined
  }

  /** The memory that all of it takes. */
  get size(): number {
    const single = [this.start, this.end, ...this.later].reduce((sum, queued) => sum + lengthOf(queued), 0)
    return single + this.sizeThrough(Number.POSITIVE_INFINITY, true)
  }

  /** The memory that events and scores take that are not newer than a report, and with `withTasks` tasks, too. */
  sizeThrough(mark: number, withTasks: boolean): number {
    // Loops, because it is called very often.
    let size = 0
    for (const batch of this.events) size += batch.sizeOf(batch.countThrough(mark))
    for (const batch of this.scores) size += batch.sizeOf(batch.countThrough(mark))
    if (withTasks)
      for (const task of this.tasks.values()) if (task.marks.at(-1)! <= mark) size += settledTask(task).length
    return size
  }

  /** Removes these events and scores, and with `withTasks` tasks, too. */
  dropThrough(mark: number, withTasks: boolean): Settled {
    const tasks = withTasks ? [...this.tasks.values()].filter(({ marks }) => marks.at(-1)! <= mark) : []
    for (const { taskId } of tasks) this.tasks.delete(taskId)
    const [events, scores] = [dropFrom(this.events, mark), dropFrom(this.scores, mark)]
    this.events = events.rest
    this.scores = scores.rest
    return united([events.dropped, scores.dropped, ...tasks.map(settledTask)])
  }

  /** Removes everything. */
  dropAll(): Settled {
    const parts: Settled[] = []
    while (!this.isEmpty) parts.push(settledOf(this.take()))
    this.settleStart()
    return united(parts)
  }

  /** Resolves when the start of the run was acknowledged or refused. */
  get startSettled(): Promise<void> {
    return this.started.promise
  }

  /** Call once the start of the run is acknowledged or refused. @param refusal why it was refused */
  settleStart(refusal?: unknown): void {
    // A repeat that is refused says nothing about the run.
    if (refusal === undefined) this.hasStarted = true
    else if (!this.hasStarted) this.refusal = refusal
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

/** Everything of a batch. */
export function settledOf({ start, events, scores, tasks, end }: Batch): Settled {
  const ofBatch = (batch: ReportBatch | undefined) => ({ length: batch?.size ?? 0, marks: batch?.marks ?? [] })
  const single = (queued: Queued | undefined) => ({
    length: lengthOf(queued),
    marks: queued === undefined ? [] : [queued.mark],
  })
  return united([single(start), ofBatch(events), ofBatch(scores), ...tasks.map(settledTask), single(end)])
}

/** The reports of a task. */
export function settledTask({ texts, marks }: QueuedTask): Settled {
  return { length: texts.reduce((sum, text) => sum + text.length, 0), marks }
}

function united(parts: readonly Settled[]): Settled {
  return { length: sumOf(parts), marks: parts.flatMap(({ marks }) => marks) }
}

function sumOf(parts: readonly Settled[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}

function lengthOf(queued: Queued | undefined): number {
  return queued?.report.text.length ?? 0
}

/** Splits off the reports that are not newer than a mark. */
function dropFrom(batches: readonly ReportBatch[], mark: number): { dropped: Settled; rest: ReportBatch[] } {
  const rest: ReportBatch[] = []
  const parts: Settled[] = []
  for (const batch of batches) {
    const count = batch.countThrough(mark)
    parts.push({ length: batch.sizeOf(count), marks: batch.marks.slice(0, count) })
    if (count === 0) rest.push(batch)
    else if (count < batch.count) rest.push(batch.without(count))
    else batch.release()
  }
  return { dropped: united(parts), rest }
}
