import { orAborted } from '../../base/abort.ts'
import { ApiError, invalid } from '../../base/errors.ts'
import { parseCursor } from '../../stores/journal/cursor.ts'
import type { LoadProgress } from '../../stores/sink/sink.ts'

export const WAIT_MAX_MS = 10_000

/**
 * Waits until a position is readable.
 * @throws ApiError VALIDATION_ERROR for a position of another journal; UNAVAILABLE when it takes too long; the reason of
 *   `signal` once the client has disconnected
 */
export async function waitUntilReadable(
  loading: LoadProgress,
  waitFor: string | number,
  signal: AbortSignal,
): Promise<void> {
  const seq = typeof waitFor === 'number' ? waitFor : decodePosition(loading.epoch, waitFor)
  if (await orAborted(loading.waitFor(seq, WAIT_MAX_MS), signal)) return
  throw new ApiError('UNAVAILABLE', `wait_for: position ${seq} is not readable yet`, {
    reason: 'not_loaded',
    param: 'wait_for',
  })
}

function decodePosition(epoch: string, text: string): number {
  const cursor = parseCursor(text)
  if (cursor === null) throw invalid('wait_for', 'expected a seq, or complete_through of an earlier answer')
  if (cursor.epoch !== null && cursor.epoch !== epoch)
    throw invalid('wait_for', 'this position belongs to a journal that no longer exists', {
      reason: 'journal_replaced',
    })
  return cursor.seq
}
