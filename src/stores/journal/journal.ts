import { ApiError } from '../../base/errors.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { RowKind } from './kinds.ts'
import type { DeliveryRow, EventBatch, RunRow, ScoreBatch, SystemEventRow, TaskToAppend } from './rows.ts'

/**
 * A journal as its consumers see it: one ordered, durable log of everything that agents report. Feeds, SQL and run
 * statistics are consumers that may lag or be rebuilt.
 *
 * A position (`seq`) is a positive integer. Each row has its own; they rise in the order of acceptance within an `epoch`.
 */
export interface JournalReader {
  /** Identifies this log. Positions of different epochs cannot be compared. */
  readonly epoch: string
  /** Every epoch whose rows {@link read} may give, in order; the last one is {@link epoch}. */
  readonly epochs: readonly Epoch[]
  /** The last assigned position: the `seq` of the last durable row, or the end of a gap; 0 for an empty log. */
  readonly endSeq: number
  /**
   * The oldest row of this epoch that {@link read} can still return; past {@link endSeq} when there is none. Older rows
   * are in ClickHouse. Rows of earlier epochs that are not yet consumed come before it; feeds do not show them.
   */
  readonly startSeq: number
  /** Assigned positions whose rows are missing, in order. Adjacent gaps are merged. */
  readonly gaps: readonly Gap[]
  /** The epoch that a position belongs to. */
  epochAt(seq: number): string

  /**
   * Returns the durable frames that hold rows after `afterSeq`, in order, up to about `maxBytes`. Empty when there are
   * none: then everything between `afterSeq` and {@link endSeq} at the time of the call is a gap, see {@link endOfGap}. Frames
   * are returned whole, even if some rows are at or before `afterSeq`. A block may be overwritten once every registered consumer has
   * released its rows; readers that are not registered must copy what they keep.
   */
  read(afterSeq: number, maxBytes: number): Promise<Frame[]>
  /**
   * Like {@link read}, but synchronous and from memory only, where there are no gaps; null when memory does not hold the rows
   * after `afterSeq`.
   * The blocks are valid until the caller yields.
   */
  recent(afterSeq: number, maxBytes: number): Frame[] | null
  /** Resolves once a row after `seq` is durable, the journal closes, or `signal` aborts. */
  waitPast(seq: number, signal: AbortSignal): Promise<void>
  /**
   * {@link read} and {@link waitPast} as one endless iteration; ends when `signal` aborts or the journal closes.
   * The reader pulls, so a slow reader delays only itself.
   */
  follow(afterSeq: number, signal: AbortSignal): AsyncIterable<Frame>
}

/** A journal as its only writer sees it. An append that has resolved is never lost and never duplicated. */
export interface Journal extends JournalReader {
  /**
   * Appends the events of one call. Resolves once they are on stable storage.
   * @throws ApiError UNAVAILABLE when the journal is full, its disk fails, or it is closing.
   */
  appendEvents(batch: EventBatch): Promise<Appended>
  /** Appends the scores of one call, of runs of one workspace, as {@link appendEvents} does events. */
  appendScores(batch: ScoreBatch): Promise<Appended>

  /**
   * Appends records from the outbox, in the given order. The frame stores `outboxIds` (UUIDs), so that after a crash
   * the relay knows whether this append happened before the outbox rows were deleted ({@link lastOutboxIds}). Tasks of a
   * workspace that are not from the outbox have none.
   */
  appendRuns(rows: readonly RunRow[], outboxIds: readonly string[]): Promise<Appended>
  appendTasks(rows: readonly TaskToAppend[], outboxIds: readonly string[]): Promise<Appended>
  appendSystemEvents(rows: readonly SystemEventRow[], outboxIds: readonly string[]): Promise<Appended>
  /**
   * Appends attempts to deliver activity to webhooks, at least one. All are refused if any belongs to a workspace that
   * {@link refuse} names.
   */
  appendDeliveries(rows: readonly DeliveryRow[]): Promise<Appended>
  /** The outbox ids of the newest durable frame of each kind: those rows must not be appended again. */
  lastOutboxIds(): readonly string[]

  /**
   * Records that `consumer` has processed everything up to `seq`. The journal keeps what a registered consumer still
   * needs, and refuses appends when that exceeds its size limit.
   */
  release(consumer: string, seq: number): void
  /** Bytes of the stored frames. */
  readonly bytes: number
  /** Those that some registered consumer has not released. */
  readonly backlogBytes: number

  /** Refuses further rows of a workspace that are not from the outbox until the journal is closed. Accepted rows stay. */
  refuse(workspaceId: string): void
  /**
   * Refuses further events, tasks and scores of a deleted run, like {@link refuse}, while at most 10,000 more runs are deleted.
   */
  refuseRun(run: RunIdentity): void
  /** Refuses further scores of a run with the id of a deleted one, while at most 10,000 other runs lose a score. */
  refuseScore(run: RunIdentity, scoreId: string): void
  /**
   * Starts a new segment after everything that was accepted before the call, so that {@link drop} can delete all of it.
   * Returns the position of the last row before the new segment.
   * @throws ApiError UNAVAILABLE when the disk fails or the journal is closing
   */
  cut(): Promise<number>
  /**
   * Permanently removes rows up to `throughSeq` from memory and disk. Feeds read them from ClickHouse from then on. Rows
   * that a registered consumer has not released stay, and so do rows that share a segment with a later row.
   * @returns whether no row up to `throughSeq` is left
   */
  drop(throughSeq: number): Promise<boolean>
  /** {@link drop} for rows accepted on days (UTC) before that of `beforeMs`, Unix milliseconds. */
  expire(beforeMs: number): Promise<void>

  /**
   * Pauses commits until the returned function is called; resolves once none is running. Appends wait meanwhile.
   *
   * So this is a barrier in time, too. Once it resolves, every row with a `received_at` before the call is at or before
   * {@link endSeq}: no later commit gets an earlier time than that of this call, even if the clock goes back by up to a minute.
   * @throws ApiError UNAVAILABLE when the journal is closing
   */
  hold(): Promise<() => void>

  /**
   * Resolves when an append would be accepted.
   * @throws ApiError UNAVAILABLE when it would not
   */
  check(): Promise<void>
  /** Refuses further appends, completes the accepted ones, and closes the files. */
  close(): Promise<void>
}

/** The positions from `firstSeq` on, until the next epoch begins, belong to this epoch. */
export interface Epoch {
  readonly epoch: string
  readonly firstSeq: number
}

/** A name for a new epoch. */
export function newEpoch(): string {
  return Bun.randomUUIDv7().slice(-12)
}

/** The epoch that a position belongs to. */
export function epochAt(epochs: readonly Epoch[], seq: number): string {
  return (epochs.findLast(({ firstSeq }) => firstSeq <= seq) ?? epochs[0]).epoch
}

/** Adds an epoch. Those that would begin at or after it have no rows and are left out. */
export function withEpoch(epochs: readonly Epoch[], epoch: Epoch): readonly Epoch[] {
  return [...epochs.filter(({ firstSeq }) => firstSeq < epoch.firstSeq), epoch]
}

/** Rows after `afterSeq` up to `throughSeq` are missing in the journal, although their positions were assigned. */
export interface Gap {
  readonly afterSeq: number
  readonly throughSeq: number
  /** Rows up to here are in ClickHouse; later ones are lost. */
  readonly loadedSeq: number
}

/**
 * Where a reader goes on after {@link JournalReader.read} has given it nothing after `afterSeq`: at the end of the gap there.
 * @param endSeq the journal's end before that read
 * @throws ApiError UNAVAILABLE when the journal knows of no gap: then the rows are only out of reach, and to skip would lose them
 */
export function endOfGap(journal: JournalReader, afterSeq: number, endSeq: number): number {
  if (afterSeq >= endSeq) return afterSeq
  const gap = journal.gaps.find((each) => each.afterSeq <= afterSeq && afterSeq < each.throughSeq)
  if (gap !== undefined) return gap.throughSeq
  // Positions of another journal, before the first one of this.
  const { startSeq, epoch } = journal
  if (afterSeq + 1 < startSeq && journal.epochAt(afterSeq + 1) === epoch) return startSeq - 1
  const message = `the journal gives no rows after position ${afterSeq}, and knows of no gap there; try again`
  throw new ApiError('UNAVAILABLE', message, { retryAfterSeconds: 1 })
}

export interface Appended {
  readonly firstSeq: number
  readonly lastSeq: number
}

/** Rows of one kind from one commit: a ClickHouse `Native` block, and what consumers need without decoding it. */
export interface Frame {
  readonly kind: RowKind
  readonly firstSeq: number
  readonly rows: number
  /**
   * When the service accepted the rows, Unix milliseconds; the same for all rows of the frame. From one frame of a log to
   * the next it falls only when the clock was more than a minute ahead.
   */
  readonly receivedAt: number
  /**
   * The runs that the rows belong to, in row order: the rows of `runs[0]` come first. Deliveries, and workspace events,
   * have `NIL_UUID` as agent and run.
   */
  readonly runs: readonly RunRows[]
  /** The rows in ClickHouse's `Native` format. */
  readonly block: Uint8Array
}

/** The position of a frame's last row. */
export function lastSeqOf(frame: Frame): number {
  return frame.firstSeq + frame.rows - 1
}

/** Adjacent rows of the same run. */
export interface RunRows {
  readonly workspaceId: string
  readonly agentId: string
  readonly runId: string
  readonly rows: number
}
