import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { Wakeup } from '../../base/wakeup.ts'
import { LogReader } from './log-reader.ts'
import { shuttingDown } from './refusals.ts'
import type { StoredLog } from './storage.ts'

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
