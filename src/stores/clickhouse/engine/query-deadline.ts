import { ClickHouseFailure } from '../protocol.ts'
import type { EngineStream } from './threads.ts'

/** A stream that takes longer to close waits for its query. */
const CLOSE_MS = 50
const KILL_RETRY_MIN_MS = 50
const KILL_RETRY_MAX_MS = 500
const STUCK_CHECK_MS = 100
/** Processing one block needs much less CPU time than this. */
const STUCK_CPU_MS = 300

/** The engine checks for a KILL between two blocks. A statement that runs on for this long does not check. */
export interface StuckAfter {
  /** If the engine used the CPU meanwhile; on a busy machine a block may take long without much CPU time. */
  readonly busyMs: number
  /** In any case. */
  readonly latestMs: number
}

/**
 * Cancels a statement when its client disconnects or its time limit expires. The engine has its own limit
 * (`max_execution_time`), but when it expires between the last blocks of a result they are lost without an error, and a
 * partial result looks complete. So the limit is enforced here, and a cancelled statement always fails.
 */
export class QueryDeadline {
  /** Resolves with the reason once {@link cancel} has been called. */
  readonly cancelled: Promise<ClickHouseFailure>
  private readonly settleCancelled: (reason: ClickHouseFailure) => void
  private reason: ClickHouseFailure | undefined
  private atWork: Promise<unknown> | undefined
  private isKilling = false
  private timer: Timer | undefined
  private signal: AbortSignal | undefined

  /**
   * @param kill asks the engine to end the statement
   * @param onStuck called when the engine has not ended it some time later, with whether the engine was busy
   */
  constructor(
    private readonly kill: () => Promise<void>,
    private readonly stuckAfter: StuckAfter,
    private readonly onStuck: (wasBusy: boolean) => void,
  ) {
    const { promise, resolve } = Promise.withResolvers<ClickHouseFailure>()
    this.cancelled = promise
    this.settleCancelled = resolve
  }

  /** @param seconds from now; 0 for no limit */
  limit(seconds: number): void {
    if (!(seconds > 0)) return
    const reason = new ClickHouseFailure(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${seconds * 1000} ms.`)
    this.timer = setTimeout(() => this.cancel(reason), seconds * 1000)
  }

  /** Cancels when the client disconnects. */
  follow(signal: AbortSignal): void {
    this.signal = signal
    signal.addEventListener('abort', this.onAbort, { once: true })
    if (signal.aborted) this.onAbort()
  }

  /** Ends the statement's work in the engine; the statement fails with this reason. */
  cancel(reason: ClickHouseFailure): void {
    if (this.reason !== undefined) return
    this.reason = reason
    this.settleCancelled(reason)
    void this.killUntilIdle()
  }

  /**
   * Runs one step of the statement's work.
   * @throws ClickHouseFailure the reason, if the deadline has been cancelled by the end of it
   */
  async during<T>(step: () => Promise<T>): Promise<T> {
    if (this.reason !== undefined) throw this.reason
    try {
      const done = await this.track(step())
      if (this.reason === undefined) return done
    } catch (error) {
      throw this.reason ?? error
    }
    throw this.reason
  }

  /**
   * Closes the statement's stream, once no step is running. Closing waits for the query if it was cancelled
   * while it was being started, because the KILL may have come before the engine had registered it. So the KILL is repeated
   * until the stream is closed.
   */
  async close(stream: Pick<EngineStream, 'isOver' | 'close'>): Promise<void> {
    await this.idle()
    if (stream.isOver) return stream.close()
    const timer = setTimeout(() => void this.killUntilIdle(), CLOSE_MS)
    try {
      await this.track(stream.close())
    } finally {
      clearTimeout(timer)
    }
  }

  /** To be called when the statement has ended by itself. */
  end(): void {
    clearTimeout(this.timer)
    this.signal?.removeEventListener('abort', this.onAbort)
  }

  private track<T>(work: Promise<T>): Promise<T> {
    this.atWork = work
    return work.finally(() => {
      this.atWork = undefined
    })
  }

  /** Resolves once the engine does no work for the statement. */
  private async idle(): Promise<void> {
    await this.atWork?.catch(() => {})
  }

  private readonly onAbort = () =>
    this.cancel(new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'The client went away.'))

  /** Repeats the KILL, because the first may arrive before the engine has registered the statement. */
  private async killUntilIdle(): Promise<void> {
    if (this.atWork === undefined || this.isKilling) return
    this.isKilling = true
    // The KILL itself may hang in the engine, so the time is measured independently.
    const endWatch = this.watchWhetherStuck()
    for (let wait = KILL_RETRY_MIN_MS; this.atWork !== undefined; wait = Math.min(2 * wait, KILL_RETRY_MAX_MS)) {
      await Promise.race([this.kill().catch(() => {}), this.idle()])
      await Promise.race([this.idle(), Bun.sleep(wait)])
    }
    endWatch()
    this.isKilling = false
  }

  private watchWhetherStuck(): () => void {
    const sinceMs = performance.now()
    const cpuSince = process.cpuUsage()
    const timer = setInterval(() => {
      const { user, system } = process.cpuUsage(cpuSince)
      const waitedMs = performance.now() - sinceMs
      const wasBusy = (user + system) / 1000 > STUCK_CPU_MS
      if (waitedMs < (wasBusy ? this.stuckAfter.busyMs : this.stuckAfter.latestMs)) return
      clearInterval(timer)
      this.onStuck(wasBusy)
    }, STUCK_CHECK_MS)
    return () => clearInterval(timer)
  }
}
