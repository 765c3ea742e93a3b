import { readFileSync } from 'node:fs'

/**
 * Preloaded into the service by the campaign `loop`: measures how long the event loop stops. Answers on the Unix socket
 * `LOOP_PROBE`: `/begin` before a case, `/` with the longest stop since the last answer, `/end` with by how much to divide it.
 *
 * A stop is counted in time on a processor: the time that the thread waited for one, or for other threads that did, says more
 * about the machine than about the call. For the same reason a page fault, the first write to 4 KiB of fresh memory, counts
 * as one of a machine with its own memory. On a virtual machine of which many processes take memory at once, one takes
 * twenty times as long, and a call of 10 MiB has thousands: measured on such a machine, 0.02 ms each, nine tenths of a stop
 * of 590 ms. What they take on this machine is measured before each case.
 *
 * Two processors of a virtual machine are often one core: while the other is busy, everything takes up to twice as long on
 * this one, also in processor time. So a fixed piece of work is measured before and after each case (`/end`), and a stop
 * counts as it would be at the best speed of this process so far: by the smaller slowdown of the two.
 */

export interface LoopReading {
  /** The longest stop, in milliseconds. */
  readonly longestMs: number
  /** The share of the time since the last reading that the thread used a processor. */
  readonly busy: number
}

const INTERVAL_MS = 2
/** A page fault on a machine of its own. */
const FAULT_MS = 0.001
const SAMPLES = 5
const REPEATS = 15
/** What another process on the same core adds at most. */
const SLOWDOWN_MAX = 2
const SAMPLE_BYTES = 4 * 1024 * 1024
const PAGE_BYTES = 4096
/** Some milliseconds of what requests do: reading bytes one by one, making strings, parsing. */
const WORK = Buffer.from(JSON.stringify(Array.from({ length: 4_000 }, (_, n) => ({ [`name \\ ${n}`]: `value ${n}` }))))

/** The time that this thread has spent on a processor, in milliseconds; the time of day where that is not known. */
function processorMs(): number {
  try {
    const [ran] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
    return Number(ran) / 1e6
  } catch {
    return performance.now()
  }
}

/** The page faults of this thread that read nothing from a disk; 0 where they are not known. */
function faultsSoFar(): number {
  try {
    // The name of the thread, in brackets, may contain spaces.
    const [, fields] = readFileSync('/proc/thread-self/stat', 'utf8').split(') ')
    return Number(fields!.split(' ')[7])
  } catch {
    return 0
  }
}

/** What a page fault takes now, in milliseconds. Memory that the process had already has none, and is no sample. */
function measureFaultMs(): number {
  const samples: number[] = []
  const kept: Uint8Array[] = []
  for (let n = 0; n < SAMPLES; n++) {
    const [ranMs, faults] = [processorMs(), faultsSoFar()]
    kept.push(new Uint8Array(SAMPLE_BYTES).fill(1))
    const count = faultsSoFar() - faults
    if (count > SAMPLE_BYTES / PAGE_BYTES / 2) samples.push((processorMs() - ranMs) / count)
  }
  return samples.sort((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0
}

/** How long {@link WORK} takes now. Several times, because the system counts the time on a processor in milliseconds. */
function measureWorkMs(): number {
  const startedMs = processorMs()
  for (let n = 0; n < REPEATS; n++) {
    let quotes = 0
    for (let at = 0; at < WORK.length; at++) if (WORK[at] === 0x22) quotes++
    const read = JSON.parse(WORK.toString()) as unknown[]
    if (quotes !== read.length * 4) throw new Error(`${quotes} quotes`)
  }
  return (processorMs() - startedMs) / REPEATS
}

if (process.env.LOOP_PROBE !== undefined) {
  let longestMs = 0
  let fastestMs = Number.POSITIVE_INFINITY
  let slowdown = 1
  let faultMs = 0
  let last = { ranMs: processorMs(), faults: faultsSoFar() }
  let reading = { wallMs: performance.now(), ranMs: last.ranMs }
  const measure = () => {
    const now = { ranMs: processorMs(), faults: faultsSoFar() }
    const excessMs = (now.faults - last.faults) * Math.max(0, faultMs - FAULT_MS)
    longestMs = Math.max(longestMs, now.ranMs - last.ranMs - excessMs)
    last = now
  }
  setInterval(measure, INTERVAL_MS).unref()
  const measureSlowdown = () => {
    const workMs = measureWorkMs()
    fastestMs = Math.min(fastestMs, workMs)
    return Math.min(SLOWDOWN_MAX, workMs / fastestMs)
  }
  Bun.serve({
    unix: process.env.LOOP_PROBE,
    fetch(request) {
      measure()
      if (request.url.endsWith('/begin')) {
        faultMs = measureFaultMs()
        slowdown = measureSlowdown()
        last = { ranMs: processorMs(), faults: faultsSoFar() }
        return new Response()
      }
      if (request.url.endsWith('/end')) return Response.json(Math.min(slowdown, measureSlowdown()))
      const wallMs = performance.now()
      const answer: LoopReading = {
        longestMs,
        busy: (last.ranMs - reading.ranMs) / Math.max(1, wallMs - reading.wallMs),
      }
      longestMs = 0
      reading = { wallMs, ranMs: last.ranMs }
      return Response.json(answer)
    },
  }).unref()
}
