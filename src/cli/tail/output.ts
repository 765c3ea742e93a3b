/** The destination of lines: a terminal, a file or a pipe. */
export interface Output {
  print(text: string): void
  /** Null, or a promise that resolves once the reader has caught up. */
  full(): Promise<void> | null
  /** Resolves when everything printed has been written. */
  flushed(): Promise<void>
}

/** Characters queued for a slow reader; beyond this, activity is left with the service. */
const WAITING_MAX = 4 * 2 ** 20

/** @param onError called when writing is no longer possible: EPIPE when the reader has closed the pipe */
export function createOutput(stream: NodeJS.WriteStream, onError: (error: NodeJS.ErrnoException) => void): Output {
  let waiting = 0
  let drained = Promise.withResolvers<void>()
  stream.on('error', onError)
  return {
    print(text) {
      waiting += text.length
      stream.write(text, () => {
        waiting -= text.length
        if (waiting > 0) return
        drained.resolve()
        drained = Promise.withResolvers()
      })
    },
    full: () => (waiting > WAITING_MAX ? drained.promise : null),
    flushed: () => (waiting > 0 ? drained.promise : Promise.resolve()),
  }
}
