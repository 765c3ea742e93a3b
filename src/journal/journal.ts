import type { EventBatch } from '../events/schema.ts'
import type { RunRow, SystemEventRow, TaskRow } from './rows.ts'

/**
 * The journal: one ordered, durable log of everything a fleet reports. Feeds, SQL and run statistics are consumers of
 * it that may lag or be rebuilt; an append that has resolved is never lost and never doubled.
 *
 * Positions are `seq`: a positive integer, one a row, rising in the order of acceptance within one log (`epoch`).
 */
export interface Journal {
  /** Names this log. Another epoch means another log: its positions say nothing about ours. */
  readonly epoch: string
  /** Every epoch whose rows {@link read} may give, in order; the last one is {@link epoch}. */
  readonly epochs: readonly Epoch[]
  /** The last position that was given: the `seq` of the last durable row, or the end of a gap; 0 for an empty log. */
  readonly endSeq: number
  /**
   * The oldest row of this epoch that {@link read} can still give; past {@link endSeq} when there is none. Older ones are in
   * ClickHouse. Rows of earlier epochs that consumers have yet to read stand before it; feeds do not show them.
   */
  readonly startSeq: number
  /** Positions that were given and whose rows are missing, in order; none touches another. */
  readonly gaps: readonly Gap[]
  /** The epoch that a position belongs to. */
  epochAt(seq: number): string

  /**
   * Appends the events of one call. Resolves once they are on stable storage.
   * @throws ApiError UNAVAILABLE when the journal is full, its disk fails, or it is closing.
   */
  appendEvents(batch: EventBatch): Promise<Appended>

  /**
   * Appends records from the outbox, in the order given. `outboxIds` (UUIDs) are kept in the frame, so that a crash between
   * this append and the delete of the outbox rows can be told from one before it ({@link lastOutboxIds}).
   */
  appendRuns(rows: readonly RunRow[], outboxIds: readonly string[]): Promise<Appended>
  appendTasks(rows: readonly TaskRow[], outboxIds: readonly string[]): Promise<Appended>
  appendSystemEvents(rows: readonly SystemEventRow[], outboxIds: readonly string[]): Promise<Appended>
  /** The outbox ids of the newest durable frame of each kind: those rows must not be appended again. */
  lastOutboxIds(): readonly string[]

  /**
   * Frames that hold rows after `afterSeq` and are durable now, in order, up to about `maxBytes`; empty when there are
   * none: then what lies between `afterSeq` and the end as it was at the call is a gap. A frame comes whole, even if some of its rows are at or before `afterSeq`. Its block may be overwritten once
   * every registered consumer has released its rows: a reader that is none copies what it keeps.
   */
  read(afterSeq: number, maxBytes: number): Promise<Frame[]>
  /**
   * Like {@link read}, at once and from memory alone; null when memory no longer holds what follows `afterSeq`. The
   * blocks are safe to look at until the caller yields.
   */
  recent(afterSeq: number, maxBytes: number): Frame[] | null
  /** Resolves once a row after `seq` is durable, the journal closes, or `signal` aborts. */
  waitPast(seq: number, signal: AbortSignal): Promise<void>
  /**
   * {@link read} and {@link waitPast} as one endless iteration; ends when `signal` aborts or the journal closes.
   * Pulls: a slow reader costs nothing but its own lag.
   */
  follow(afterSeq: number, signal: AbortSignal): AsyncIterable<Frame>
  /**
   * Says that `consumer` has done with everything up to `seq`. What a registered consumer still needs is kept; when
   * that grows past the journal's bound, appends are refused.
   */
  release(consumer: string, seq: number): void

  /** Refuses further events of a workspace for as long as this process lives. What has been accepted stays. */
  refuse(workspaceId: string): void
  /**
   * Draws a line behind everything that has been accepted before the call, so that {@link drop} can part with all of
   * it. Answers the position of the last row before the line.
   * @throws ApiError UNAVAILABLE when the disk fails or the journal is closing
   */
  cut(): Promise<number>
  /**
   * Parts with rows up to `throughSeq`, in memory and for good on the disk, although feeds could still be served from
   * here: ClickHouse serves them from now on. What a registered consumer has yet to read stays, and so does what
   * shares a file with a later row.
   * @returns whether nothing up to `throughSeq` is left
   */
  drop(throughSeq: number): Promise<boolean>
  /** {@link drop} for rows accepted on days (UTC) before that of `beforeMs`, Unix milliseconds. */
  expire(beforeMs: number): Promise<void>

  /**
   * Resolves when an append would be taken.
   * @throws ApiError UNAVAILABLE when it would not
   */
  check(): Promise<void>
  /** Resolves what has been accepted, then refuses further appends and closes the files. */
  close(): Promise<void>
}

/** A life of the journal: positions from `firstSeq` on, until the next epoch begins, are its own. */
export interface Epoch {
  readonly epoch: string
  readonly firstSeq: number
}

/** Rows after `afterSeq`, up to `throughSeq`, are not in the journal any more although their positions were given. */
export interface Gap {
  readonly afterSeq: number
  readonly throughSeq: number
  /** Those up to here are in ClickHouse; later ones are lost. */
  readonly loadedSeq: number
}

export type ActivityKind = 'event' | 'task' | 'run'

export interface Appended {
  readonly firstSeq: number
  readonly lastSeq: number
}

/** Rows of one kind made durable in one commit: a ClickHouse `Native` block and what consumers need without decoding it. */
export interface Frame {
  readonly kind: ActivityKind
  readonly firstSeq: number
  readonly rows: number
  /** When the service accepted the rows, Unix milliseconds; one value for the whole frame. */
  readonly receivedAt: number
  /** Whose rows these are, in row order: the rows of `spans[0]` first. */
  readonly spans: readonly Span[]
  /** The rows in ClickHouse's `Native` format. */
  readonly block: Uint8Array
}

/** The position of a frame's last row. */
export function lastSeqOf(frame: Frame): number {
  return frame.firstSeq + frame.rows - 1
}

/** Adjacent rows of the same run. */
export interface Span {
  readonly workspaceId: string
  readonly agentId: string
  readonly runId: string
  readonly rows: number
}
