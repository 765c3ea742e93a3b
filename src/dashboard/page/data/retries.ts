import { signal as state } from '@preact/signals'
import { type Api, ApiFailure } from './api.ts'

/** Between two attempts, unless the service says how long to wait. */
const RETRY_MS = 3_000
/** A single wait up to this is not shown. */
const SHORT_MS = 1_000

/**
 * Retries reads while the service cannot be reached, is not ready, or refuses them because a budget of the key is spent. So
 * no view has to handle that, and the page can say in one place why it waits.
 */
export class Retries {
  /** Why reads are waiting; null: none is. */
  readonly waiting = state<ApiFailure | null>(null)
  private readonly reasons = new Map<symbol, ApiFailure>()

  /** @param signal ends all retries */
  constructor(private readonly signal: AbortSignal) {}

  /** The same API, whose `get` and `read` are repeated while they fail transiently. */
  applyTo(api: Api): Api {
    return {
      ...api,
      get: (path, query, signal) => this.repeat(() => api.get(path, query, signal), signal),
      read: (path, body, signal) => this.repeat(() => api.read(path, body, signal), signal),
    }
  }

  private async repeat<T>(read: () => Promise<T>, aborted?: AbortSignal): Promise<T> {
    const signal = aborted === undefined ? this.signal : AbortSignal.any([this.signal, aborted])
    const own = Symbol('read')
    try {
      for (let isFirst = true; ; isFirst = false) {
        try {
          return await read()
        } catch (error) {
          if (!(error instanceof ApiFailure) || !error.isTransient) throw error
          const ms = error.retryAfterSeconds * 1_000 || RETRY_MS
          if (!isFirst || ms > SHORT_MS) this.explain(own, error)
          await pause(ms, signal)
        }
      }
    } finally {
      this.explain(own, null)
    }
  }

  private explain(read: symbol, reason: ApiFailure | null): void {
    this.reasons.delete(read)
    if (reason !== null) this.reasons.set(read, reason)
    this.waiting.value = [...this.reasons.values()].at(-1) ?? null
  }
}

/** @throws the reason of `signal` if it aborts before */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}
