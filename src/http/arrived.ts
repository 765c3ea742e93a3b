/** One promise for everybody who waits in the same turn of the event loop. */
let waiting: Promise<void> | undefined

/**
 * Resolves once everything that has arrived on the connections so far has been parsed.
 *
 * Bun closes a connection on which a request arrives before the one ahead of it has been answered (pipelining, RFC 9112
 * section 9.3.2): the answer would be lost. By then such a pair has been parsed, and `request.signal` of the first is aborted,
 * so that it can be dropped before it is carried out.
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
