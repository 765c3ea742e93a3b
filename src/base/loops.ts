import { sleep } from './abort.ts'
import type { Log } from './log.ts'

/** How a loop reports its state. Both calls are cheap. */
export interface Loop {
  /** A round succeeded, or there was nothing to do. */
  succeeded(): void
  /** A round failed and will be retried. */
  failed(error: unknown): void
}

export interface LoopState {
  readonly name: string
  /** Milliseconds since it began to fail; 0 while it works. */
  readonly failingMs: number
  /** Failed rounds since the start of the process. */
  readonly failures: number
  readonly lastError: unknown
}

const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 5_000
/** A loop that fails for longer than this is reported by readiness and logged as a warning. */
export const FAILING_MS = 5_000
const WARN_EVERY_MS = 60_000
/** The fractional parts of its multiples are spread evenly, however many there are. */
const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2

/**
 * All background loops of the service. Failures are logged, retried with backoff, and visible in `GET /readyz` and
 * `GET /metrics`; no failure ends a loop.
 */
export class Loops {
  private readonly all: SupervisedLoop[] = []

  constructor(private readonly log: Log) {}

  states(): LoopState[] {
    return this.all.map((loop) => loop.state)
  }

  /** Adds a loop that runs by itself and reports its state. */
  add(name: string): SupervisedLoop {
    const loop = new SupervisedLoop(name, this.log)
    this.all.push(loop)
    return loop
  }

  /**
   * Runs `work` until `signal` aborts, and restarts it when it throws. Resolves once it has ended. After a failure the loop
   * counts as failing until `work` reports a success, so `work` must report each, even when it had nothing to do.
   */
  async run(name: string, signal: AbortSignal, work: (loop: Loop) => Promise<void>): Promise<void> {
    const loop = this.add(name)
    while (!signal.aborted) {
      try {
        await work(loop)
        if (!signal.aborted) throw new Error('the loop ended without being stopped')
      } catch (error) {
        if (signal.aborted) return
        loop.failed(error)
        await sleep(Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** (loop.inARow - 1)), signal)
      }
    }
  }

  /**
   * Calls `work` every `intervalMs`, never twice at the same time. The first interval is up to a half shorter, differently
   * for each loop: loops that start together would otherwise always work at the same moment, and each would need a
   * connection to Postgres of its own.
   * @param work gets a signal that aborts when the calls are stopped
   * @param options.atOnce makes the first call immediately
   * @param options.retryMs after a failed call, the next one is made by then: what a restart of a store interrupts does not
   *   wait for minutes, and is not reported as long
   * @returns a function that stops the calls; it resolves once a running call has ended
   */
  repeat(
    name: string,
    intervalMs: number,
    work: (signal: AbortSignal) => Promise<unknown>,
    { atOnce = false, retryMs = RETRY_MS_MAX } = {},
  ): () => Promise<void> {
    const stopping = new AbortController()
    const loop = this.add(name)
    let running: Promise<void> | undefined
    let retry: ReturnType<typeof setTimeout> | undefined
    const attempt = async () => {
      try {
        await work(stopping.signal)
        loop.succeeded()
      } catch (error) {
        if (!stopping.signal.aborted) {
          loop.failed(error)
          clearTimeout(retry)
          if (retryMs < intervalMs) retry = setTimeout(startRound, retryMs)
        }
      }
    }
    const startRound = () => {
      // Here and not in `attempt`: work that throws at once ends it before `running` is set.
      running ??= attempt().finally(() => {
        running = undefined
      })
    }
    const offset = (this.all.length * GOLDEN_RATIO) % 1
    let timer = setTimeout(
      () => {
        timer = setInterval(startRound, intervalMs)
        startRound()
      },
      intervalMs * (1 - offset / 2),
    )
    if (atOnce) startRound()
    return async () => {
      stopping.abort()
      clearInterval(timer)
      clearTimeout(retry)
      await running
    }
  }
}

class SupervisedLoop implements Loop {
  /** Consecutive failures. */
  inARow = 0
  private failures = 0
  private sinceMs = 0
  private warnedAtMs = Number.NEGATIVE_INFINITY
  private lastError: unknown

  constructor(
    private readonly name: string,
    private readonly log: Log,
  ) {}

  get state(): LoopState {
    const failingMs = this.inARow === 0 ? 0 : Math.max(1, performance.now() - this.sinceMs)
    const { name, failures, lastError } = this
    return { name, failingMs, failures, lastError }
  }

  succeeded(): void {
    if (this.inARow === 0) return
    this.log.info(`${this.name}: recovered`, { failures: this.inARow, after_ms: Math.round(this.state.failingMs) })
    this.inARow = 0
    this.warnedAtMs = Number.NEGATIVE_INFINITY
  }

  failed(error: unknown): void {
    const now = performance.now()
    if (this.inARow === 0) this.sinceMs = now
    this.inARow++
    this.failures++
    this.lastError = error
    const details = { failures: this.inARow, error }
    if (this.inARow === 1) this.log.info(`${this.name}: failed; retrying`, details)
    else if (now - this.sinceMs > FAILING_MS && now - this.warnedAtMs > WARN_EVERY_MS) {
      this.warnedAtMs = now
      this.log.warn(`${this.name}: still failing; retrying`, details)
    }
  }
}
