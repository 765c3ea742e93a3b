import { readFileSync } from 'node:fs'

/**
 * Preloaded into the service by the campaign `loop`: measures how long the event loop stops. Answers on the Unix socket
 * `LOOP_PROBE` with the longest stop since the last answer.
 */

export interface LoopReading {
  /** The longest stop, in milliseconds, without the time that the thread waited for a processor. */
  readonly longestMs: number
  /** The share of the time since the last reading that the thread used a processor. */
  readonly busy: number
}

const INTERVAL_MS = 2

let longestMs = 0
let last = now()
let reading = last

/** What the thread has spent, in milliseconds; without the scheduler's statistics it seems never to have waited. */
function now() {
  const wall = performance.now()
  try {
    // Nanoseconds on a processor, then waiting for one.
    const [ran, waited] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ').map(Number)
    return { wall, ran: ran! / 1e6, waited: waited! / 1e6 }
  } catch {
    return { wall, ran: wall, waited: 0 }
  }
}

function measure(): void {
  const next = now()
  longestMs = Math.max(longestMs, next.wall - last.wall - (next.waited - last.waited) - INTERVAL_MS)
  last = next
}

if (process.env.LOOP_PROBE !== undefined) {
  setInterval(measure, INTERVAL_MS).unref()
  Bun.serve({
    unix: process.env.LOOP_PROBE,
    fetch() {
      measure()
      const busy = (last.ran - reading.ran) / Math.max(1, last.wall - reading.wall)
      const answer: LoopReading = { longestMs, busy }
      longestMs = 0
      reading = last
      return Response.json(answer)
    },
  }).unref()
}
