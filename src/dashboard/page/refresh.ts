const REFRESH_MS = 2_000
const REFRESH_MS_MIN = 700
/** Delay that collects further activity and lets SQL catch up. */
const REFRESH_EARLY_MS = 100

/**
 * Refreshes the page while it is visible, until the signal aborts.
 * @param round one refresh; returns how long to wait at least before the next one, in milliseconds
 */
export function createRefresher(round: () => Promise<number>, signal: AbortSignal) {
  let started = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let refreshedAtMs = 0
  let isEarly = false

  /** One refresh. The next is scheduled when it is done, so a slow service is queried less often. */
  async function refresh(): Promise<void> {
    const mine = ++started
    clearTimeout(timer)
    isEarly = false
    const waitMs = document.hidden ? REFRESH_MS : Math.max(REFRESH_MS, await round())
    if (signal.aborted) return
    refreshedAtMs = performance.now()
    if (mine === started) timer = setTimeout(refresh, waitMs)
  }

  /**
   * Refreshes early after new activity, but not immediately, so that a busy workspace does not cause constant
   * refreshes.
   */
  function refreshEarly(): void {
    if (isEarly) return
    isEarly = true
    clearTimeout(timer)
    timer = setTimeout(refresh, Math.max(REFRESH_EARLY_MS, refreshedAtMs + REFRESH_MS_MIN - performance.now()))
  }

  document.addEventListener('visibilitychange', () => void refresh(), { signal })
  signal.addEventListener('abort', () => clearTimeout(timer))
  return { refresh, refreshEarly }
}
