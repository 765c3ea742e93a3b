import { ApiError } from '../base/errors.ts'
import type { Journal } from '../journal/journal.ts'
import type { OutboxRelay } from '../journal/outbox-relay.ts'
import type { LoadProgress } from '../sink/sink.ts'
import type { EventIds } from './event-ids.ts'

/**
 * A partition of the journal: one ordered log with one writer. A workspace belongs to one partition, so it has one order of
 * activity and one kind of cursor. The partition's owner is the process that writes its log and runs its consumers; every
 * process can read it. An embedded service has one partition, which it always owns.
 */
export interface Partition {
  readonly id: number
  /** The parts that exist in the owner's process only; undefined while another process owns the partition. */
  readonly owned: OwnedPartition | undefined
  /** How far the partition is loaded into ClickHouse. */
  readonly loading: LoadProgress
  /** Resolves once every state change that was committed before the call is in the log. */
  flushChanges(): Promise<void>
}

/** The parts of a partition that appends use. */
interface PartitionWriter {
  readonly journal: Journal
  readonly ids: EventIds
}

/** A consumer that counts the events of each run. */
interface EventCounts {
  /** Resolves once every event now in the journal has been counted. */
  flush(): Promise<void>
  /** Journal rows not yet counted. */
  lag(): number
}

/** A partition in its owner's process. */
export interface OwnedPartition extends PartitionWriter {
  readonly id: number
  /** Number of the claim: the log accepts only appends of the newest one. 0 in an embedded service. */
  readonly generation: number
  readonly sink: LoadProgress
  readonly relay: OutboxRelay
  readonly statistics: EventCounts
}

/** Names a partition: every caller belongs to one, that of its workspace. */
export interface PartitionRef {
  readonly partition: number
}

/** All partitions of the journal. */
export interface Partitions {
  /** Whether there is one partition, which this process always owns. */
  readonly isOnlyOne: boolean
  /** The partition of a caller's workspace. */
  of(ref: PartitionRef): Partition
  /** The partitions that this process owns now, in order. */
  owned(): readonly OwnedPartition[]
  /** @throws ApiError UNAVAILABLE when appends or feeds would fail */
  check(): Promise<void>
  /**
   * When the oldest row that ClickHouse lacks was accepted, of all partitions. Unix milliseconds; null when it has all rows; 0
   * while that is unknown.
   */
  oldestUnloaded(): Promise<number | null>
}

/**
 * The parts of a partition that appends need.
 * @throws NotOwner when this process does not own the partition
 */
export function writerOf(partitions: Pick<Partitions, 'of'>, ref: PartitionRef): PartitionWriter {
  const { owned } = partitions.of(ref)
  if (owned === undefined) throw new NotOwner()
  return owned
}

/** This process does not own the partition that an append is for. Nothing has been stored. */
export class NotOwner extends ApiError {
  override readonly name = 'NotOwner'

  constructor() {
    super('UNAVAILABLE', 'no node writes this workspace at the moment; try again', { retryAfterSeconds: 1 })
  }
}

/** @throws ApiError UNAVAILABLE when a log that this process writes does not accept appends */
export async function checkJournals(owned: readonly OwnedPartition[]): Promise<void> {
  await Promise.all(owned.map(({ journal }) => journal.check()))
}

/** When the oldest row of a partition that ClickHouse lacks was accepted. Unix milliseconds; null when it has all rows. */
export async function oldestUnloadedOf({ journal, sink }: OwnedPartition): Promise<number | null> {
  const [next] = await journal.read(sink.loadedSeq(), 1)
  return next?.receivedAt ?? null
}
