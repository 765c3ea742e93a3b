import { Lane, type Report, type Settled } from './lane.ts'
import { Losses } from './losses.ts'
import type { Spool } from './node-spool.ts'
import type { ReportStats } from './report-stats.ts'
import type { ReporterOptions } from './reporter-options.ts'
import { dropOldest, RoomWaiters } from './room.ts'
import { Abandoned, Sender } from './sender.ts'
import { SettledMark } from './settled-mark.ts'
import { deferred, TIMER_MAX_MS, unref } from './timing.ts'

/** How many runs are sent concurrently. */
const CONCURRENT_RUNS_MAX = 16
/** Callers that do not wait can fill the buffer to this multiple of its limit. */
const OVERFLOW = 2
/** Callers that wait for room continue once the buffer is less full than this. */
const ROOM_AT = 3 / 4
/** As many reports are dropped at a time that the buffer is this full. */
const DROPPED_TO = 7 / 8
const READY = Promise.resolve()
const RUN_DROPPED = 'the start of the run was dropped'

/** Takes reports without waiting for the network, and sends them in the background: in order for each run, each exactly once. */
export class Reporter {
  private readonly lanes = new Map<string, Lane>()
  /** Lanes with reports that wait for the next tick. */
  private readonly waiting = new Set<Lane>()
  /** Lanes to be sent next. */
  private readonly sendQueue = new Set<Lane>()
  private readonly marks: SettledMark
  private readonly sender: Sender
  private readonly losses: Losses
  /** Runs whose start was dropped, so that the rest is dropped, too. */
  private readonly droppedRuns = new Set<string>()
  private readonly flushing = new Set<Flush>()
  /** Reports in memory that could not be written to the spool. */
  private readonly unstored = new Set<number>()
  private hasReadFailed = false
  /** Since reports were dropped or callers waited in vain, until there is room again. Nobody waits meanwhile. */
  private isOverfull = false
  private readonly roomWaiters: RoomWaiters
  private active = 0
  private timer: unknown
  private queuedBytes = 0
  private isClosed = false
  private hasToldKeyProblem = false

  constructor(private readonly options: ReporterOptions) {
    this.losses = new Losses(options.onError)
    this.marks = new SettledMark(options.spool !== undefined)
    this.sender = new Sender({
      http: options.http,
      losses: this.losses,
      onSettled: (settled) => this.settleSent(settled),
      onOutage: (cause) => this.losses.delay(this.stats.queued, cause),
    })
    this.roomWaiters = new RoomWaiters(options.waitTimeoutMs, () => {
      this.isOverfull = true
    })
    if (options.spool !== undefined) this.schedule()
  }

  get stats(): ReportStats {
    const { acknowledged, retries, lastSeq } = this.sender
    const { rejected, dropped } = this.losses
    return {
      queued: this.marks.open + this.unread,
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
    else if (this.options.spool === undefined) this.keep(report)
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

  /** Keeps a report in memory. */
  private keep(report: Report): void {
    this.enqueue(report)
    // One that exceeds the buffer is sent all the same if it is the end of a run or task; it must not cost all others.
    if (this.fill <= this.fillMax || report.text.length > this.capacity) return
    const bytes = this.queuedBytes - this.capacity * DROPPED_TO
    for (const { lane, isRunDropped, ...settled } of dropOldest([...this.lanes.values()], this.marks.end, bytes)) {
      if (isRunDropped) this.droppedRuns.add(lane.runId)
      this.drop(settled.marks.length, 'the buffer is full: the oldest make room')
      this.settle(settled)
      if (!lane.isEmpty || (lane.isActive && !this.sendQueue.delete(lane))) continue
      this.waiting.delete(lane)
      this.lanes.delete(lane.runId)
    }
    this.isOverfull = true
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
    const { unread } = this
    const { promise, resolve } = deferred()
    // Unread reports get the next numbers.
    const flush: Flush = { through: this.marks.end + unread, open: this.marks.open + unread, resolve }
    if (flush.open === 0) return true
    this.flushing.add(flush)
    this.tick()
    const timer = timeoutMs === undefined ? keepAlive() : setTimeout(resolve, Math.min(timeoutMs, TIMER_MAX_MS))
    await promise
    clearTimeout(timer)
    this.flushing.delete(flush)
    return flush.open === 0
  }

  /** Like {@link flush}, at the end of the program: what is left afterwards is lost, unless it is in the spool. */
  async flushAtExit(timeoutMs: number): Promise<void> {
    const isDone = await this.flush(timeoutMs)
    this.losses.reportDrops()
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
    this.roomWaiters.release()
    if (this.unsafe > 0) this.drop(this.unsafe, 'the service did not take them in time')
    this.losses.reportDrops()
    this.options.spool?.close()
    return isDone
  }

  /** How many reports would be lost if the process ended now. */
  private get unsafe(): number {
    return this.options.spool === undefined ? this.marks.open : this.unstored.size
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

  /** How full the buffer may be: callers that do not wait can fill it more. */
  private get fillMax(): number {
    return this.options.whenFull === 'drop' || this.isOverfull ? 1 : OVERFLOW
  }

  /** Starts of runs, events and scores need room. States of tasks and ends of runs are few, and are always taken. */
  private refusalOf(report: Report): string | undefined {
    const { kind, runId, text } = report
    if (this.isClosed) return 'the client is closed'
    if (this.droppedRuns.has(runId)) return RUN_DROPPED
    if (kind === 'start' && this.droppedRuns.has(report.parentRunId ?? '')) return RUN_DROPPED
    const needsRoom = kind === 'start' || kind === 'event' || kind === 'score'
    if (!needsRoom) return undefined
    // It would take the room of all others.
    if (text.length > this.capacity) return 'one is larger than the whole buffer'
    // The file cannot do without its oldest reports. Memory can, see `keep`.
    if (this.options.spool === undefined || this.fill < this.fillMax) return undefined
    this.isOverfull = true
    return 'the spool is full'
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
    if (this.flushing.size > 0 || lane.hasEnough(this.sender.eventsMax)) this.activate(lane)
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
    this.losses.reportDrops(this.isOverfull)
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
    this.sendQueue.add(lane)
    this.pump()
  }

  private pump(): void {
    for (const lane of this.sendQueue) {
      if (this.active >= CONCURRENT_RUNS_MAX) return
      this.sendQueue.delete(lane)
      this.active++
      void this.drain(lane)
    }
  }

  private async drain(lane: Lane): Promise<void> {
    try {
      do await this.sender.send(lane)
      while (lane.hasEnough(this.sender.eventsMax) || (this.flushing.size > 0 && !lane.isEmpty))
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
  private settleSent(settled: Settled): void {
    this.settle(settled)
    if (!this.isOverfull || this.fill >= ROOM_AT) return
    this.isOverfull = false
    this.losses.reportDrops()
  }

  /** Called with reports that wait no longer. */
  private settle({ length, marks }: Settled): void {
    this.queuedBytes -= length
    const before = this.marks.through
    for (const mark of marks) {
      this.marks.settle(mark)
      this.unstored.delete(mark)
      for (const flush of this.flushing) if (mark <= flush.through) flush.open--
    }
    const { spool } = this.options
    if (this.marks.through > before) spool?.acknowledge(this.marks.through - before)
    if (this.unread > 0) {
      if (this.flushing.size > 0) this.readSpool()
      else this.schedule()
    }
    if (this.fill < ROOM_AT) this.roomWaiters.release()
    for (const { open, resolve } of this.flushing) if (open === 0) resolve()
  }

  /** Resolves when there is some room again, or the time for it is over. Sends at once, so that room is made. */
  private waitForRoom(): Promise<void> {
    if (this.options.whenFull === 'drop' || this.isOverfull) return READY
    return this.roomWaiters.wait(() => this.tick())
  }
}

/** A caller that waits until everything up to a report is settled. */
interface Flush {
  readonly through: number
  /** How many of these reports are not settled. */
  open: number
  readonly resolve: () => void
}

/** A timer that keeps the process alive while a caller waits. */
function keepAlive() {
  return setInterval(() => {}, TIMER_MAX_MS)
}
