/**
 * The outcome of a promise, unless the signal aborts first. The work behind the promise continues; only the caller
 * stops waiting for it.
 * @throws the signal's reason
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([aborted.promise, promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/**
 * The outcome of a promise, unless it takes longer than `ms`. The work behind the promise continues.
 * @throws Error `no answer for … ms`
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`no answer for ${ms} ms`)), ms)
  return orAborted(promise, late.signal).finally(() => clearTimeout(timer))
}

/** Resolves after `ms`, or when `signal` aborts. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = () => resolve()
  const timer = setTimeout(end, ms)
  signal?.addEventListener('abort', end)
  await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', end)
}
