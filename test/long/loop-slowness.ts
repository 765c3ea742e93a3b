import { processorMs } from './loop-probe.ts'

/** What {@link work} takes on two idle cores of the machine for which the limit of 100 ms was set. */
const REFERENCE_MS = 35
const ATTEMPTS = 5

/** @returns how many times slower than the reference this machine is at the moment; at least 1 */
export function slowness(): number {
  let bestMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const startedMs = processorMs()
    work()
    bestMs = Math.min(bestMs, processorMs() - startedMs)
  }
  return Math.max(1, bestMs / REFERENCE_MS)
}

/** Scans, parses and serializes, like the work of most calls. */
function work(): void {
  const text = JSON.stringify(Array.from({ length: 40_000 }, (_, n) => ({ n, text: `"${n}"` })))
  const bytes = Buffer.from(text)
  let quotes = 0
  for (const byte of bytes) if (byte === 0x22) quotes++
  if (JSON.stringify(JSON.parse(text)).length !== text.length || quotes === 0) throw new Error('the work was not done')
}
