/**
 * How long a test waits for what must come. Only a test that fails waits that long, so it is generous: beside other
 * programs, everything may take many times as long as alone.
 */
export const PATIENCE_MS = 60_000

/**
 * Waits until `check` neither throws nor answers `false`, and answers what it returned. Tests wait on conditions with
 * this, never for a fixed time.
 *
 * @throws what `check` last threw, or an Error, after `timeoutMs`
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = PATIENCE_MS, intervalMs = 10 }: { timeoutMs?: number; intervalMs?: number } = {},
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
