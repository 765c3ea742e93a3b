/**
 * Calls `work` every `intervalMs`, never twice at the same time, until the returned function is called; that one
 * resolves when a call under way has ended. `work` deals with its own errors.
 */
export function repeat(intervalMs: number, work: () => Promise<unknown>): () => Promise<void> {
  let underway: Promise<unknown> | undefined
  const timer = setInterval(() => {
    underway ??= work().finally(() => {
      underway = undefined
    })
  }, intervalMs)
  return async () => {
    clearInterval(timer)
    await underway
  }
}
