/**
 * The timeout for a condition. Only a failing test waits that long, so it is generous: on a busy machine everything may
 * take many times as long.
 */
export const CONDITION_TIMEOUT_MS = 120_000

/**
 * Waits until `check` neither throws nor returns `false`, and returns its result. Tests wait on conditions with
 * this, never for a fixed time.
 *
 * @throws the last error of `check`, or an Error, after `timeoutMs`
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = CONDITION_TIMEOUT_MS, intervalMs = 10 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<Exclude<T, false>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    let failure: unknown
    try {
      const value = await check()
      if (value !== false) return value as Exclude<T, false>
      failure = new Error(`the condition still does not hold after ${timeoutMs} ms: ${check}`)
    } catch (error) {
      failure = error
    }
    if (performance.now() >= deadline) throw failure
    await Bun.sleep(intervalMs)
  }
}
