/** How often the loop is looked at. */
const INTERVAL_MS = 20

/**
 * Watches how late this process comes to what is due: while one piece of work takes long, everything else waits for it.
 *
 * @param observe gets seconds; of a long pause once for each time at which the loop should have been looked at, as
 *   whatever was due then had to wait, too
 * @returns stops watching
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
