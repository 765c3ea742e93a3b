import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { Activity } from '../../live/activity.ts'
import type { Message } from '../message.ts'
import type { Outcome } from './attempt.ts'
import {
  type Attempted,
  type AttemptResults,
  deliveryRow,
  failedRow,
  type RetryRow,
  type RowKey,
  waitingRow,
} from './attempt-results.ts'
import { DueRows } from './due-rows.ts'
import { Health, type StoredHealth } from './health.ts'
import type { Intake } from './intake.ts'
import { Order, type Ordered } from './order.ts'
import { Pace } from './pace.ts'
import { delayAfter, type Schedule } from './schedule.ts'
import type { Slots } from './slots.ts'
import { Sources } from './sources.ts'
import { Storing } from './storing.ts'

interface EndpointDeps {
  readonly webhookId: string
  readonly workspaceId: string
  readonly isStrict: boolean
  /** Makes one attempt. @throws the signal's reason when it aborts */
  readonly attempt: (message: Message, at: number, signal: AbortSignal) => Promise<Outcome>
  /** The messages of activities, in order; none for one that is not sent. */
  readonly messagesOf: (activities: readonly Activity[]) => Promise<readonly Message[]>
  /** Stores it. Called again with the same one if it fails. @returns the rows that cannot be stored, or were deleted meanwhile */
  readonly store: (results: AttemptResults) => Promise<readonly RowKey[]>
  /** Waits a moment, so that what ends meanwhile is stored together. */
  readonly gather: () => Promise<void>
  readonly schedule: Schedule
  /** Rows that the endpoint may have; with so many it sends nothing new. */
  readonly rowsMax: number
  readonly slots: Slots
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly log: Log
  readonly onAttempt: (outcome: Outcome) => void
  /** Rows may be due: {@link Endpoint.addDue}. */
  readonly onDue: () => void
}

/** What is stored of an endpoint when it starts. */
interface StoredState extends StoredHealth {
  readonly rows: Iterable<RowKey>
}

interface Delivery extends Ordered {
  readonly message: Message
  /** Attempts made before. */
  readonly attempts: number
  /** Where it came from; null for a row. */
  readonly intake: Intake | null
}

interface Ended extends Attempted {
  readonly delivery: Delivery
}

interface Settling {
  readonly results: AttemptResults
  readonly ended: readonly Ended[]
  readonly waiting: readonly Delivery[]
}

/** The key of all deliveries of an endpoint that sends one at a time. */
const ANY = ''
/** Bounds a statement: deliveries are up to 20 KiB long. */
const SETTLED_MAX = 100

/**
 * Delivers to one endpoint: new activity, and rows that are due. Each attempt is stored before the position passes it; a
 * failed delivery becomes a row, and so do those of its run that follow, in order. It has no timers: {@link tick} must be
 * called about once a second.
 */
export class Endpoint {
  /** What it delivers. */
  readonly sources: Sources
  private readonly order = new Order<Delivery>()
  private readonly pace: Pace
  private readonly state: Health
  private readonly due = new DueRows()
  /** Positions of the stored rows. */
  private readonly rows = new Set<number>()
  /** New deliveries that may yet become rows. */
  private unsure = 0
  private isRetryNext = false
  private ended: Ended[] = []
  private removed: RowKey[] = []
  private readonly storing: Storing<Settling, readonly RowKey[]>
  private readonly stopping = new AbortController()
  private isStopping = false
  private readonly underWay = new Set<Promise<void>>()
  private readonly pumpLater = () => this.pump()

  constructor(
    private readonly deps: EndpointDeps,
    stored: StoredState,
  ) {
    this.pace = new Pace(deps.isStrict ? 1 : undefined)
    this.state = new Health(stored)
    for (const row of stored.rows) this.addRow(row)
    this.sources = new Sources({
      ...deps,
      add: (message, intake) => this.order.add({ message, attempts: 0, intake, key: this.keyOf(message.runId) }),
      onMessages: () => {
        this.settle()
        this.pump()
      },
    })
    this.storing = new Storing({
      next: () => this.nextSettling(),
      store: ({ results }) => deps.store(results),
      stored: (settling, givenUp) => this.settled(settling, givenUp),
      gather: deps.gather,
    })
  }

  /** Stored deliveries that have not succeeded. */
  get pending(): number {
    return this.rows.size
  }

  /** Whether it sends nothing new because it has too many rows. */
  get isBehind(): boolean {
    return this.rows.size >= this.deps.rowsMax
  }

  get isDisabled(): boolean {
    return this.state.disabledBecause !== null
  }

  /** Whether results are being stored, or could not be yet. */
  get isStoring(): boolean {
    return this.storing.current !== undefined
  }

  /** Attempts whose results are not stored yet. */
  get unstored(): number {
    return this.ended.length + (this.storing.current?.ended.length ?? 0)
  }

  get health(): StoredHealth {
    return this.state.stored
  }

  /** Continues what waits for a pause to end, or for a store that failed. */
  tick(): void {
    void this.sources.build()
    this.settle()
    this.pump()
  }

  /** How many rows {@link addDue} takes, and which ones it has. Call it before they are read. */
  beginLoading(): ReturnType<DueRows['beginLoading']> {
    return this.due.beginLoading()
  }

  /** Takes rows that are due. @param hasMore whether there are others */
  addDue(rows: readonly RetryRow[], hasMore: boolean): void {
    this.due.add(rows, hasMore)
    this.pump()
  }

  /** A delivery that was attempted on request has succeeded: its row, if it has one, is no longer needed. */
  forget(row: RowKey): void {
    this.removed.push(row)
    this.settle()
  }

  /**
   * Sends nothing more, and stores what has ended. Attempts and stores that take longer than `graceMs` are given up: what they
   * were for is done again by whoever delivers next.
   */
  async stop(graceMs: number): Promise<void> {
    this.isStopping = true
    this.deps.slots.forget(this.pumpLater)
    this.sources.end()
    const timer = setTimeout(() => this.stopping.abort(new Error('the endpoint is stopping')), graceMs)
    const aborted = new Promise((resolve) => this.stopping.signal.addEventListener('abort', resolve))
    await Promise.all(this.underWay)
    this.settle()
    await Promise.race([this.storing.finished, aborted])
    clearTimeout(timer)
  }

  /** How many more deliveries may become rows. */
  private get room(): number {
    const { waiting = [] } = this.storing.current ?? {}
    return this.deps.rowsMax - this.rows.size - this.unsure - waiting.length
  }

  private keyOf(runId: string | null): string | null {
    return this.deps.isStrict ? ANY : runId
  }

  /** Starts as many attempts as may be under way. Rows and new deliveries take turns. */
  private pump(): void {
    const { clock, slots, workspaceId } = this.deps
    const now = clock.now()
    while (!this.isStopping && !this.isDisabled && this.pace.hasRoom(now)) {
      const hasNew = this.order.hasNext && this.room > 0
      const isRetry = this.due.hasNext && (!hasNew || this.isRetryNext)
      if (!(isRetry || hasNew) || !slots.take(workspaceId, this.pumpLater)) break
      const delivery = isRetry ? this.nextDue() : this.order.next()
      if (delivery === undefined) break
      this.isRetryNext = !isRetry
      if (!isRetry) this.unsure++
      const work = this.deliver(delivery, now)
      this.underWay.add(work)
      void work.finally(() => this.underWay.delete(work))
    }
    if (this.due.takeHasMore()) this.deps.onDue()
  }

  private nextDue(): Delivery | undefined {
    const row = this.due.next()
    if (row === undefined) return undefined
    // Nothing needs the time: the stored body contains it.
    const message = { ...row, timestamp: '' }
    return { message, attempts: row.attempt, intake: null, key: this.keyOf(row.runId) }
  }

  private async deliver(delivery: Delivery, at: number): Promise<void> {
    const { slots, workspaceId, clock, schedule, isStrict, random } = this.deps
    this.pace.started(at)
    const { message } = delivery
    const { problem } = message
    const outcome = problem === undefined ? await this.attempt(message, at) : notSent(problem)
    slots.release(workspaceId)
    if (outcome === null) {
      this.pace.cancelled()
      return
    }
    const now = clock.now()
    this.deps.onAttempt(outcome)
    if (outcome.isOurs) this.pace.cancelled()
    else {
      this.pace.ended(outcome, now)
      this.state.note(outcome, schedule, now)
    }
    const attempt = delivery.attempts + 1
    const { retryAfterMs, isOurs = false } = outcome
    const failed = { attempt, isStrict: isStrict && !isOurs, retryAfterMs }
    const delay = outcome.isSuccess || problem !== undefined ? null : delayAfter(schedule, failed, random())
    this.ended.push({ delivery, message, attempt, outcome, at, nextAt: delay === null ? null : now + delay })
    if (outcome.isSuccess && delivery.intake !== null) {
      this.unsure--
      this.order.done(delivery)
    }
    this.settle()
    this.pump()
  }

  /** Null if it was interrupted. */
  private async attempt(message: Message, at: number): Promise<Outcome | null> {
    const { signal } = this.stopping
    try {
      return await this.deps.attempt(message, at, signal)
    } catch (error) {
      if (signal.aborted) return null
      this.deps.log.error('webhooks: an attempt broke', { webhook_id: this.deps.webhookId, error })
      return notSent('the service could not make the attempt')
    }
  }

  private settle(): void {
    if (this.hasToSettle) this.storing.start()
  }

  private get hasToSettle(): boolean {
    return (
      this.storing.current !== undefined ||
      this.ended.length > 0 ||
      this.removed.length > 0 ||
      (!this.deps.isStrict && this.order.hasBlocked && !this.isBehind)
    )
  }

  private nextSettling(): Settling | undefined {
    const { workspaceId, webhookId, isStrict } = this.deps
    const ended = this.ended.splice(0, SETTLED_MAX)
    const room = Math.min(SETTLED_MAX, this.room)
    const waiting = isStrict || room <= 0 || this.isStopping ? [] : this.order.takeBlocked(room)
    const removed = this.removed.splice(0)
    if (ended.length + waiting.length + removed.length === 0) return undefined
    const gone = ended.filter(({ delivery, nextAt }) => delivery.intake === null && nextAt === null)
    const results = {
      workspaceId,
      webhookId,
      disabledBecause: this.state.disabledBecause,
      attempts: ended.map((each) => deliveryRow({ workspaceId, webhookId }, each)),
      rows: [
        ...waiting.map(({ message }) => waitingRow(message)),
        ...ended.filter(({ nextAt }) => nextAt !== null).map(failedRow),
      ],
      gone: [...gone.map(({ message }) => message), ...removed],
    }
    return { results, ended, waiting }
  }

  private settled({ ended, waiting, results }: Settling, notStored: readonly RowKey[]): void {
    for (const { delivery, message, outcome } of ended)
      if (delivery.intake === null) this.due.settled(message.seq)
      else {
        delivery.intake.finish(message.seq)
        if (!outcome.isSuccess) this.unsure--
      }
    for (const { message, intake } of waiting) intake?.finish(message.seq)
    for (const row of results.rows) this.addRow(row)
    for (const { delivery, outcome } of ended)
      if (delivery.intake !== null && !outcome.isSuccess) this.order.done(delivery)
    const gone = [...results.gone, ...notStored]
    for (const row of gone) this.removeRow(row)
    if (gone.length > 0) this.deps.onDue()
    // There is room for other messages.
    void this.sources.build()
    this.pump()
  }

  private addRow({ seq, runId }: RowKey): void {
    if (this.rows.has(seq)) return
    this.rows.add(seq)
    this.order.addRow(this.keyOf(runId))
  }

  private removeRow({ seq, runId }: RowKey): void {
    if (this.rows.delete(seq)) this.order.removeRow(this.keyOf(runId))
  }
}

/** It is not the receiver that has failed. */
export function notSent(response: string): Outcome {
  return { isSuccess: false, httpStatus: null, durationMs: 0, response, retryAfterMs: 0, isOurs: true }
}
