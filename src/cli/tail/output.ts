export type Output = ReturnType<typeof createOutput>

/** Characters queued for a slow reader; beyond this, activity is left with the service. */
const WAITING_MAX = 4 * 2 ** 20

/**
 * The destination of lines: a terminal, a file or a pipe.
 * @param onError called when writing is no longer possible: EPIPE when the reader has closed the pipe
 */
export function createOutput(stream: NodeJS.WriteStream, onError: (error: NodeJS.ErrnoException) => void) {
  let waiting = 0
  let drained = Promise.withResolvers<void>()
  stream.on('error', onError)
  return {
    print(text: string): void {
      waiting += text.length
      stream.write(text, () => {
        waiting -= text.length
        if (waiting > 0) return
        drained.resolve()
        drained = Promise.withResolvers()
      })
    },
    /** Null, or a promise that resolves once the reader has caught up. */
    full: () => (waiting > WAITING_MAX ? drained.promise : null),
    /** Resolves when everything printed has been written. */
    flushed: () => (waiting > 0 ? drained.promise : Promise.resolve()),
  }
}
