import type { ClaimIndex } from '../../activity/claims/claim-index.ts'
import type { KnownMark } from '../../activity/claims/claim-source.ts'
import type { Journal } from '../../stores/journal/journal.ts'
import type { SinkPositionStore } from '../../stores/sink/position.ts'
import type { Sink } from '../../stores/sink/sink.ts'
import type { OwnedPartition } from '../../tenants/partitions/partition.ts'
import type { Claim, ClaimedRow } from '../../tenants/partitions/shared/tables.ts'

/** How the logs of partitions are stored: in files of one process, in files of several, or in NATS servers. */
export interface Topology<Log extends PartitionLog = PartitionLog, Claimed extends AnyClaim = ClaimedRow> {
  /** How many partitions there are. */
  readonly count: number
  /** Whether other processes own some of them, and relay their part of the outbox. */
  readonly isShared: boolean
  /**
   * Opens the log of a partition that this process has claimed.
   * @param opened receives the resources of the log; they are closed after the consumers have stopped, or if this call fails
   * @param onLost to be called once when another process has taken the partition over, or its log cannot be written
   */
  openLog(claimed: Claimed, opened: AsyncDisposableStack, onLost: (reason: string) => void): Promise<Log>
}

/** A claim of any topology. */
export type AnyClaim = Pick<Claim, 'partition' | 'generation'>

/** The log of a partition, as its topology has opened it. */
export interface PartitionLog {
  readonly journal: Journal
  readonly position: SinkPositionStore
  /** The newest progress that ClickHouse is known to have stored. */
  readonly columnarMark: () => KnownMark
  /** Starts watching for stores that go back to an earlier state. The watch is added to `opened`, and ends before the consumers stop. */
  readonly watch?: (consumers: Consumers, opened: AsyncDisposableStack) => Promise<void>
}

/** The consumers of a log in its owner's process, and the relay that appends to it. */
export interface Consumers extends OwnedPartition {
  readonly sink: Sink
  readonly ids: ClaimIndex
  readonly scoreIds: ClaimIndex
}
