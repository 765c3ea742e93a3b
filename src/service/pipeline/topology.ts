import type { KnownMark } from '../../events/id-source.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Claim, ClaimedRow } from '../../partitions/shared/partition-rows.ts'
import type { SinkPositionStore } from '../../sink/position.ts'
import type { ServiceContext } from '../context.ts'
import { type Consumers, startConsumers } from './consumers.ts'

/** How the logs of partitions are stored: in files of one process, in files of several, or in NATS servers. */
export interface Topology<Log extends PartitionLog = PartitionLog, Claimed extends AnyClaim = ClaimedRow> {
  /** How many partitions there are. */
  readonly count: number
  /** Whether other processes own some of them. */
  readonly isShared: boolean
  /**
   * Opens the log of a partition that this process has claimed.
   * @param opened gets what is to be closed after the consumers have stopped, also if this fails
   * @param onLost to be called once when another process has taken the partition over, or its log cannot be written
   */
  openLog(claimed: Claimed, opened: AsyncDisposableStack, onLost: (reason: string) => void): Promise<Log>
}

type AnyClaim = Pick<Claim, 'partition' | 'generation'>

/** The log of a partition, as its topology has opened it. */
export interface PartitionLog {
  readonly journal: Journal
  readonly position: SinkPositionStore
  /** The newest progress that ClickHouse is known to have stored. */
  readonly columnarMark: () => KnownMark
  /** Begins to watch for stores that go back to an earlier state; ends before the consumers stop. */
  watch?(consumers: Consumers, opened: AsyncDisposableStack): Promise<void>
}

export interface OpenedPartition<Log> extends Consumers {
  readonly log: Log
  /** Completes accepted appends and stops. @param isLost whether another process may own the partition already */
  stop(isLost: boolean): Promise<void>
}

/** What is called while a partition is open. */
export interface PartitionEvents {
  readonly onLost: (reason: string) => void
  /** Called after each commit of run statistics with usage. */
  readonly onUsage: () => void
}

/** How long a stop waits for the last rows to be loaded. */
const LAST_LOAD_MS = 1_500

/** Opens the log of a partition and starts its consumers. A failure closes what was opened. */
export async function openPartition<Log extends PartitionLog, Claimed extends AnyClaim>(
  context: ServiceContext,
  topology: Topology<Log, Claimed>,
  claimed: Claimed,
  { onLost, onUsage }: PartitionEvents,
): Promise<OpenedPartition<Log>> {
  await using opened = new AsyncDisposableStack()
  const log = await topology.openLog(claimed, opened, onLost)
  const { journal, position, columnarMark } = log
  const { partition: id, generation } = claimed
  const { count, isShared } = topology
  let isStopInOrder = false
  const lastLoadMs = () => (isStopInOrder ? LAST_LOAD_MS : 0)
  const consumed = { id, generation, journal, position, columnarMark, count, isShared, onUsage, lastLoadMs }
  const consumers = await startConsumers(context, consumed, opened)
  await log.watch?.(consumers, opened)
  const parts = opened.move()
  return {
    ...consumers,
    log,
    stop(isLost) {
      isStopInOrder = !isLost
      return parts.disposeAsync()
    },
  }
}
