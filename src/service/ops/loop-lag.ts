/** How often the lag is measured. */
const INTERVAL_MS = 20

/**
 * Measures the event loop delay: how long due work waits for running work.
 *
 * @param observe called with seconds; after a long delay once for each missed interval, because work that was due then had
 *   to wait, too
 * @returns a function that stops measuring
 */
export function watchLoopLag(observe: (seconds: number) => void): () => void {
  let due = performance.now() + INTERVAL_MS
  const timer = setInterval(() => {
    const now = performance.now()
    for (let late = Math.max(0, now - due); late >= 0; late -= INTERVAL_MS) observe(late / 1000)
    due = now + INTERVAL_MS
  }, INTERVAL_MS)
  return () => clearInterval(timer)
}
