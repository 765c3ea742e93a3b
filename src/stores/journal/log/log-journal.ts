import { LRUCache } from 'lru-cache'
import { ApiError, notFound } from '../../../base/errors.ts'
import { NIL_UUID, type RunIdentity, runKey } from '../../../base/ids.ts'
import type { RecordBlock } from '../blocks/record-block.ts'
import type { Appended, Frame, Journal } from '../journal.ts'
import {
  type DeliveryRow,
  type EventBatch,
  type RunRow,
  SCORE_CELLS,
  type ScoreBatch,
  type SystemEventRow,
  scoreIdOf,
  type TaskToAppend,
} from '../rows.ts'
import { scoreErased } from '../scores.ts'
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts'
import { LogReader } from './log-reader.ts'
import { type Commit, journalFull, type LogStorage, shuttingDown } from './storage.ts'

/** Rows waiting to be written. Beyond this the storage is too slow and calls are refused. */
const PENDING_BYTES_MAX = 256 * 1024 * 1024
/** About two million events, which ClickHouse loads in a few seconds. */
const PACE_BYTES = 512 * 1024 * 1024
const PACED_WITHIN_MS = 5_000
const REST_MS_MAX = 100
/** For example, a backlog 10 % above `paceBytes` delays each commit by 20 ms. */
const REST_MS_PER_PACE = 200
const REFUSED_RUNS_MAX = 10_000

export interface LogJournalOptions extends Omit<GroupCommitOptions, 'storage'> {
  /** Appends are refused while more than this is not yet consumed. */
  readonly maxBytes: number
  /** How much consumed data is kept, for feeds that resume. */
  readonly keepBytes: number
  /** Commits slow down while active consumers lag by more than this. */
  readonly paceBytes?: number
  /** How much of the newest data stays in memory for consumers. */
  readonly tailBytes?: number
}

/** Where a journal continues, as its storage has found it. */
interface LogStart {
  /** The last position that was assigned. */
  readonly endSeq: number
  /** When its last rows were accepted, Unix milliseconds; 0 if that is not known. */
  readonly receivedAt: number
  /** The outbox ids of the newest frame of each kind. */
  readonly outboxIds: ReadonlyMap<Frame['kind'], readonly string[]>
  readonly consumers: Consumers
}

/** The writer of a journal, with group commit, on any storage. */
export class LogJournal extends LogReader implements Journal {
  private readonly commits: GroupCommit
  /** Outbox ids of the newest frame of each kind. */
  private readonly outboxIds: Map<Frame['kind'], readonly string[]>
  private readonly consumers: Consumers
  /** Workspaces whose rows are refused unless they are from the outbox. */
  private readonly refused = new Set<string>()
  /** Deleted runs. A call that has found one before it was deleted ends long before so many others are. */
  private readonly refusedRuns = new LRUCache<string, true>({ max: REFUSED_RUNS_MAX })
  /** The ids of deleted scores, by run. */
  private readonly refusedScores = new LRUCache<string, Set<string>>({ max: REFUSED_RUNS_MAX })

  constructor(
    private readonly storage: LogStorage,
    start: LogStart,
    private readonly options: LogJournalOptions,
  ) {
    super(storage, start.endSeq, options.tailBytes)
    this.consumers = start.consumers
    this.outboxIds = new Map(start.outboxIds)
    this.commits = new GroupCommit(this, start.receivedAt, { ...options, storage })
  }

  check(): Promise<void> {
    const refusal = this.refusal()
    return refusal === undefined ? this.storage.check() : Promise.reject(refusal)
  }

  /** Stored bytes. */
  get bytes(): number {
    return this.storage.bytes
  }

  /** Bytes not yet consumed. */
  get backlogBytes(): number {
    return this.storage.bytesAfter(this.consumers.slowest.seq)
  }

  lastOutboxIds(): readonly string[] {
    return [...this.outboxIds.values()].flat()
  }

  appendEvents(batch: EventBatch): Promise<Appended> {
    const refusal = this.refusalOf(batch.run) ?? this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const { events } = this.commits.pending
    const first = events.rows
    events.add(batch, this.options.clock.now())
    return this.commits.committed('event', first, events.rows - first)
  }

  appendScores(batch: ScoreBatch): Promise<Appended> {
    const refusal = this.refusalOfAny(batch.runs, (run) => run) ?? this.refusalOfScores(batch) ?? this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const { scores } = this.commits.pending
    const first = scores.rows
    scores.add(batch, this.options.clock.now())
    return this.commits.committed('score', first, scores.rows - first)
  }

  appendRuns(rows: readonly RunRow[], outboxIds: readonly string[]): Promise<Appended> {
    return this.appendRecords('run', this.commits.pending.runs, rows, outboxIds)
  }

  appendTasks(rows: readonly TaskToAppend[], outboxIds: readonly string[]): Promise<Appended> {
    return this.appendRecords('task', this.commits.pending.tasks, rows, outboxIds)
  }

  appendSystemEvents(rows: readonly SystemEventRow[], outboxIds: readonly string[]): Promise<Appended> {
    const refusal = this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const { events } = this.commits.pending
    const first = events.rows
    events.addSystemEvents(rows, outboxIds)
    return this.commits.committed('event', first, rows.length)
  }

  appendDeliveries(rows: readonly DeliveryRow[]): Promise<Appended> {
    return this.appendRecords('delivery', this.commits.pending.deliveries, rows, [])
  }

  release(consumer: string, seq: number): void {
    this.consumers.release(consumer, seq)
    this.storage.trim(this.consumers.slowest.seq, this.options.keepBytes)
  }

  refuse(workspaceId: string): void {
    this.refused.add(workspaceId)
  }

  refuseRun({ workspaceId, runId }: RunIdentity): void {
    this.refusedRuns.set(runKey(workspaceId, runId), true)
  }

  refuseScore({ workspaceId, runId }: RunIdentity, scoreId: string): void {
    const key = runKey(workspaceId, runId)
    const ids = this.refusedScores.get(key) ?? new Set()
    this.refusedScores.set(key, ids.add(scoreId))
  }

  cut(): Promise<number> {
    return this.closed ? Promise.reject(shuttingDown()) : this.commits.cut()
  }

  hold(): Promise<() => void> {
    return this.closed ? Promise.reject(shuttingDown()) : this.commits.hold()
  }

  async drop(throughSeq: number): Promise<boolean> {
    const seq = Math.min(throughSeq, this.consumers.slowest.seq)
    this.tail.forget(seq)
    await this.storage.dropThrough(seq)
    return this.storedStartSeq > throughSeq
  }

  async expire(beforeMs: number): Promise<void> {
    const seq = await this.storage.lastSeqBefore(beforeMs)
    if (seq === undefined) return
    if (seq >= this.endSeq) await this.cut()
    await this.drop(seq)
  }

  async close(): Promise<void> {
    this.closed = true
    await this.commits.drained()
    this.tail.wake()
    await this.storage.close()
  }

  /** For {@link GroupCommit}. */
  publish({ buffer, frames, endSeq, outboxIds }: Commit): void {
    this.durableSeq = endSeq
    for (const [kind, ids] of outboxIds) if (ids.length > 0) this.outboxIds.set(kind, ids)
    this.tail.push(frames, buffer)
  }

  /**
   * For {@link GroupCommit}. Bursts are accepted at full speed; sustained load is slowed down to the rate of the
   * consumers, so that the backlog stays constant instead of growing until calls are refused. Consumers that make no
   * progress, because their store is unavailable, do not slow down commits.
   */
  pauseMs(): number {
    if (performance.now() - this.consumers.slowest.atMs > PACED_WITHIN_MS) return 0
    const over = this.backlogBytes / (this.options.paceBytes ?? PACE_BYTES) - 1
    return over > 0 ? Math.min(REST_MS_MAX, over * REST_MS_PER_PACE) : 0
  }

  /** Returns memory to the pool if every registered consumer has released its rows. */
  protected override evicted(memory: Buffer, lastSeq: number): void {
    if (this.consumers.count > 0 && this.consumers.slowest.seq >= lastSeq) this.storage.pool.give(memory)
  }

  private appendRecords<Row extends RunRow | TaskToAppend | DeliveryRow>(
    kind: 'run' | 'task' | 'delivery',
    block: RecordBlock<Row>,
    rows: readonly Row[],
    outboxIds: readonly string[],
  ): Promise<Appended> {
    const refusal = (outboxIds.length === 0 ? this.refusalOfRows(kind, rows) : undefined) ?? this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const first = block.rows
    block.add(rows, outboxIds)
    return this.commits.committed(kind, first, rows.length)
  }

  private refusalOf({ workspaceId, runId }: RunIdentity): ApiError | undefined {
    if (this.refused.has(workspaceId)) return noWorkspace()
    return this.refusedRuns.size > 0 && this.refusedRuns.has(runKey(workspaceId, runId)) ? notFound('run') : undefined
  }

  private refusalOfAny<T>(items: readonly T[], runOf: (item: T) => RunIdentity): ApiError | undefined {
    if (this.refused.size === 0 && this.refusedRuns.size === 0) return undefined
    for (const item of items) {
      const refusal = this.refusalOf(runOf(item))
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  private refusalOfScores(batch: ScoreBatch): ApiError | undefined {
    if (this.refusedScores.size === 0) return undefined
    const refused = batch.runs.map(({ workspaceId, runId }) => this.refusedScores.get(runKey(workspaceId, runId)))
    if (refused.every((ids) => ids === undefined)) return undefined
    for (const row of batch.rows) {
      const ids = refused[batch.scores.cells[row * SCORE_CELLS.count + SCORE_CELLS.run]!]
      if (ids?.has(scoreIdOf(batch, row) ?? '')) return scoreErased()
    }
    return undefined
  }

  /** Rows that are not from the outbox. Deliveries of a deleted run say what was sent, and to whom: they stay. */
  private refusalOfRows(kind: Frame['kind'], rows: readonly (RunRow | TaskToAppend | DeliveryRow)[]) {
    return this.refusalOfAny(rows, (row) => ({
      workspaceId: row.workspace_id,
      runId: kind === 'task' ? row.run_id! : NIL_UUID,
    }))
  }

  private refusal(): ApiError | undefined {
    if (this.closed) return shuttingDown()
    if (this.commits.pending.bytes > PENDING_BYTES_MAX) {
      return new ApiError('UNAVAILABLE', 'the journal does not keep up; try again', { retryAfterSeconds: 1 })
    }
    const { maxBytes } = this.options
    if (this.storage.bytes > maxBytes && this.backlogBytes > maxBytes) return journalFull()
    return this.storage.refusal()
  }
}

/** The consumer that loads rows into ClickHouse. */
export const SINK = 'sink'

/** The position that a consumer has released. */
interface Released {
  readonly seq: number
  /** When it last released a position, on the monotonic clock. */
  readonly atMs: number
}

/** The slowest consumer of a journal without consumers. */
const NO_CONSUMER: Released = { seq: Number.POSITIVE_INFINITY, atMs: 0 }

/** The registered consumers of a journal. Rows that the slowest has not released must be kept. */
export class Consumers {
  private readonly released = new Map<string, Released>()

  /** Registers a consumer with its first call. */
  release(consumer: string, seq: number): void {
    this.released.set(consumer, { seq, atMs: performance.now() })
  }

  /** The position that a consumer has released; 0 for one that is not registered. */
  seqOf(consumer: string): number {
    return this.released.get(consumer)?.seq ?? 0
  }

  /** How many consumers are registered. */
  get count(): number {
    return this.released.size
  }

  /** The release of the consumer that is furthest behind. */
  get slowest(): Released {
    let slowest = NO_CONSUMER
    for (const released of this.released.values()) if (released.seq < slowest.seq) slowest = released
    return slowest
  }
}

/** Refuses appends to a workspace that is being erased. */
function noWorkspace(): ApiError {
  return new ApiError('FORBIDDEN', 'no workspace: the workspace of this key is being erased', {
    reason: 'no_workspace',
  })
}
