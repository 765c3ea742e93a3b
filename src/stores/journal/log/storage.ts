import { ApiError } from '../../../base/errors.ts'
import type { Log } from '../../../base/log.ts'
import type { Epoch, Frame, Gap } from '../journal.ts'
import type { AppendPoint } from './frame.ts'

/** The frames of one commit, as they are stored. */
export interface Commit {
  readonly buffer: Buffer
  readonly frames: readonly Frame[]
  /** The check of the last frame. */
  readonly check: Buffer
  /** The position of the first row of each kind. */
  readonly first: Record<Frame['kind'], number>
  readonly endSeq: number
  readonly outboxIds: ReadonlyMap<Frame['kind'], readonly string[]>
}

/** Reuses the memory of commits, because allocation is expensive. */
export interface BufferPool {
  /** A buffer for `bytes` bytes; what it has beyond them is zero. */
  take(bytes: number): Buffer
  /** Returns a buffer to the pool. It must not be used any more. */
  give(buffer: Buffer): void
}

/** Reads what a log has stored. */
export interface StoredLog {
  /** See `Journal.epochs`. */
  readonly epochs: readonly Epoch[]
  /** See `Journal.gaps`. */
  readonly gaps: readonly Gap[]
  /** The position of the oldest stored row; undefined when there are no rows. */
  readonly startSeq: number | undefined
  /** Stored frames with rows after `afterSeq`, like `Journal.read`. */
  read(afterSeq: number, maxBytes: number): Promise<Frame[]>
}

/**
 * Stores the commits of a journal, one at a time. It deletes rows in units that it chooses, such as files, and counts
 * bytes in the same units.
 */
export interface LogStorage extends StoredLog {
  /** The memory of the commits. */
  readonly pool: BufferPool
  /** Stored bytes. Read on every append. */
  readonly bytes: number
  /** Bytes of the units that hold rows after `seq`. */
  bytesAfter(seq: number): number
  /** Why commits are impossible at the moment, if they are known to be. Read on every append. */
  refusal(): ApiError | undefined

  /**
   * Where to write the frames with the rows from `firstSeq` on, accepted at `receivedAt`. {@link write} must follow
   * before the next call.
   */
  appendPoint(firstSeq: number, receivedAt: number): AppendPoint | Promise<AppendPoint>
  /**
   * Writes a commit at {@link appendPoint}; resolves once it is on stable storage.
   * @throws ApiError for a refusal that callers should see, or any error
   */
  write(commit: Commit, receivedAt: number): Promise<void>
  /** Called when a commit of about `bytes` bytes could not be written. */
  failed(bytes: number): void
  /** Ends the current unit: rows from `firstSeq` on go to the next one. Must not be called during a write. */
  begin(firstSeq: number): Promise<void>

  /** Deletes units without rows past `seq`, as long as at least `keepBytes` remain. Returns before they are deleted. */
  trim(seq: number, keepBytes: number): void
  /** Permanently deletes all units without rows past `seq`, except the current one. */
  dropThrough(seq: number): Promise<void>
  /** The last position that was accepted on a day (UTC) before that of `beforeMs`; undefined when no stored row was. */
  lastSeqBefore(beforeMs: number): Promise<number | undefined>

  /** @throws ApiError UNAVAILABLE when a write would fail */
  check(): Promise<void>
  close(): Promise<void>
}

/** The UTC day of a time in Unix milliseconds, as days since 1970. */
export function dayOf(ms: number): number {
  return Math.floor(ms / 86_400_000)
}

/** Refuses calls of a journal that is being closed. */
export function shuttingDown(): ApiError {
  return new ApiError('UNAVAILABLE', 'the service is shutting down; try again', { reason: 'shutting_down' })
}

/** Refuses appends beyond the journal's limit of bytes. */
export function journalFull(cause?: unknown): ApiError {
  const message = 'the journal is full because ClickHouse is behind; try again'
  return new ApiError('UNAVAILABLE', message, { retryAfterSeconds: 5, cause })
}

/** The assigned positions whose rows are missing in a log: in order, adjacent ones merged. */
export class GapList {
  /** @param onChange called after each new gap, with the merged one and the whole list */
  constructor(
    private gaps: readonly Gap[],
    private readonly log: Log,
    private readonly onChange: (gap: Gap, all: readonly Gap[]) => void,
  ) {}

  get all(): readonly Gap[] {
    return this.gaps
  }

  /** Records a gap, some or all of which may be known already. */
  add({ afterSeq, throughSeq, loadedSeq }: Gap): void {
    if (throughSeq <= afterSeq || this.gaps.some((gap) => gap.afterSeq <= afterSeq && gap.throughSeq >= throughSeq))
      return
    const isApart = (gap: Gap) => gap.throughSeq < afterSeq || gap.afterSeq > throughSeq
    const merged = this.gaps.filter((gap) => !isApart(gap))
    const whole: Gap = {
      afterSeq: Math.min(afterSeq, ...merged.map((gap) => gap.afterSeq)),
      throughSeq: Math.max(throughSeq, ...merged.map((gap) => gap.throughSeq)),
      loadedSeq: Math.min(loadedSeq, ...merged.map((gap) => gap.loadedSeq)),
    }
    this.gaps = [...this.gaps.filter(isApart), whole].sort((a, b) => a.afterSeq - b.afterSeq)
    this.log.error('journal: rows are missing; feeds report a gap, and the positions are not reused', {
      after_seq: afterSeq,
      through_seq: throughSeq,
      in_clickhouse_through_seq: loadedSeq,
    })
    this.onChange(whole, this.gaps)
  }
}
