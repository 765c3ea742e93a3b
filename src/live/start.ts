import { invalid } from '../http/errors.ts'
import { parseCursor } from '../journal/cursor.ts'
import type { Journal } from '../journal/journal.ts'

/** Where a feed begins. */
export interface Start {
  readonly afterSeq: number
  /** The client asked for a position that cannot be had: what it missed in between is lost, and it is told so. */
  readonly isLost: boolean
}

/**
 * Where a feed that is to resume after `cursor` begins: `0` is the beginning of retention, undefined the present.
 *
 * A cursor of another epoch is one of a journal that is gone. What that one still held cannot be told, so the feed begins
 * with all of this one and says that something is lost.
 *
 * @param retentionWatermark up to where retention may have deleted something
 * @throws ApiError VALIDATION_ERROR for text that is no cursor
 */
export function startOf(
  journal: Pick<Journal, 'epoch' | 'endSeq'>,
  retentionWatermark: number,
  cursor: string | undefined,
  place: string,
): Start {
  if (cursor === undefined) return { afterSeq: journal.endSeq, isLost: false }
  const parsed = parseCursor(cursor)
  if (parsed === null) throw invalid(place, 'expected the cursor of an activity, or 0 for all there is')
  if (parsed.epoch !== null && parsed.epoch !== journal.epoch) return { afterSeq: retentionWatermark, isLost: true }
  // From the future of a journal that was set back, say by a restored backup.
  if (parsed.seq > journal.endSeq) return { afterSeq: journal.endSeq, isLost: true }
  if (parsed.seq >= retentionWatermark) return { afterSeq: parsed.seq, isLost: false }
  const isBeginning = parsed.epoch === null && parsed.seq === 0
  return { afterSeq: retentionWatermark, isLost: !isBeginning }
}
