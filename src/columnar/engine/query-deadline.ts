import { ClickHouseFailure } from '../protocol.ts'

const KILL_RETRY_MIN_MS = 50
const KILL_RETRY_MAX_MS = 500
const STUCK_CHECK_MS = 100
/** A block is done with much less work than that. */
const STUCK_CPU_MS = 300

/** The engine looks for a KILL between two blocks, so it may take a moment. What goes on for longer does not look. */
export interface StuckAfter {
  /** When the processor has worked for the engine meanwhile; on a busy machine a block may take long without much work. */
  readonly busyMs: number
  /** In any case. */
  readonly latestMs: number
}

/**
 * Ends a statement before its end: because its client is gone, or its time is up. The engine has a limit of its own
 * (`max_execution_time`), but when that strikes between the last blocks of a result they are lost without an error,
 * and half an answer looks like a whole one. So the time is taken here, and what was ended by us never counts as done.
 */
export class QueryDeadline {
  /** Resolves with the reason once {@link cancel} has been called. */
  readonly cancelled: Promise<ClickHouseFailure>
  private readonly settleCancelled: (reason: ClickHouseFailure) => void
  private reason: ClickHouseFailure | undefined
  private atWork: Promise<unknown> | undefined
  private timer: Timer | undefined
  private signal: AbortSignal | undefined

  /**
   * @param kill asks the engine to end the statement
   * @param onStuck called when the engine has not let go of it a while after, with whether it was busy
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

  /** Cancels when the client goes away. */
  follow(signal: AbortSignal): void {
    this.signal = signal
    signal.addEventListener('abort', this.onAbort, { once: true })
    if (signal.aborted) this.onAbort()
  }

  /** Ends what the engine is doing for the statement; it will fail with this reason. */
  cancel(reason: ClickHouseFailure): void {
    if (this.reason !== undefined) return
    this.reason = reason
    this.settleCancelled(reason)
    void this.killUntilIdle()
  }

  /**
   * A step of the statement's work.
   * @throws ClickHouseFailure the reason, if the deadline has been cancelled by the end of it
   */
  async during<T>(step: () => Promise<T>): Promise<T> {
    if (this.reason !== undefined) throw this.reason
    const work = step()
    this.atWork = work
    try {
      const done = await work
      if (this.reason === undefined) return done
    } catch (error) {
      throw this.reason ?? error
    } finally {
      this.atWork = undefined
    }
    throw this.reason
  }

  /** Resolves once the engine does nothing for the statement. */
  async idle(): Promise<void> {
    await this.atWork?.catch(() => {})
  }

  /** The statement has ended by itself. */
  end(): void {
    clearTimeout(this.timer)
    this.signal?.removeEventListener('abort', this.onAbort)
  }

  private readonly onAbort = () =>
    this.cancel(new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'The client went away.'))

  /** The first may come before the engine knows the statement. */
  private async killUntilIdle(): Promise<void> {
    if (this.atWork === undefined) return
    // Asking takes the engine, too, and may be what hangs: so the time is taken apart from it.
    const endWatch = this.watchWhetherStuck()
    for (let wait = KILL_RETRY_MIN_MS; this.atWork !== undefined; wait = Math.min(2 * wait, KILL_RETRY_MAX_MS)) {
      await Promise.race([this.kill().catch(() => {}), this.idle()])
      await Promise.race([this.idle(), Bun.sleep(wait)])
    }
    endWatch()
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
