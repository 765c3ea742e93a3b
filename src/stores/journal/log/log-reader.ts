import { ApiError } from '../../../base/errors.ts'
import type { Log } from '../../../base/log.ts'
import { Wakeup } from '../../../base/wakeup.ts'
import { type Epoch, endOfGap, epochAt, type Frame, type Gap, type JournalReader, lastSeqOf } from '../journal.ts'
import { FrameTail } from './frame-tail.ts'
import { type StoredLog, shuttingDown } from './storage.ts'

const FOLLOW_BYTES = 4 * 1024 * 1024
/** How much of the newest data stays in memory for consumers. */
const TAIL_BYTES = 48 * 1024 * 1024

/** Reads a log: the newest frames from memory, older ones from its storage. */
export abstract class LogReader implements JournalReader {
  protected readonly tail: FrameTail
  protected closed = false

  /** @param tailBytes how much of the newest data stays in memory for consumers */
  constructor(
    private readonly stored: StoredLog,
    protected durableSeq: number,
    tailBytes = TAIL_BYTES,
  ) {
    this.tail = new FrameTail(tailBytes, (memory, lastSeq) => this.evicted(memory, lastSeq))
  }

  /** Called with the memory of each commit that leaves memory, and the position of its last row. */
  protected evicted(_memory: Buffer, _lastSeq: number): void {}

  get epoch(): string {
    return this.lastEpoch.epoch
  }

  get epochs(): readonly Epoch[] {
    return this.stored.epochs
  }

  private get lastEpoch(): Epoch {
    const { epochs } = this.stored
    return epochs[epochs.length - 1]
  }

  get endSeq(): number {
    return this.durableSeq
  }

  get startSeq(): number {
    return Math.max(this.lastEpoch.firstSeq, this.storedStartSeq)
  }

  /** The oldest stored row of any epoch; past the end when there is none. */
  protected get storedStartSeq(): number {
    return this.stored.startSeq ?? this.durableSeq + 1
  }

  get gaps(): readonly Gap[] {
    return this.stored.gaps
  }

  epochAt(seq: number): string {
    return epochAt(this.stored.epochs, seq)
  }

  async read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return this.tail.recent(afterSeq, maxBytes) ?? this.stored.read(afterSeq, maxBytes)
  }

  recent(afterSeq: number, maxBytes: number): Frame[] | null {
    return afterSeq >= this.durableSeq ? [] : this.tail.recent(afterSeq, maxBytes)
  }

  waitPast(seq: number, signal: AbortSignal): Promise<void> {
    if (this.durableSeq > seq || this.closed || signal.aborted) return Promise.resolve()
    return this.tail.next(signal)
  }

  async *follow(afterSeq: number, signal: AbortSignal): AsyncGenerator<Frame> {
    let position = afterSeq
    while (!signal.aborted) {
      const end = this.durableSeq
      const frames = await this.read(position, FOLLOW_BYTES)
      for (const frame of frames) {
        if (signal.aborted) return
        yield frame
        position = lastSeqOf(frame)
      }
      if (frames.length > 0) continue
      if (this.closed) return
      position = endOfGap(this, position, end)
      await this.waitPast(position, signal)
    }
  }
}

/** How long {@link LogFollower.whenRead} waits. */
const REFRESH_MS = 5_000

export interface LogFollowerOptions {
  /** How much of the newest data stays in memory for consumers. */
  readonly tailBytes?: number
  readonly log: Log
}

/** Reads a log while another process writes it: whenever it is woken, and at intervals. */
export abstract class LogFollower extends LogReader {
  private readonly wakeup = new Wakeup()
  private isFailing = false
  /** Calls that wait until everything before an end has been read. */
  private refreshes: { readonly end: number; readonly settled: PromiseWithResolvers<void> }[] = []
  private ended: Promise<void> = Promise.resolve()

  constructor(
    stored: StoredLog,
    durableSeq: number,
    private readonly followed: LogFollowerOptions,
  ) {
    super(stored, durableSeq, followed.tailBytes)
  }

  /** Reads what has been written since the last call. */
  protected abstract readAll(): Promise<void>
  /** Whether everything up to `end`, in the storage's own numbers, has been read. */
  protected abstract hasRead(end: number): boolean
  /** How long to wait before reading again without being woken, milliseconds. */
  protected abstract intervalMs(): number

  /** Begins to follow. Call at the end of the constructor. */
  protected begin(): void {
    this.ended = this.run()
  }

  protected wake(): void {
    this.wakeup.wake()
  }

  /** Stops following, and rejects the calls that wait. Resolves once nothing is read any more. */
  protected async end(): Promise<void> {
    this.closed = true
    this.wake()
    await this.ended
    for (const { settled } of this.refreshes.splice(0)) settled.reject(shuttingDown())
    this.tail.wake()
  }

  /** @returns `endSeq` once everything up to `end` has been read. @throws ApiError UNAVAILABLE */
  protected async whenRead(end: number): Promise<number> {
    const settled = Promise.withResolvers<void>()
    this.refreshes.push({ end, settled })
    const late = new ApiError('UNAVAILABLE', 'the journal does not answer; try again', { retryAfterSeconds: 1 })
    const timer = setTimeout(() => settled.reject(late), REFRESH_MS)
    this.wake()
    await settled.promise.finally(() => clearTimeout(timer))
    return this.endSeq
  }

  private async run(): Promise<void> {
    while (!this.closed) {
      try {
        await this.readAll()
        this.settleRefreshes()
        this.isFailing = false
      } catch (error) {
        if (!this.isFailing) this.followed.log.warn('journal: cannot read the log; trying again', { error })
        this.isFailing = true
      }
      if (this.closed) return
      await this.wakeup.next(this.intervalMs())
    }
  }

  private settleRefreshes(): void {
    for (const { end, settled } of this.refreshes) if (this.hasRead(end)) settled.resolve()
    this.refreshes = this.refreshes.filter(({ end }) => !this.hasRead(end))
  }
}
