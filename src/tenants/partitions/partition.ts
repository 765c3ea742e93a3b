import { ApiError } from '../../base/errors.ts'
import type { RunIdentity, RunRef } from '../../base/ids.ts'
import type { Journal } from '../../stores/journal/journal.ts'
import type { OutboxRelay } from '../../stores/journal/outbox-relay.ts'
import type { LoadProgress } from '../../stores/sink/sink.ts'

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
  /** Of events. */
  readonly ids: ClaimedIds
  readonly scoreIds: ClaimedIds
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

/** The reports of a call, as {@link ClaimedIds} sees them. */
export interface ToClaim {
  /** The runs that rows refer to, all of one workspace. */
  readonly runs: readonly RunRef[]
  /** The rows to claim, in order. */
  readonly rows: readonly number[]
  /** The index of a row's run. */
  runOf(row: number): number
  /** The id of a row; undefined for one that is always stored. */
  idOf(row: number): string | undefined
  /** A hash of what is stored under the id, never 0; of events, any number. */
  contentOf(row: number): number
}

export interface Claimed<Result> {
  readonly duplicates: number
  /**
   * What the append resolves with, once all reports of the call are durable: the new ones and the originals of the
   * duplicates. Rejects when one of them has failed; then the ids of the failed one are free again.
   */
  readonly durable: Promise<Result>
}

/**
 * Detects events that were reported before, by the ids that callers gave them; of scores, those that repeat the latest one with
 * their id.
 */
export interface ClaimedIds {
  /** Records a run that this process created: nothing has been reported of it yet. */
  runStarted(run: RunIdentity): void
  /**
   * Claims the ids of one call and appends what is new, at once when all its runs are in memory. Of two rows of the call with an
   * id, the second is a duplicate, too.
   * @param append gets the rows to append; runs in the same tick as the claim, so that a repeat of the call never finds ids
   * without the append that it must wait for. It does not throw: what goes wrong is a rejection
   */
  claim<Result>(
    call: ToClaim,
    append: (rows: readonly number[]) => Promise<Result>,
  ): Claimed<Result> | Promise<Claimed<Result>>
}

/** Events of one run, by their ids. */
export function eventsToClaim(run: RunRef, ids: readonly (string | undefined)[]): ToClaim {
  return { runs: [run], rows: [...ids.keys()], runOf: () => 0, idOf: (row) => ids[row], contentOf: () => 1 }
}

/** The sources that live feeds read: one for each partition, which any process can open. */
export interface Feeds<Source> {
  /**
   * The source of a caller's workspace, with everything that was acknowledged before the call.
   * @param after where the caller wants to begin: it has seen the log up to there, perhaps in another process
   * @throws ApiError UNAVAILABLE
   */
  of(ref: PartitionRef, after?: string): Promise<Source>
  /** The sources that are open in this process. */
  opened(): readonly Source[]
}

/** How long a source stays open, and how it catches up with the log's owner. */
export interface SourceLifetime {
  /** Keeps the source open until the returned function is called. Calls `end` if it has to close anyway. */
  retain(end: () => void): () => void
  /** Whether it may lack what was acknowledged a moment ago, in another process. */
  readonly mayLag: boolean
  /**
   * Waits until everything that was acknowledged before the call can be read.
   * @param after as in {@link Feeds.of}
   * @throws ApiError UNAVAILABLE
   */
  refresh(after?: string): Promise<void>
}

/** The only partition of a service that keeps its journal in local files: this process always owns it. */
export function onePartition(owned: OwnedPartition): Partitions {
  const partition: Partition = {
    id: owned.id,
    owned,
    loading: owned.sink,
    flushChanges: () => owned.relay.flush(),
  }
  const allOwned = [owned]
  return {
    isOnlyOne: true,
    of: () => partition,
    owned: () => allOwned,
    check: () => checkJournals(allOwned),
    oldestUnloaded: () => oldestUnloadedOf(owned),
  }
}
