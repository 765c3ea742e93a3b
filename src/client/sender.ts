import { ServiceError } from './errors.ts'
import type { components } from './generated/api.ts'
import { type Http, retryAfterOf } from './http.ts'
import { isUuid } from './ids.ts'
import { type Batch, type Lane, type Queued, type QueuedTask, type Settled, settledOf, settledTask } from './lane.ts'
import type { Losses } from './losses.ts'
import type { ReportBatch } from './report-batch.ts'
import { backoff, sleep } from './timing.ts'

/** The client was closed before the service answered. */
export class Abandoned extends Error {}

interface SenderOptions {
  readonly http: Http
  readonly losses: Losses
  readonly onSettled: (settled: Settled) => void
  /** Called once when the service has not been usable for long. */
  readonly onOutage: (cause: unknown) => void
}

/** The most events or scores that the service takes in one call, unless it is configured otherwise. */
const EVENTS_MAX = 5_000
const EVENTS_PATH = '/api/ingest/v1/events?partial=true'
const SCORES_PATH = '/api/ingest/v1/scores?partial=true'
/** How many tasks of a run are sent concurrently. */
const CONCURRENT_TASKS_MAX = 8
/** An outage is reported when it has lasted this long. */
const OUTAGE_REPORTED_MS = 10_000
/** Before a body of this size is sent, the limits of the service are read; they are rarely lower. */
const LARGE_LENGTH = 2 ** 20

/** Sends batches of reports, each until the service has acknowledged or refused it. */
export class Sender {
  acknowledged = 0
  retries = 0
  lastSeq = 0
  /** Falls to the limit of the service once that is known. */
  eventsMax = EVENTS_MAX
  private readonly deliveries = new Set<Delivery>()
  private readonly abandoned = new AbortController()
  /** Consecutive failures of any call, because they have one cause. */
  private failures = 0
  /** No call before this time. */
  private notBefore = 0
  private succeededAt = Number.NEGATIVE_INFINITY
  private outageReportedAt = Number.NEGATIVE_INFINITY
  /** The largest body that the service takes; unknown until it matters. */
  private bodyBytesMax: number | undefined

  constructor(private readonly options: SenderOptions) {}

  get isAbandoned(): boolean {
    return this.abandoned.signal.aborted
  }

  /** Ends all calls; what they carried is not settled. */
  abandon(): void {
    this.abandoned.abort()
    for (const { abort } of this.deliveries) abort.abort()
  }

  /** Sends the next batch of a run. @throws Abandoned */
  async send(lane: Lane): Promise<void> {
    if (lane.parent !== undefined) await lane.parent.startSettled
    lane.parent = undefined
    const batch = lane.take()
    if (batch.start !== undefined) lane.settleStart(await this.single(batch.start))
    if (lane.refusal !== undefined) return this.refuse(lane, batch)
    const { events, scores, tasks } = batch
    await Promise.all([
      events && this.batch(lane.runId, EVENTS_PATH, events),
      scores && this.batch(lane.runId, SCORES_PATH, scores),
      this.tasks(lane.runId, tasks),
    ])
    if (batch.end !== undefined) await this.single(batch.end)
  }

  private single({ report: { kind, runId, text }, mark }: Queued): Promise<unknown> {
    const settled = { length: text.length, marks: [mark] }
    return this.one(runId, `/api/ingest/v1/run/${kind}`, text, isAnswerFor('run_id', runId), settled)
  }

  private async tasks(runId: string, tasks: readonly QueuedTask[]): Promise<void> {
    for (let at = 0; at < tasks.length; at += CONCURRENT_TASKS_MAX)
      await Promise.all(tasks.slice(at, at + CONCURRENT_TASKS_MAX).map((task) => this.task(runId, task)))
  }

  private task(runId: string, task: QueuedTask): Promise<unknown> {
    const body = `{"run_id":"${runId}","task":${merged(task.texts)}}`
    return this.one(runId, '/api/ingest/v1/tasks', body, isAnswerFor('task_id', task.taskId), settledTask(task))
  }

  /** @returns why the service refused it, if it did */
  private async one(
    runId: string,
    path: string,
    body: string,
    isAnswer: Delivery['isAnswer'],
    settled: Settled,
  ): Promise<unknown> {
    try {
      await this.deliver(path, body, isAnswer)
      this.settle(settled)
      return undefined
    } catch (error) {
      if (error instanceof Abandoned) throw error
      this.reject(settled, runId, error)
      return error
    }
  }

  /** Sends events or scores. */
  private async batch(runId: string, path: string, batch: ReportBatch): Promise<void> {
    const settled = { length: batch.size, marks: batch.marks }
    try {
      const isAnswer = isAnswerForBatch(batch.count)
      const accepted = (await this.deliver(path, batch.body(), isAnswer, batch.count > 1)) as Accepted
      batch.release()
      this.lastSeq = Math.max(this.lastSeq, accepted.last_seq ?? 0)
      const { rejected = [] } = accepted
      this.acknowledged -= rejected.length
      this.settle(settled)
      if (rejected.length === 0) return
      const details = rejected.map(({ message }) => message).slice(0, 3)
      this.options.losses.reject('rejected', rejected.length, details.join('; '), runId)
    } catch (error) {
      if (error instanceof Abandoned) throw error
      if (batch.count > 1 && concernsSome(error, runId)) await this.sendHalves(runId, path, batch)
      else this.reject(settled, runId, error)
    }
  }

  /** Splits the batch, so that one refused report does not fail the others. */
  private async sendHalves(runId: string, path: string, batch: ReportBatch): Promise<void> {
    await this.readLimits()
    for (const half of batch.halves()) await this.batch(runId, path, half)
  }

  /** Rejects what follows the start of a run. */
  private refuse(lane: Lane, batch: Batch): void {
    const settled = settledOf({ ...batch, start: undefined })
    if (settled.marks.length > 0) this.reject(settled, lane.runId, lane.refusal)
  }

  private settle(settled: Settled): void {
    this.acknowledged += settled.marks.length
    this.options.onSettled(settled)
  }

  private reject(settled: Settled, runId: string, error: unknown): void {
    this.options.losses.reject('rejected', settled.marks.length, error, runId)
    this.options.onSettled(settled)
  }

  /**
   * Sends a call until the service answers it, however long that takes.
   *
   * @param isAnswer whether `data` can be the service's answer to this call
   * @param canBeSplit whether a body that is too large for a proxy can be sent in parts
   * @throws ServiceError when the service will never accept the call, or it has to be split; Abandoned
   */
  private async deliver(
    path: string,
    body: Body,
    isAnswer: Delivery['isAnswer'],
    canBeSplit = false,
  ): Promise<unknown> {
    const abort = new AbortController()
    const delivery: Delivery = { path, body, isAnswer, canBeSplit, abort, failingSince: undefined, isReported: false }
    this.deliveries.add(delivery)
    try {
      while (!this.isAbandoned) {
        const outcome = await this.attempt(delivery)
        if (outcome !== undefined) return outcome.data
      }
      throw new Abandoned()
    } finally {
      this.deliveries.delete(delivery)
    }
  }

  /** Waits until calls may be sent again, and tries once. @returns undefined after a temporary failure */
  private async attempt(delivery: Delivery): Promise<{ data: unknown } | undefined> {
    const { path, body, abort } = delivery
    for (let now = performance.now(); now < this.notBefore && !this.isAbandoned; now = performance.now())
      await sleep(this.notBefore - now, abort.signal, false)
    if (this.isAbandoned) return undefined
    try {
      if (body.length >= LARGE_LENGTH) await this.checkLength(body)
      const data = await this.options.http.attempt({ path, body, signal: abort.signal })
      if (!delivery.isAnswer(data)) throw new ServiceError({ status: 200 })
      this.failures = 0
      this.options.losses.lastFailure = undefined
      this.succeededAt = performance.now()
      return { data }
    } catch (error) {
      if (this.isAbandoned) return undefined
      // Anything else may come from a wrong address, a proxy or a wrong key, and says nothing about the reports.
      if (error instanceof ServiceError && (error.isFinal || (delivery.canBeSplit && error.status === 413))) throw error
      this.retries++
      this.failures++
      this.options.losses.lastFailure = error
      this.notBefore = performance.now() + Math.max(retryAfterOf(error), backoff(this.failures))
      this.reportOutage(delivery, error)
      return undefined
    }
  }

  /**
   * The service may close the connection before its answer about a body that is much too large could be read, so such a body
   * is not sent. @throws ServiceError
   */
  private async checkLength(body: Body): Promise<void> {
    await this.readLimits()
    if (this.bodyBytesMax === undefined || body.length <= this.bodyBytesMax) return
    const detail = `the service takes at most ${this.bodyBytesMax} bytes in one call`
    throw new ServiceError({ status: 413, code: 'PAYLOAD_TOO_LARGE', detail, isFinal: true })
  }

  /** Reads the limits of the service, unless they are known. If that fails, a refused batch is still sent in parts. */
  private async readLimits(): Promise<void> {
    if (this.bodyBytesMax !== undefined) return
    const call = { path: '/api/v1/limits', signal: this.abandoned.signal }
    const limits = (await this.options.http.attempt(call).catch(() => null)) as Limits | null
    if (typeof limits?.body_bytes === 'number') this.bodyBytesMax = limits.body_bytes
    const eventsMax = Number(limits?.events_per_call)
    if (eventsMax >= 1) this.eventsMax = Math.min(this.eventsMax, eventsMax)
  }

  /** Once per outage, and once per call that is held up while others succeed. */
  private reportOutage(delivery: Delivery, error: unknown): void {
    const now = performance.now()
    delivery.failingSince ??= now
    if (delivery.isReported || now - delivery.failingSince < OUTAGE_REPORTED_MS) return
    delivery.isReported = true
    if (delivery.failingSince <= this.outageReportedAt || this.succeededAt < this.outageReportedAt) return
    this.outageReportedAt = now
    this.options.onOutage(error)
  }
}

type Body = string | Uint8Array<ArrayBuffer>

/** A call that is repeated until it is answered. */
interface Delivery {
  readonly path: string
  readonly body: Body
  readonly isAnswer: (data: unknown) => boolean
  readonly canBeSplit: boolean
  readonly abort: AbortController
  failingSince: number | undefined
  isReported: boolean
}

/** As the service answers; a proxy may answer anything. */
type Limits = Partial<components['schemas']['Limits']>

interface Accepted {
  readonly accepted: number
  readonly duplicates: number
  readonly last_seq: number | null
  readonly rejected?: readonly { readonly index: number; readonly message: string }[]
}

/** Whether an answer is about that many events or scores, and has the members that are read. */
function isAnswerForBatch(count: number): (data: unknown) => boolean {
  return (data) => {
    const { accepted, duplicates, last_seq = null, rejected = [] } = (data ?? {}) as Partial<Accepted>
    if (last_seq !== null && typeof last_seq !== 'number') return false
    if (!Array.isArray(rejected) || !rejected.every((each) => typeof each?.message === 'string')) return false
    return Number(accepted) + Number(duplicates) + rejected.length === count
  }
}

/** Whether an answer names the run or task that was reported. */
function isAnswerFor(member: string, id: string): (data: unknown) => boolean {
  return (data) => {
    const named = (data as Record<string, unknown> | null)?.[member]
    return typeof named === 'string' && named.toLowerCase() === id.toLowerCase()
  }
}

/** Whether a refusal may be about only some of a batch: about their content, and not about their run. */
function concernsSome(error: unknown, runId: string): boolean {
  if (!(error instanceof ServiceError)) return false
  return error.status === 413 || (error.code === 'VALIDATION_ERROR' && isUuid(runId))
}

/** Later reports of a task override the members of earlier ones. */
function merged(texts: readonly string[]): string {
  if (texts.length === 1) return texts[0]!
  return JSON.stringify(Object.assign({}, ...texts.map((text) => JSON.parse(text) as object)))
}
