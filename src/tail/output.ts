/** Where lines go: a terminal, a file or a pipe. */
export interface Output {
  print(text: string): void
  /** Null, or what resolves once the reader at the other end has caught up. */
  full(): Promise<void> | null
  /** Resolves when all that was printed is out. */
  flushed(): Promise<void>
}

/** Characters that may wait for a slow reader; what is more stays with the service. */
const WAITING_MAX = 4 * 2 ** 20

/** @param onGone told once nothing can be written any more: EPIPE when the reader has left */
export function createOutput(stream: NodeJS.WriteStream, onGone: (error: NodeJS.ErrnoException) => void): Output {
  let waiting = 0
  let drained = Promise.withResolvers<void>()
  stream.on('error', onGone)
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
