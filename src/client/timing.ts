const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 5_000
/** The longest delay of a timer; a longer one would fire immediately. */
export const TIMER_MAX_MS = 2 ** 31 - 1

/** How long to wait after a number of consecutive failures. Random, so that clients do not all return at the same moment. */
export function backoff(failures: number, maxMs = BACKOFF_MAX_MS): number {
  const limit = Math.min(maxMs, BACKOFF_MIN_MS * 2 ** Math.min(failures, 20))
  return limit / 2 + (Math.random() * limit) / 2
}

/**
 * Resolves after `ms`, or as soon as `signal` aborts.
 * @param keepsAlive whether the timer keeps the process alive
 */
export function sleep(ms: number, signal?: AbortSignal, keepsAlive = true): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, Math.min(ms, TIMER_MAX_MS))
    if (!keepsAlive) unref(timer)
    signal?.addEventListener('abort', done)
  })
}

/** The timer no longer keeps the process alive. Does nothing in browsers. */
export function unref(timer: unknown): void {
  const { unref } = timer as { unref?: () => void }
  unref?.call(timer)
}

/** A signal that aborts with the caller's, or when the service is silent for too long. `AbortSignal.any` is missing in Node 18. */
export class Deadline {
  readonly controller = new AbortController()
  private readonly onAbort = () => this.controller.abort(this.caller?.reason)
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly caller: AbortSignal | undefined,
    private readonly ms: number,
  ) {
    caller?.addEventListener('abort', this.onAbort)
    if (caller?.aborted === true) this.onAbort()
    this.restart()
  }

  /** Called when the service has sent something. */
  restart(): void {
    clearTimeout(this.timer)
    const onTimeout = () => this.controller.abort(new Error('the service did not respond in time'))
    this.timer = setTimeout(onTimeout, Math.min(this.ms, TIMER_MAX_MS))
  }

  /** Stops the timer without aborting the signal. */
  close(): void {
    clearTimeout(this.timer)
    this.caller?.removeEventListener('abort', this.onAbort)
  }
}

export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
}

/** `Promise.withResolvers`, which Node 18 and 20 lack. */
export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
