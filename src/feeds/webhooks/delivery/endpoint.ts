import { orAborted } from '../../../base/abort.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { OwnedPartition } from '../../../tenants/partitions/partition.ts'
import type { Activity } from '../../live/activity.ts'
import type { FeedSource } from '../../live/feed-source.ts'
import { filterOf } from '../filter.ts'
import type { Message } from '../message.ts'
import type { StoredWebhook } from '../schema.ts'
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
import { Health } from './health.ts'
import { Intake } from './intake.ts'
import { Order, type Ordered } from './order.ts'
import { Pace } from './pace.ts'
import type { ActiveWebhook, Progress } from './positions.ts'
import { delayAfter, type Schedule } from './schedule.ts'
import type { Slots } from './slots.ts'
import { mayMove, move, type State } from './states.ts'

interface EndpointDeps {
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
  /** Characters of activities that may wait. */
  readonly queueLengthMax: () => number
  /** The next round has something to do: rows may be due, or the endpoint has broken. */
  readonly wake: () => void
}

/** Where an endpoint reads, and who may write. */
export interface Place {
  readonly owned: OwnedPartition
  readonly source: FeedSource
}

/** Where an endpoint starts. */
interface Start {
  readonly rows: Iterable<RowKey>
  readonly afterSeq: number
}

/** The part of the log that somebody wants again. */
type AskedFor = Pick<ActiveWebhook, 'recover_position' | 'recover_until'>

/** A part of the log that is delivered again. */
interface Recovery {
  readonly intake: Intake
  /** The position that is stored. */
  from: number
  readonly until: number
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
const ACTIVITIES_AT_ONCE = 50
const STOP_MS = 2_000
/** How often the position of an idle endpoint is stored. A restart reads the log again from there. */
const IDLE_SAVE_MS = 30_000

/**
 * Delivers to one endpoint: new activity, a part of the log again if that was asked for, and rows that are due. Each attempt is
 * stored before the position passes it; a failed delivery becomes a row, and so do those of its run that follow, in order. It
 * has no timers: {@link tick} must be called about once a second. Its states are in `states.ts`.
 */
export class Endpoint {
  /** On a monotonic clock. */
  readonly startedAtMs = performance.now()
  private current: State = 'delivering'
  private readonly ids: { readonly workspaceId: string; readonly webhookId: string }
  private readonly isStrict: boolean
  private readonly intake: Intake
  private recovery: Recovery | undefined
  private readonly release: () => void
  private isBuilding = false
  private readonly order = new Order<Delivery>()
  private readonly pace: Pace
  private readonly health: Health
  private readonly due = new DueRows()
  /** Positions of the stored rows. */
  private readonly rows = new Set<number>()
  /** New deliveries that may yet become rows. */
  private unsure = 0
  private isRetryNext = false
  private ended: Ended[] = []
  private removed: RowKey[] = []
  /** What is being stored, or could not be. */
  private settling: Settling | undefined
  private storing: Promise<void> | undefined
  private saved: Progress | undefined
  private savedAtMs = 0
  private readonly aborting = new AbortController()
  private readonly underWay = new Set<Promise<void>>()
  private readonly pumpLater = () => this.alone(() => this.pump())

  /** @throws ApiError as `Hub.subscribe` */
  constructor(
    private readonly deps: EndpointDeps,
    readonly webhook: StoredWebhook,
    readonly place: Place,
    { rows, afterSeq }: Start,
  ) {
    this.ids = { workspaceId: webhook.workspace_id, webhookId: webhook.webhook_id }
    this.isStrict = webhook.ordering === 'strict'
    this.pace = new Pace(this.isStrict ? 1 : undefined)
    this.health = new Health({
      failingSince: webhook.failing_since?.getTime() ?? null,
      failingMs: webhook.failing_ms,
      succeededAt: webhook.succeeded_at?.getTime() ?? null,
      failedAt: webhook.failed_at?.getTime() ?? null,
    })
    for (const row of rows) this.addRow(row)
    this.intake = this.open(afterSeq)
    this.release = place.source.retain(() => this.breakOff())
  }

  get state(): State {
    return this.current
  }

  /** Rows of the log that it has yet to process. */
  get lag(): number {
    return Math.max(0, this.place.source.journal.endSeq - this.intake.position)
  }

  /** Stored deliveries that have not succeeded. */
  get pending(): number {
    return this.rows.size
  }

  /** Whether it sends nothing new because it has too many rows. */
  get isBehind(): boolean {
    return this.rows.size >= this.deps.rowsMax
  }

  /** Whether results are being stored, or could not be yet. */
  get isStoring(): boolean {
    return this.settling !== undefined
  }

  /** Attempts whose results are not stored yet. */
  get unstored(): number {
    return this.ended.length + (this.settling?.ended.length ?? 0)
  }

  /** Follows what was asked for, and continues what waits for a pause to end, or for a store that failed. */
  tick(askedFor: AskedFor): void {
    this.alone(() => {
      this.followRecovery(askedFor)
      void this.build()
      this.settle()
      this.pump()
    })
  }

  /** How many rows {@link addDue} takes, and which ones it has. Call it before they are read. */
  dueRequest() {
    return { webhookId: this.ids.webhookId, isStrict: this.isStrict, ...this.due.beginLoading() }
  }

  /** Takes rows that are due. @param hasMore whether there are others */
  addDue(rows: readonly RetryRow[], hasMore: boolean): void {
    this.alone(() => {
      this.due.add(rows, hasMore)
      this.pump()
    })
  }

  /** A delivery that was attempted on request has succeeded: its row, if it has one, is no longer needed. */
  forget(row: RowKey): void {
    this.removed.push(row)
    this.settle()
  }

  /** How far it has got, if that is worth storing. */
  progressToStore(nowMs: number): Progress | undefined {
    const progress = this.progress()
    const { saved } = this
    const isDue = saved === undefined || nowMs - this.savedAtMs > IDLE_SAVE_MS || hasChanged(saved, progress)
    return isDue ? progress : undefined
  }

  progress(): Progress {
    const { webhook_id: webhookId, version, epoch } = this.webhook
    const recovery = this.recovery && {
      from: this.recovery.from,
      until: this.recovery.until,
      position: Math.max(this.recovery.from, this.recovery.intake.position),
    }
    return {
      webhookId,
      version,
      epoch,
      position: this.intake.position,
      isBehind: this.isBehind,
      ...this.health.stored,
      recovery: recovery ?? null,
    }
  }

  /** Progress has been stored. */
  stored(progress: Progress, nowMs: number): void {
    this.saved = progress
    this.savedAtMs = nowMs
    if (this.recovery !== undefined && progress.recovery !== null && this.recovery.until === progress.recovery.until)
      this.recovery.from = progress.recovery.position
  }

  /**
   * Sends nothing more, and stores what has ended; {@link progress} is then final. Attempts and stores that take longer than
   * `graceMs` are given up: what they were for is done again by whoever delivers next.
   */
  async stop(graceMs = STOP_MS): Promise<void> {
    this.moveTo('stopping')
    this.deps.slots.forget(this.pumpLater)
    for (const intake of this.intakes) intake.end()
    const timer = setTimeout(() => this.aborting.abort(new Error('the endpoint is stopping')), graceMs)
    await Promise.all(this.underWay)
    this.settle()
    await orAborted(Promise.resolve(this.storing), this.aborting.signal).catch(() => {})
    clearTimeout(timer)
    this.release()
  }

  private moveTo(state: State): void {
    this.current = move(this.current, state)
  }

  /** What goes wrong in one endpoint ends the round for no other. */
  private alone(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.broke(error)
    }
  }

  private broke(error: unknown): void {
    const { webhook_id } = this.webhook
    this.deps.log.warn('webhooks: an endpoint has broken; starting it again', { webhook_id, error })
    this.breakOff()
  }

  /** More than one thing may break it. */
  private breakOff(): void {
    if (mayMove(this.current, 'broken')) this.moveTo('broken')
    this.deps.wake()
  }

  /** The parts of the log that it delivers. */
  private get intakes(): readonly Intake[] {
    return this.recovery === undefined ? [this.intake] : [this.intake, this.recovery.intake]
  }

  /** @throws ApiError as `Hub.subscribe` */
  private open(afterSeq: number, untilSeq?: number): Intake {
    const { webhook_id, workspace_id: workspaceId } = this.webhook
    return new Intake({
      hub: this.place.source.hub,
      workspaceId,
      filter: filterOf(this.webhook),
      afterSeq,
      ...(untilSeq !== undefined && { untilSeq }),
      isWanted: ({ isRecount }) => !isRecount,
      lengthMax: this.deps.queueLengthMax,
      onArrival: () => void this.build(),
      onGap: (after, resumed) =>
        this.deps.log.warn('webhooks: activity is no longer available', { webhook_id, after, resumed }),
      onFailure: () => this.breakOff(),
    })
  }

  private followRecovery({ recover_position: from, recover_until: until }: AskedFor): void {
    if (from === null || until === null) this.endRecovery()
    else if (this.recovery?.from !== from || this.recovery.until !== until) {
      this.endRecovery()
      this.recovery = { intake: this.open(from, until), from, until }
    }
  }

  /** What has become a message is still delivered. */
  private endRecovery(): void {
    this.recovery?.intake.end()
    this.recovery = undefined
  }

  /** Makes messages of what has arrived, as far as there is room. What fails is tried again by the next call. */
  private async build(): Promise<void> {
    if (this.isBuilding) return
    this.isBuilding = true
    try {
      for (;;) {
        const intake = this.intakes.find(({ mayBuild }) => mayBuild)
        if (intake === undefined || this.current === 'stopping') break
        await this.buildSome(intake)
      }
    } catch (error) {
      const { webhook_id } = this.webhook
      this.deps.log.info('webhooks: cannot make messages; trying again', { webhook_id, error })
    }
    this.isBuilding = false
  }

  private async buildSome(intake: Intake): Promise<void> {
    const activities = intake.next(ACTIVITIES_AT_ONCE)
    const messages = await this.deps.messagesOf(activities)
    if (this.current === 'stopping' || !this.intakes.includes(intake)) return
    intake.taken(activities.length)
    const sent = new Set<number>()
    for (const message of messages) {
      sent.add(message.seq)
      intake.resize(message.seq, message.body.length)
      this.order.add({ message, attempts: 0, intake, key: this.keyOf(message.runId) })
    }
    for (const { seq } of activities) if (!sent.has(seq)) intake.finish(seq)
    this.settle()
    this.pump()
  }

  /** How many more deliveries may become rows. */
  private get room(): number {
    const { waiting = [] } = this.settling ?? {}
    return this.deps.rowsMax - this.rows.size - this.unsure - waiting.length
  }

  private keyOf(runId: string | null): string | null {
    return this.isStrict ? ANY : runId
  }

  /** Starts as many attempts as may be under way. Rows and new deliveries take turns. */
  private pump(): void {
    const { clock, slots } = this.deps
    const now = clock.now()
    while (this.current === 'delivering' && this.pace.hasRoom(performance.now())) {
      const hasNew = this.order.hasNext && this.room > 0
      const isRetry = this.due.hasNext && (!hasNew || this.isRetryNext)
      if (!(isRetry || hasNew) || !slots.take(this.ids.workspaceId, this.pumpLater)) break
      const delivery = isRetry ? this.nextDue() : this.order.next()
      if (delivery === undefined) break
      this.isRetryNext = !isRetry
      if (!isRetry) this.unsure++
      const work = this.deliver(delivery, now).catch((error) => this.broke(error))
      this.underWay.add(work)
      void work.finally(() => this.underWay.delete(work))
    }
    if (this.due.takeHasMore()) this.deps.wake()
  }

  private nextDue(): Delivery | undefined {
    const row = this.due.next()
    if (row === undefined) return undefined
    // Nothing needs the time: the stored body contains it.
    const message = { ...row, timestamp: '' }
    return { message, attempts: row.attempt, intake: null, key: this.keyOf(row.runId) }
  }

  private async deliver(delivery: Delivery, at: number): Promise<void> {
    const { slots, clock, schedule, random } = this.deps
    this.pace.started(performance.now())
    const { message } = delivery
    const { problem } = message
    const outcome = problem === undefined ? await this.attempt(message, at) : notSent(problem)
    slots.release(this.ids.workspaceId)
    if (outcome === null) {
      this.pace.cancelled()
      return
    }
    const now = clock.now()
    this.deps.onAttempt(outcome)
    if (outcome.isOurs) this.pace.cancelled()
    else {
      this.pace.ended(outcome, performance.now())
      this.health.note(outcome, schedule, now)
      if (this.health.disabledBecause !== null && this.current === 'delivering') this.moveTo('disabled')
    }
    const attempt = delivery.attempts + 1
    const { retryAfterMs, isOurs = false } = outcome
    const failed = { attempt, isStrict: this.isStrict && !isOurs, retryAfterMs }
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
    const { signal } = this.aborting
    try {
      return await this.deps.attempt(message, at, signal)
    } catch (error) {
      if (signal.aborted) return null
      this.deps.log.error('webhooks: an attempt broke', { webhook_id: this.ids.webhookId, error })
      return notSent('the service could not make the attempt')
    }
  }

  /** Stores what has ended, one part after the other. */
  private settle(): void {
    if (this.hasToSettle) this.storing ??= this.storeAll()
  }

  private get hasToSettle(): boolean {
    return (
      this.settling !== undefined ||
      this.ended.length > 0 ||
      this.removed.length > 0 ||
      (!this.isStrict && this.order.hasBlocked && !this.isBehind)
    )
  }

  private async storeAll(): Promise<void> {
    const { gather, store } = this.deps
    try {
      await gather()
      for (;;) {
        this.settling ??= this.nextSettling()
        if (this.settling === undefined) break
        const notStored = await store(this.settling.results).catch(() => null)
        // `store` has reported it. The next call of `settle` stores the same again.
        if (notStored === null) break
        const { settling } = this
        this.settling = undefined
        this.alone(() => this.settled(settling, notStored))
      }
    } catch (error) {
      this.broke(error)
    }
    this.storing = undefined
  }

  private nextSettling(): Settling | undefined {
    const ended = this.ended.splice(0, SETTLED_MAX)
    const room = Math.min(SETTLED_MAX, this.room)
    const mayTake = !this.isStrict && room > 0 && this.current !== 'stopping'
    const waiting = mayTake ? this.order.takeBlocked(room) : []
    const removed = this.removed.splice(0)
    if (ended.length + waiting.length + removed.length === 0) return undefined
    const gone = ended.filter(({ delivery, nextAt }) => delivery.intake === null && nextAt === null)
    const results = {
      ...this.ids,
      disabledBecause: this.health.disabledBecause,
      attempts: ended.map((each) => deliveryRow(this.ids, each)),
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
    if (gone.length > 0) this.deps.wake()
    // There is room for other messages.
    void this.build()
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

/** Whether something was delivered, or failed. Positions alone change with whatever anybody reports. */
function hasChanged(saved: Progress, now: Progress): boolean {
  return (
    saved.isBehind !== now.isBehind ||
    saved.failingSince !== now.failingSince ||
    saved.succeededAt !== now.succeededAt ||
    saved.failedAt !== now.failedAt ||
    now.recovery !== null
  )
}
