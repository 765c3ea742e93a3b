import type { JournalReader } from '../journal/journal.ts'
import type { SourceLifetime } from '../partitions/partition.ts'
import type { Hub } from './hub.ts'

/** What feeds need of a partition's log. */
export interface FeedSource extends SourceLifetime {
  readonly journal: JournalReader
  readonly hub: Hub
  /** The position up to which retention may have deleted activity of a workspace. */
  retentionFloorOf(workspaceId: string): number
}
