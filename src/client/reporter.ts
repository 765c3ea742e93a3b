import type { ReportError } from './errors.ts'
import type { Http } from './http.ts'
import { Lane, type Report } from './lane.ts'
import { Losses } from './losses.ts'
import type { Spool } from './node-spool.ts'
import { Abandoned, Sender, type Settled } from './sender.ts'
import { SettledMark } from './settled-mark.ts'
import { type Deferred, deferred, TIMER_MAX_MS, unref } from './timing.ts'

interface ReporterOptions {
  readonly http: Http
  /** What happens to events, scores and new runs when the buffer is full (docs/client.md#bounds). */
  readonly whenFull: 'wait' | 'drop'
  /** Characters of reports that may wait in memory. */
  readonly bufferBytes: number
  /** How long reports wait for more, so that they are sent together. */
  readonly flushIntervalMs: number
  readonly onError: (error: ReportError) => void
  /** Where reports are kept until they are acknowledged. */
  readonly spool: Spool | undefined
  readonly spoolBytes: number
  /** Why the service will take no report with this key. */
  readonly keyProblem: string | undefined
}

/** What a client has reported so far. A report is the start or end of a run, an event, a score, or a state of a task. */
export interface ReportStats {
  /** Not acknowledged yet. */
  readonly queued: number
  /** Characters of those that are in memory. */
  readonly queuedBytes: number
  /** Durable at the service. */
  readonly acknowledged: number
  /** Refused by the service, or not expressible as JSON. */
  readonly rejected: number
  /** Lost because the buffer was full or the time at the end was over. */
  readonly dropped: number
  /** Calls that were sent again. */
  readonly retries: number
  /** The position of the newest acknowledged event, for `waitFor` of a query; 0 before the first. */
  readonly lastSeq: number
}

/** How many runs are sent concurrently. */
const CONCURRENT_RUNS_MAX = 16
/** Callers that do not wait can fill the buffer to this multiple of its limit. */
const OVERFLOW = 2
/** Callers that wait for room continue once the buffer is less full than this. */
const ROOM_AT = 3 / 4
const READY = Promise.resolve()

/** Takes reports without waiting for the network, and sends them in the background: in order for each run, each exactly once. */
export class Reporter {
  private readonly lanes = new Map<string, Lane>()
  /** Lanes with reports that wait for the next tick. */
  private readonly waiting = new Set<Lane>()
  /** Lanes to be sent next. */
  private readonly sendQueue: Lane[] = []
  private readonly marks = new SettledMark()
  private readonly sender: Sender
  private readonly losses: Losses
  /** Runs whose start was dropped, so that the rest is dropped, too. */
  private readonly droppedRuns = new Set<string>()
  private readonly settledWaiters = new Map<Deferred<void>, number>()
  /** Reports in memory that could not be written to the spool. */
  private readonly unstored = new Set<number>()
  private hasReadFailed = false
  private roomWaiters: Deferred<void> | undefined
  private active = 0
  private timer: unknown
  private queuedBytes = 0
  private flushes = 0
  private isClosed = false
  private hasToldKeyProblem = false

  constructor(private readonly options: ReporterOptions) {
    this.losses = new Losses(options.onError)
    this.sender = new Sender({
      http: options.http,
      losses: this.losses,
      onSettled: (settled) => this.settle(settled),
      onOutage: (cause) => this.losses.delay(this.stats.queued, cause),
    })
    if (options.spool !== undefined) this.schedule()
  }

  get stats(): ReportStats {
    const { acknowledged, retries, lastSeq } = this.sender
    const { rejected, dropped } = this.losses
    return {
      queued: this.marks.end - this.marks.through + this.unread,
      queuedBytes: this.queuedBytes,
      acknowledged,
      rejected,
      dropped,
      retries,
      lastSeq,
    }
  }

  /** Takes a report. @returns a promise that resolves when there is room for more */
  add(report: Report): Promise<void> {
    this.tellKeyProblem()
    const refusal = this.refusalOf(report)
    if (refusal !== undefined) this.dropReport(report, refusal)
    else if (this.options.spool === undefined) this.enqueue(report)
    else this.store(this.options.spool, report)
    return refusal === undefined && this.fill >= 1 ? this.waitForRoom() : READY
  }

  /** At the first report, rather than when the service has refused them for a while. They are kept: a later key may be right. */
  private tellKeyProblem(): void {
    const { keyProblem } = this.options
    if (keyProblem === undefined || this.hasToldKeyProblem) return
    this.hasToldKeyProblem = true
    this.losses.delay(1, keyProblem)
  }

  private store(spool: Spool, report: Report): void {
    const fits = this.hasMemoryFor(report.text)
    let isStored = true
    try {
      spool.append(report)
    } catch (error) {
      // A full disk: what memory can hold is sent without the file, unless it would overtake what waits there.
      if (spool.unread > 0 || !fits) {
        this.dropReport(report, `the spool cannot be written: ${error}`)
        return
      }
      isStored = false
    }
    // Reports that follow unread ones in the file must wait for their turn there.
    if (isStored && (spool.unread > 1 || !fits)) {
      this.schedule()
      return
    }
    if (isStored) spool.skip()
    else spool.appendNothing()
    this.enqueue(report)
    if (!isStored) this.unstored.add(this.marks.end)
  }

  private hasMemoryFor(text: string): boolean {
    return this.queuedBytes + text.length <= this.options.bufferBytes
  }

  /** Counts a report that cannot be sent. */
  reject(error: unknown, runId: string): Promise<void> {
    this.losses.reject('invalid', 1, error, runId)
    return READY
  }

  /**
   * Sends everything at once.
   *
   * @param timeoutMs how long to wait; without it, as long as it takes
   * @returns whether everything that was reported before the call is acknowledged or refused
   */
  async flush(timeoutMs?: number): Promise<boolean> {
    this.reportDamage()
    // Unread reports get the next numbers.
    const target = this.marks.end + this.unread
    if (this.marks.through >= target) return true
    this.flushes++
    const settled = deferred()
    this.settledWaiters.set(settled, target)
    this.tick()
    const timer = timeoutMs === undefined ? keepAlive() : setTimeout(settled.resolve, Math.min(timeoutMs, TIMER_MAX_MS))
    await settled.promise
    clearTimeout(timer)
    this.settledWaiters.delete(settled)
    this.flushes--
    return this.marks.through >= target
  }

  /** Like {@link flush}, at the end of the program: what is left afterwards is lost, unless it is in the spool. */
  async flushAtExit(timeoutMs: number): Promise<void> {
    const isDone = await this.flush(timeoutMs)
    const reports = this.unsafe
    if (isDone || reports === 0) return
    this.losses.reportDrop(reports, 'the program ended before the service took them')
  }

  /** Sends what is left, and then takes nothing more. What cannot be sent in time stays in the spool or is lost. */
  async close(timeoutMs: number): Promise<boolean> {
    if (this.isClosed) return this.stats.queued === 0
    this.isClosed = true
    const isDone = await this.flush(timeoutMs)
    this.sender.abandon()
    clearTimeout(this.timer as number)
    this.roomWaiters?.resolve()
    if (this.unsafe > 0) this.drop(this.unsafe, 'the service did not take them in time')
    this.losses.reportDrops()
    this.options.spool?.close()
    return isDone
  }

  /** How many reports would be lost if the process ended now. */
  private get unsafe(): number {
    return this.options.spool === undefined ? this.marks.end - this.marks.through : this.unstored.size
  }

  /** How many reports are only in the spool. */
  private get unread(): number {
    return this.options.spool?.unread ?? 0
  }

  /** How full the buffer is, or the spool if there is one: 1 is full. */
  private get fill(): number {
    const { spool } = this.options
    return (spool === undefined ? this.queuedBytes : spool.bytes) / this.capacity
  }

  private get capacity(): number {
    const { spool, spoolBytes, bufferBytes } = this.options
    return spool === undefined ? bufferBytes : spoolBytes
  }

  /** Starts of runs, events and scores need room. States of tasks and ends of runs are few, and are always taken. */
  private refusalOf({ kind, runId, text }: Report): string | undefined {
    if (this.isClosed) return 'the client is closed'
    const needsRoom = kind === 'start' || kind === 'event' || kind === 'score'
    // It would take the room of all others.
    if (needsRoom && text.length > this.capacity) return 'one is larger than the whole buffer'
    const isOver = this.fill >= (this.options.whenFull === 'drop' ? 1 : OVERFLOW)
    return (needsRoom && isOver) || this.droppedRuns.has(runId) ? 'the buffer is full' : undefined
  }

  /** Drops a report, and what follows if it is the start of a run. */
  private dropReport({ kind, runId }: Report, detail: string): void {
    if (kind === 'start') this.droppedRuns.add(runId)
    if (kind === 'complete' || kind === 'fail') this.droppedRuns.delete(runId)
    this.drop(1, detail)
  }

  private drop(reports: number, detail: string): void {
    this.losses.drop(reports, detail)
    if (this.isClosed) this.losses.reportDrops()
    else this.schedule()
  }

  private enqueue(report: Report): void {
    const { runId } = report
    let lane = this.lanes.get(runId)
    if (lane === undefined) {
      lane = new Lane(runId)
      this.lanes.set(runId, lane)
    }
    this.queuedBytes += lane.add(report, this.marks.next(), this.sender.eventsMax)
    if (report.kind === 'start' && report.parentRunId !== undefined) {
      const parent = this.lanes.get(report.parentRunId)
      if (parent?.isStarting === true) lane.parent = parent
    }
    if (lane.isActive) return
    this.waiting.add(lane)
    if (this.flushes > 0 || lane.hasEnough(this.sender.eventsMax)) this.activate(lane)
    else this.schedule()
  }

  private schedule(): void {
    if (this.timer !== undefined || this.sender.isAbandoned) return
    this.timer = setTimeout(() => this.tick(), Math.min(this.options.flushIntervalMs, TIMER_MAX_MS))
    // At the end of the program `onExit` sends what is left.
    unref(this.timer)
  }

  private tick(): void {
    clearTimeout(this.timer as number)
    this.timer = undefined
    this.losses.reportDrops()
    this.readSpool()
    for (const lane of this.waiting) this.activate(lane)
  }

  /** Continues with the reports that are only in the file, once there is room for them in memory. */
  private readSpool(): void {
    const { spool } = this.options
    if (spool === undefined) return
    try {
      this.readWhatFits(spool)
      this.hasReadFailed = false
    } catch (error) {
      if (!this.hasReadFailed) this.losses.delay(this.stats.queued, error)
      this.hasReadFailed = true
      this.schedule()
    }
    this.reportDamage()
  }

  private readWhatFits(spool: Spool): void {
    const { bufferBytes } = this.options
    while (spool.unread > 0 && this.queuedBytes < bufferBytes / 2) {
      const marks: number[] = []
      for (const report of spool.read(bufferBytes / 4)) {
        if (report === undefined) marks.push(this.marks.next())
        else this.enqueue(report)
      }
      if (marks.length > 0) this.settle({ length: 0, marks })
    }
  }

  private reportDamage(): void {
    const damage = this.options.spool?.takeDamage()
    if (damage !== undefined) this.losses.reject('invalid', damage.reports, damage.detail)
  }

  private activate(lane: Lane): void {
    if (!this.waiting.delete(lane)) return
    // The service refuses a run whose parent it does not know, so the parent must not wait behind it.
    if (lane.parent !== undefined) this.activate(lane.parent)
    lane.isActive = true
    this.sendQueue.push(lane)
    this.pump()
  }

  private pump(): void {
    while (this.active < CONCURRENT_RUNS_MAX && this.sendQueue.length > 0) {
      this.active++
      void this.drain(this.sendQueue.shift()!)
    }
  }

  private async drain(lane: Lane): Promise<void> {
    try {
      do await this.sender.send(lane)
      while (lane.hasEnough(this.sender.eventsMax) || (this.flushes > 0 && !lane.isEmpty))
    } catch (error) {
      if (!(error instanceof Abandoned)) throw error
    } finally {
      this.active--
      lane.isActive = false
      if (lane.isEmpty) this.lanes.delete(lane.runId)
      else {
        this.waiting.add(lane)
        this.schedule()
      }
      this.pump()
    }
  }

  /** Called with reports that were acknowledged or refused. */
  private settle({ length, marks }: Settled): void {
    this.queuedBytes -= length
    const before = this.marks.through
    for (const mark of marks) {
      this.marks.settle(mark)
      this.unstored.delete(mark)
    }
    const { spool } = this.options
    if (this.marks.through > before) spool?.acknowledge(this.marks.through - before)
    if (this.unread > 0) {
      if (this.flushes > 0) this.readSpool()
      else this.schedule()
    }
    if (this.roomWaiters !== undefined && this.fill < ROOM_AT) {
      this.roomWaiters.resolve()
      this.roomWaiters = undefined
    }
    for (const [settled, target] of this.settledWaiters) if (this.marks.through >= target) settled.resolve()
  }

  /** Resolves when there is some room again. Sends at once, so that room is made. */
  private waitForRoom(): Promise<void> {
    if (this.options.whenFull === 'drop') return READY
    if (this.roomWaiters === undefined) {
      const timer = keepAlive()
      this.roomWaiters = deferred()
      void this.roomWaiters.promise.then(() => clearTimeout(timer))
      this.tick()
    }
    return this.roomWaiters.promise
  }
}

/** A timer that keeps the process alive while a caller waits. */
function keepAlive() {
  return setInterval(() => {}, TIMER_MAX_MS)
}
