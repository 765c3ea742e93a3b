/** Shared by all callers in the same iteration of the event loop. */
let waiting: Promise<void> | undefined

/**
 * Resolves once all bytes that have arrived on any connection so far have been parsed.
 *
 * Bun closes a connection if a second request arrives before the first has been answered (pipelining, RFC 9112 section
 * 9.3.2), so the first response would be lost. After this promise both requests have been parsed and `request.signal` of
 * the first is aborted, so it can be dropped before it has any effect.
 */
export function everythingArrived(): Promise<void> {
  waiting ??= new Promise((resolve) =>
    setImmediate(() => {
      waiting = undefined
      resolve()
    }),
  )
  return waiting
}
