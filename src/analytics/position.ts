import type { SinkProgress } from '../columnar/sink.ts'
import { ApiError, invalid } from '../http/errors.ts'

const WAIT_MAX_MS = 10_000

/** A position as clients see it: opaque, and of no meaning in another log. */
export function encodePosition(epoch: string, seq: number): string {
  return `${epoch}.${seq}`
}

/**
 * Waits until a position is readable.
 * @throws ApiError VALIDATION_ERROR for a position of another log; UNAVAILABLE when it takes too long
 */
export async function waitUntilReadable(sink: SinkProgress, waitFor: string | number): Promise<void> {
  const seq = typeof waitFor === 'number' ? waitFor : decodePosition(sink.epoch, waitFor)
  if (await sink.waitFor(seq, WAIT_MAX_MS)) return
  throw new ApiError('UNAVAILABLE', `wait_for: position ${seq} is not readable yet`)
}

function decodePosition(epoch: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  const match = /^(.+)\.(\d{1,15})$/.exec(text)
  if (match === null) throw invalid('wait_for', 'expected a seq, or complete_through of an earlier answer')
  if (match[1] !== epoch) throw invalid('wait_for', 'this position belongs to a log that is gone')
  return Number(match[2])
}
