import { ClickHouseFailure } from '../protocol.ts'

const KILL_RETRY_MS = 50

/**
 * Ends a statement before its end: because its client is gone, or its time is up. The engine has a limit of its own
 * (`max_execution_time`), but when that strikes between the last blocks of a result they are lost without an error,
 * and half an answer looks like a whole one. So the time is taken here, and what was ended by us never counts as done.
 */
export class Leash {
  /** Resolves with the reason once {@link pull} has been called. */
  readonly pulled: Promise<ClickHouseFailure>
  private readonly settlePulled: (reason: ClickHouseFailure) => void
  private reason: ClickHouseFailure | undefined
  private atWork: Promise<unknown> | undefined
  private timer: Timer | undefined
  private signal: AbortSignal | undefined

  constructor(private readonly kill: () => Promise<void>) {
    const { promise, resolve } = Promise.withResolvers<ClickHouseFailure>()
    this.pulled = promise
    this.settlePulled = resolve
  }

  /** @param seconds from now; 0 for no limit */
  limit(seconds: number): void {
    if (!(seconds > 0)) return
    const reason = new ClickHouseFailure(159, 'TIMEOUT_EXCEEDED', `Timeout exceeded: maximum: ${seconds * 1000} ms.`)
    this.timer = setTimeout(() => this.pull(reason), seconds * 1000)
  }

  /** Pulls when the client goes away. */
  follow(signal: AbortSignal): void {
    this.signal = signal
    signal.addEventListener('abort', this.onAbort, { once: true })
    if (signal.aborted) this.onAbort()
  }

  /** Ends what the engine is doing for the statement; it will fail with this reason. */
  pull(reason: ClickHouseFailure): void {
    if (this.reason !== undefined) return
    this.reason = reason
    this.settlePulled(reason)
    void this.killUntilIdle()
  }

  /**
   * A step of the statement's work.
   * @throws ClickHouseFailure the reason, if the leash has been pulled by the end of it
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

  private readonly onAbort = () => this.pull(new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'The client went away.'))

  /** The first may come before the engine knows the statement. */
  private async killUntilIdle(): Promise<void> {
    while (this.atWork !== undefined) {
      await this.kill().catch(() => {})
      await Promise.race([this.idle(), Bun.sleep(KILL_RETRY_MS)])
    }
  }
}
