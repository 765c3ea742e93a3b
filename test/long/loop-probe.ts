import { readFileSync } from 'node:fs'

/**
 * Preloaded into the service by the campaign `loop`: measures how long the event loop stops. Answers on the Unix socket
 * `LOOP_PROBE` with the longest stop since the last answer.
 */

export interface LoopReading {
  /**
   * The longest stop, in milliseconds on a processor: the time that the thread waited for one, or for other threads that
   * did, says more about the machine than about the call.
   */
  readonly longestMs: number
  /** The share of the time since the last reading that the thread used a processor. */
  readonly busy: number
}

const INTERVAL_MS = 2

/** The time that this thread has spent on a processor, in milliseconds; the time of day where that is not known. */
export function processorMs(): number {
  try {
    const [ran] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
    return Number(ran) / 1e6
  } catch {
    return performance.now()
  }
}

if (process.env.LOOP_PROBE !== undefined) {
  let longestMs = 0
  let lastMs = processorMs()
  let reading = { wallMs: performance.now(), ranMs: lastMs }
  const measure = () => {
    const ranMs = processorMs()
    longestMs = Math.max(longestMs, ranMs - lastMs)
    lastMs = ranMs
  }
  setInterval(measure, INTERVAL_MS).unref()
  Bun.serve({
    unix: process.env.LOOP_PROBE,
    fetch() {
      measure()
      const wallMs = performance.now()
      const answer: LoopReading = { longestMs, busy: (lastMs - reading.ranMs) / Math.max(1, wallMs - reading.wallMs) }
      longestMs = 0
      reading = { wallMs, ranMs: lastMs }
      return Response.json(answer)
    },
  }).unref()
}
