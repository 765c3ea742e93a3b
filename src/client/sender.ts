import { backoff, sleep } from './backoff.ts'
import { ReportError, ServiceError } from './errors.ts'
import type { EventBatch } from './event-batch.ts'
import { type Call, type Http, isTemporary, retryAfterOf } from './http.ts'
import type { Batch, Lane, Queued, QueuedTask } from './lane.ts'

/** Thrown when the client is closed before the service answered. */
export class Abandoned extends Error {}

/** Reports that the service has acknowledged or refused. */
export interface Settled {
  /** Characters. */
  readonly length: number
  readonly marks: readonly number[]
}

/** The most events that the service takes in one call, unless it is configured otherwise. */
const EVENTS_MAX = 5_000
const TASKS_AT_ONCE = 8
/** An outage is reported when it has lasted this long. */
const OUTAGE_REPORTED_MS = 10_000
const PATHS = { s: '/api/ingest/v1/run/start', c: '/api/ingest/v1/run/complete', f: '/api/ingest/v1/run/fail' } as const

/** Sends batches of reports, each until the service has acknowledged or refused it. */
export class Sender {
  acknowledged = 0
  rejected = 0
  retries = 0
  lastSeq = 0
  /** Falls when the service says that it takes fewer. */
  eventsMax = EVENTS_MAX
  /** One for each call that is being delivered. */
  private readonly deliveries = new Set<AbortController>()
  private isAbandoned = false
  /** Consecutive failures of any call, because they have one cause. */
  private failures = 0
  /** No call before this time. */
  private notBefore = 0
  private outageSince: number | undefined

  constructor(
    private readonly http: Http,
    private readonly onError: (error: ReportError) => void,
    private readonly onSettled: (settled: Settled) => void,
    /** Called once when the service has not been usable for long. */
    private readonly onOutage: (cause: unknown) => void,
    /** Whether reports wait for a valid key, because the next client can send them. */
    private readonly waitsForKey: boolean,
  ) {}

  /** Ends all calls; what they carried is not settled. */
  abandon(): void {
    this.isAbandoned = true
    for (const delivery of this.deliveries) delivery.abort()
  }

  /** Sends the next batch of a run. @throws Abandoned */
  async send(lane: Lane): Promise<void> {
    if (lane.parent !== undefined) await lane.parent.startSettled
    lane.parent = undefined
    const batch = lane.take()
    if (batch.start !== undefined) await this.start(lane, batch.start)
    if (lane.refusal !== undefined) return this.refuse(lane, batch)
    const { events } = batch
    const sending = events === undefined ? undefined : this.events(lane.runId, events)
    await Promise.all([sending, this.tasks(lane.runId, batch.tasks)])
    if (batch.end !== undefined) await this.single(batch.end)
  }

  private async start(lane: Lane, start: Queued): Promise<void> {
    lane.settleStart(await this.single(start))
  }

  /** @returns why the service refused it, if it did */
  private async single(report: Queued): Promise<unknown> {
    const { kind, runId, text, mark } = report
    const settled = { length: text.length, marks: [mark] }
    try {
      await this.deliver(PATHS[kind as keyof typeof PATHS], text)
      this.settle(settled)
      return undefined
    } catch (error) {
      if (error instanceof Abandoned) throw error
      this.reject(settled, runId, error)
      return error
    }
  }

  private async tasks(runId: string, tasks: readonly QueuedTask[]): Promise<void> {
    for (let at = 0; at < tasks.length; at += TASKS_AT_ONCE)
      await Promise.all(tasks.slice(at, at + TASKS_AT_ONCE).map((task) => this.task(runId, task)))
  }

  private async task(runId: string, { texts, marks }: QueuedTask): Promise<void> {
    const settled = { length: lengthOf(texts), marks }
    try {
      await this.deliver('/api/ingest/v1/tasks', `{"run_id":"${runId}","task":${merged(texts)}}`)
      this.settle(settled)
    } catch (error) {
      if (error instanceof Abandoned) throw error
      this.reject(settled, runId, error)
    }
  }

  private async events(runId: string, batch: EventBatch): Promise<void> {
    const settled = { length: batch.size, marks: batch.marks }
    try {
      const accepted = (await this.deliver('/api/ingest/v1/events?partial=true', batch.body())) as Accepted
      batch.release()
      this.lastSeq = Math.max(this.lastSeq, accepted.last_seq ?? 0)
      const { rejected = [] } = accepted
      this.acknowledged -= rejected.length
      this.settle(settled)
      this.refuseInvalid(runId, rejected)
    } catch (error) {
      if (error instanceof Abandoned) throw error
      if (batch.count > 1 && isTooLarge(error)) await this.halves(runId, batch, error)
      else this.reject(settled, runId, error)
    }
  }

  /** So that an event that the service does not take does not take others with it. */
  private async halves(runId: string, batch: EventBatch, error: unknown): Promise<void> {
    const limit = Number(/at most (\d+) events/.exec(String(error))?.[1])
    if (limit >= 1) this.eventsMax = Math.min(this.eventsMax, limit)
    for (const half of batch.halves()) await this.events(runId, half)
  }

  private refuseInvalid(runId: string, rejected: NonNullable<Accepted['rejected']>): void {
    if (rejected.length === 0) return
    this.rejected += rejected.length
    const details = rejected.map(({ message }) => message).slice(0, 3)
    this.onError(new ReportError({ reason: 'rejected', reports: rejected.length, runId }, details.join('; ')))
  }

  private refuse(lane: Lane, { events, tasks, end }: Batch): void {
    const marks = [...(events?.marks ?? []), ...tasks.flatMap((task) => task.marks)]
    if (end !== undefined) marks.push(end.mark)
    if (marks.length === 0) return
    const length = (events?.size ?? 0) + lengthOf(tasks.flatMap(({ texts }) => texts)) + (end?.text.length ?? 0)
    this.reject({ length, marks }, lane.runId, lane.refusal)
  }

  private settle(settled: Settled): void {
    this.acknowledged += settled.marks.length
    this.onSettled(settled)
  }

  private reject(settled: Settled, runId: string, error: unknown): void {
    this.rejected += settled.marks.length
    const detail = error instanceof Error ? error.message : String(error)
    this.onError(new ReportError({ reason: 'rejected', reports: settled.marks.length, runId }, detail, error))
    this.onSettled(settled)
  }

  /** Sends a call until the service answers, however long that takes. @throws ServiceError, Abandoned */
  private async deliver(path: string, body: string | Uint8Array<ArrayBuffer>): Promise<unknown> {
    const delivery = new AbortController()
    this.deliveries.add(delivery)
    try {
      while (!this.isAbandoned) {
        const outcome = await this.attempt({ path, body, signal: delivery.signal })
        if (outcome !== undefined) return outcome.data
      }
      throw new Abandoned()
    } finally {
      this.deliveries.delete(delivery)
    }
  }

  /** Waits until calls may be sent again, and tries once. @returns undefined after a temporary failure */
  private async attempt(call: Call & { signal: AbortSignal }): Promise<{ data: unknown } | undefined> {
    for (let now = performance.now(); now < this.notBefore && !this.isAbandoned; now = performance.now())
      await sleep(this.notBefore - now, call.signal, false)
    if (this.isAbandoned) return undefined
    try {
      const data = await this.http.attempt(call)
      this.failures = 0
      this.outageSince = undefined
      return { data }
    } catch (error) {
      if (this.isAbandoned) return undefined
      if (!this.mayPass(error)) throw error
      this.retries++
      this.failures++
      this.notBefore = performance.now() + Math.max(retryAfterOf(error), backoff(this.failures))
      this.noteOutage(error)
      return undefined
    }
  }

  private mayPass(error: unknown): boolean {
    return isTemporary(error) || (this.waitsForKey && error instanceof ServiceError && error.status === 401)
  }

  private noteOutage(error: unknown): void {
    this.outageSince ??= performance.now()
    if (performance.now() - this.outageSince < OUTAGE_REPORTED_MS) return
    this.outageSince = Number.POSITIVE_INFINITY
    this.onOutage(error)
  }
}

interface Accepted {
  readonly last_seq: number | null
  readonly rejected?: readonly { readonly index: number; readonly message: string }[]
}

function isTooLarge(error: unknown): boolean {
  return error instanceof ServiceError && (error.status === 413 || /^events\b/.test(error.reason))
}

/** Later reports of a task override the members of earlier ones. */
function merged(texts: readonly string[]): string {
  if (texts.length === 1) return texts[0]!
  return JSON.stringify(Object.assign({}, ...texts.map((text) => JSON.parse(text) as object)))
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}
