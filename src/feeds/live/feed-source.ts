import { invalid } from '../../base/errors.ts'
import { parseCursor } from '../../stores/journal/cursor.ts'
import type { JournalReader } from '../../stores/journal/journal.ts'
import type { SourceLifetime } from '../../tenants/partitions/partition.ts'
import type { Hub } from './hub.ts'

/** What feeds need of a partition's log. */
export interface FeedSource extends SourceLifetime {
  readonly journal: JournalReader
  readonly hub: Hub
  /** The position up to which retention may have deleted activity of a workspace. */
  retentionFloorOf(workspaceId: string): number
}

/** Where a feed starts. */
export interface Start {
  readonly afterSeq: number
  /** The requested position is no longer available. The activity in between is lost, and the client is told. */
  readonly isLost: boolean
}

/**
 * Where a feed that resumes after `cursor` starts: `0` is the oldest retained activity, undefined the present.
 *
 * A cursor of another epoch belongs to a journal that no longer exists. What followed it there is unknown, so the feed
 * starts with everything in this journal and reports a gap.
 *
 * @throws ApiError VALIDATION_ERROR for text that is not a cursor
 */
export function startOf(
  { journal, retentionFloorOf }: Pick<FeedSource, 'journal' | 'retentionFloorOf'>,
  workspaceId: string,
  cursor: string | undefined,
  path: string,
): Start {
  if (cursor === undefined) return { afterSeq: journal.endSeq, isLost: false }
  const retentionFloor = retentionFloorOf(workspaceId)
  const parsed = parseCursor(cursor)
  if (parsed === null) throw invalid(path, 'expected the cursor of an activity, or 0 for the oldest retained activity')
  if (parsed.epoch !== null && parsed.epoch !== journal.epoch) return { afterSeq: retentionFloor, isLost: true }
  // The journal went back to an earlier state, for example after a restore from a backup.
  if (parsed.seq > journal.endSeq) return { afterSeq: journal.endSeq, isLost: true }
  if (parsed.seq >= retentionFloor) return { afterSeq: parsed.seq, isLost: false }
  const isBeginning = parsed.epoch === null && parsed.seq === 0
  return { afterSeq: retentionFloor, isLost: !isBeginning }
}
