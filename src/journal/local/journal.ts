import type { Clock } from '../../clock.ts'
import type { RecordBlock } from '../../columnar/record-block.ts'
import type { EventBatch } from '../../events/batch.ts'
import { ApiError } from '../../http/errors.ts'
import { Holds } from '../../ops/holds.ts'
import { type Appended, type Epoch, type Frame, type Gap, type Journal, lastSeqOf } from '../journal.ts'
import type { RunRow, SystemEventRow, TaskRow } from '../rows.ts'
import type { Consumers } from './consumers.ts'
import { FrameTail } from './frame-tail.ts'
import { PagePool } from './pages.ts'
import { openParts, type Parts, type PartsOptions } from './parts.ts'
import { type Commit, PendingRows } from './pending.ts'
import { noWorkspace, shuttingDown } from './refusals.ts'
import { dayOf, type Segments } from './segments.ts'
import { WriteProbe } from './write-probe.ts'

const SEGMENT_BYTES = 32 * 1024 * 1024
const TAIL_BYTES = 48 * 1024 * 1024
/** Rows waiting for the disk. Beyond this the disk is too slow and calls are refused. */
const PENDING_BYTES_MAX = 256 * 1024 * 1024
const EARLY_COMMIT_BYTES = 256 * 1024
/** About two million events, which ClickHouse loads in a few seconds. */
const PACE_BYTES = 512 * 1024 * 1024
const PACED_WITHIN_MS = 5_000
const REST_MS_MAX = 100
/** For example, a backlog 10% above the limit delays each commit by 20 ms. */
const REST_MS_PER_PACE = 200
const FOLLOW_BYTES = 4 * 1024 * 1024

export interface LocalJournalOptions extends Omit<PartsOptions, 'segmentBytes'> {
  /** Appends are refused while more than this is not yet consumed. */
  readonly maxBytes: number
  /** How much consumed data is kept, for feeds that resume. */
  readonly keepBytes: number
  /** Commits slow down while active consumers lag by more than this. */
  readonly paceBytes?: number
  /** See {@link PartsOptions}. */
  readonly segmentBytes?: number
  /** How much of the newest data stays in memory for consumers. */
  readonly tailBytes?: number
  readonly clock: Clock
  /** Called with the duration of each disk write, in milliseconds. */
  readonly onCommit?: (milliseconds: number, bytes: number) => void
}

/** Opens the journal in `dir`, creating it on first use. Only one process at a time may open it. */
export async function openLocalJournal(options: LocalJournalOptions): Promise<LocalJournal> {
  const { parts, endSeq } = await openParts({ segmentBytes: SEGMENT_BYTES, ...options })
  return new LocalJournal(options, parts, endSeq)
}

/** A journal in local segment files with group commit: one disk write serves all waiting appends. */
export class LocalJournal implements Journal {
  private readonly pending = new PendingRows()
  private waiting: Waiter[] = []
  private committing: Promise<void> | undefined
  /** Starts the scheduled commits; undefined once they have started. */
  private startCommits: (() => void) | undefined
  private closed = false
  /** Outbox ids of the newest frame of each kind. */
  private readonly outboxIds = new Map<Frame['kind'], readonly string[]>()
  private readonly tail: FrameTail
  private readonly segments: Segments
  private readonly consumers: Consumers
  private readonly probe: WriteProbe
  private readonly pool = new PagePool()
  /** Workspaces whose events are refused. */
  private readonly refused = new Set<string>()
  private cuts: PromiseWithResolvers<number>[] = []
  private readonly holds = new Holds()
  readonly epoch: string
  /** The position of this epoch's first row. */
  private readonly epochSeq: number

  constructor(
    private readonly options: LocalJournalOptions,
    private readonly parts: Parts,
    private durableSeq: number,
  ) {
    const { segments, consumers, identity } = parts
    this.segments = segments
    this.consumers = consumers
    this.epoch = identity.epoch
    this.epochSeq = identity.epochs[identity.epochs.length - 1].firstSeq
    this.probe = new WriteProbe(options.dir)
    this.tail = new FrameTail(segments, options.tailBytes ?? TAIL_BYTES, (memory, lastSeq) =>
      this.reuse(memory, lastSeq),
    )
    for (const { kind, outboxIds } of segments.recovered) if (outboxIds.length > 0) this.outboxIds.set(kind, outboxIds)
    segments.recovered.length = 0
  }

  get endSeq(): number {
    return this.durableSeq
  }

  get startSeq(): number {
    return Math.max(this.epochSeq, this.filesStartSeq)
  }

  get epochs(): readonly Epoch[] {
    return this.parts.identity.epochs
  }

  get gaps(): readonly Gap[] {
    return this.parts.gaps.all
  }

  epochAt(seq: number): string {
    return this.parts.identity.epochAt(seq)
  }

  check(): Promise<void> {
    const refusal = this.refusal()
    return refusal === undefined ? this.probe.check() : Promise.reject(refusal)
  }

  private get filesStartSeq(): number {
    return this.segments.all[0]?.firstSeq ?? this.durableSeq + 1
  }

  /** Bytes on disk. */
  get bytes(): number {
    return this.segments.bytes
  }

  lastOutboxIds(): readonly string[] {
    return [...this.outboxIds.values()].flat()
  }

  appendEvents(batch: EventBatch): Promise<Appended> {
    const refusal = this.refused.has(batch.run.workspaceId) ? noWorkspace() : this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const { events } = this.pending
    const first = events.rows
    events.add(batch, this.options.clock.now())
    return this.committed('event', first, events.rows - first)
  }

  appendRuns(rows: readonly RunRow[], outboxIds: readonly string[]): Promise<Appended> {
    return this.appendRecords('run', this.pending.runs, rows, outboxIds)
  }

  appendTasks(rows: readonly TaskRow[], outboxIds: readonly string[]): Promise<Appended> {
    return this.appendRecords('task', this.pending.tasks, rows, outboxIds)
  }

  appendSystemEvents(rows: readonly SystemEventRow[], outboxIds: readonly string[]): Promise<Appended> {
    const refusal = this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const { events } = this.pending
    const first = events.rows
    events.addSystemEvents(rows, outboxIds)
    return this.committed('event', first, rows.length)
  }

  read(afterSeq: number, maxBytes: number): Promise<Frame[]> {
    return this.tail.read(afterSeq, maxBytes)
  }

  recent(afterSeq: number, maxBytes: number): Frame[] | null {
    return afterSeq >= this.durableSeq ? [] : this.tail.recent(afterSeq, maxBytes)
  }

  waitPast(seq: number, signal: AbortSignal): Promise<void> {
    if (this.durableSeq > seq || this.closed || signal.aborted) return Promise.resolve()
    return this.tail.next(signal)
  }

  async *follow(afterSeq: number, signal: AbortSignal): AsyncGenerator<Frame> {
    let position = afterSeq
    while (!signal.aborted) {
      const frames = await this.read(position, FOLLOW_BYTES)
      for (const frame of frames) {
        if (signal.aborted) return
        yield frame
        position = lastSeqOf(frame)
      }
      if (frames.length > 0) continue
      if (this.closed) return
      await this.waitPast(position, signal)
    }
  }

  release(consumer: string, seq: number): void {
    this.consumers.release(consumer, seq)
    const needed = this.consumers.slowest.seq
    for (;;) {
      const [oldest, next] = this.segments.all
      if (next === undefined || oldest.lastSeq > needed || this.bytes - oldest.bytes < this.options.keepBytes) return
      this.segments.dropOldest()
    }
  }

  /** Bytes not yet consumed, in whole segments. */
  get backlogBytes(): number {
    const needed = this.consumers.slowest.seq
    let bytes = 0
    for (const segment of this.segments.all) if (segment.lastSeq > needed) bytes += segment.bytes
    return bytes
  }

  refuse(workspaceId: string): void {
    this.refused.add(workspaceId)
  }

  cut(): Promise<number> {
    if (this.closed) return Promise.reject(shuttingDown())
    const cut = Promise.withResolvers<number>()
    this.cuts.push(cut)
    if (this.committing === undefined) this.scheduleCommits()
    return cut.promise
  }

  hold(): Promise<() => void> {
    if (this.closed) return Promise.reject(shuttingDown())
    const hold = this.holds.request()
    if (this.committing === undefined) this.scheduleCommits()
    return hold
  }

  async drop(throughSeq: number): Promise<boolean> {
    const seq = Math.min(throughSeq, this.consumers.slowest.seq)
    this.tail.forget(seq)
    await this.segments.dropThrough(seq)
    return this.filesStartSeq > throughSeq
  }

  async expire(beforeMs: number): Promise<void> {
    const isExpired = ({ day }: { readonly day: number | undefined }) => day !== undefined && day < dayOf(beforeMs)
    const last = this.segments.all.at(-1)
    if (last !== undefined && isExpired(last)) await this.cut()
    const expired = this.segments.all.findLast(isExpired)
    if (expired !== undefined) await this.drop(expired.lastSeq)
  }

  async close(): Promise<void> {
    this.closed = true
    while (this.committing !== undefined) await this.committing
    this.tail.wake()
    await this.segments.close()
    await this.parts.acknowledged.close()
  }

  /** Returns evicted memory to the pool if every registered consumer has released its rows. */
  private reuse(memory: Buffer, lastSeq: number): void {
    if (this.consumers.count > 0 && this.consumers.slowest.seq >= lastSeq) this.pool.give(memory)
  }

  private appendRecords<Row extends RunRow | TaskRow>(
    kind: 'run' | 'task',
    block: RecordBlock<Row>,
    rows: readonly Row[],
    outboxIds: readonly string[],
  ): Promise<Appended> {
    const isRefused = outboxIds.length === 0 && this.refused.has(rows[0].workspace_id)
    const refusal = isRefused ? noWorkspace() : this.refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    const first = block.rows
    block.add(rows, outboxIds)
    return this.committed(kind, first, rows.length)
  }

  private refusal(): ApiError | undefined {
    if (this.closed) return shuttingDown()
    if (this.pending.bytes > PENDING_BYTES_MAX) {
      return new ApiError('UNAVAILABLE', 'the disk does not keep up; try again', { retryAfterSeconds: 1 })
    }
    if (this.segments.bytes > this.options.maxBytes && this.backlogBytes > this.options.maxBytes) {
      return new ApiError('UNAVAILABLE', 'the journal is full because ClickHouse is behind; try again', {
        retryAfterSeconds: 5,
      })
    }
    return undefined
  }

  private committed(kind: Waiter['kind'], first: number, rows: number): Promise<Appended> {
    const { promise, resolve, reject } = Promise.withResolvers<Appended>()
    this.waiting.push({ kind, first, rows, resolve, reject })
    if (this.committing === undefined) this.scheduleCommits()
    // A large commit starts immediately, so that the disk works while the rest of this tick's requests are read.
    if (this.startCommits !== undefined && this.pending.bytes > EARLY_COMMIT_BYTES) this.startCommits()
    return promise
  }

  /** Commits after this tick's other requests have been read, so that they share the write. */
  private scheduleCommits(): void {
    const started = Promise.withResolvers<void>()
    this.committing = started.promise
    this.startCommits = () => {
      this.startCommits = undefined
      started.resolve(this.commitAll())
    }
    setImmediate(() => this.startCommits?.())
  }

  private async commitAll(): Promise<void> {
    while (this.waiting.length > 0 || this.cuts.length > 0 || this.holds.arePending) {
      await this.holds.grant()
      const cuts = this.cuts
      this.cuts = []
      const restMs = this.restMs()
      if (restMs > 0) await Bun.sleep(restMs)
      if (this.waiting.length > 0) await this.commit()
      if (cuts.length > 0) await this.endSegment(cuts)
      // Wait a tick for requests that have arrived meanwhile: fewer, larger commits.
      if (this.waiting.length > 0) await new Promise((resolve) => setImmediate(resolve))
    }
    this.committing = undefined
  }

  /**
   * How long to wait before the next commit. Bursts are accepted at full speed; sustained load is slowed down to the
   * rate of the consumers, so that the backlog stays constant instead of growing until calls are refused. Consumers
   * that make no progress, because their store is unavailable, do not slow down commits.
   */
  private restMs(): number {
    if (performance.now() - this.consumers.slowest.atMs > PACED_WITHIN_MS) return 0
    const over = this.backlogBytes / (this.options.paceBytes ?? PACE_BYTES) - 1
    return over > 0 ? Math.min(REST_MS_MAX, over * REST_MS_PER_PACE) : 0
  }

  /** Serves cuts that were requested before the last commit began. */
  private async endSegment(cuts: readonly PromiseWithResolvers<number>[]): Promise<void> {
    try {
      await this.segments.begin(this.durableSeq + 1)
      for (const cut of cuts) cut.resolve(this.durableSeq)
    } catch (cause) {
      const refusal = new ApiError('UNAVAILABLE', 'the journal cannot create a new file', { cause })
      for (const cut of cuts) cut.reject(refusal)
    }
  }

  /** Writes everything collected so far. */
  private async commit(): Promise<void> {
    const receivedAt = this.options.clock.now()
    let waiting: readonly Waiter[] = []
    let bytes = this.pending.bytes
    try {
      const point = this.segments.appendPoint(this.durableSeq + 1, receivedAt)
      const known = point instanceof Promise ? await point : point
      waiting = this.takeWaiting()
      const commit = this.pending.build(this.durableSeq + 1, receivedAt, this.epoch, known, this.pool)
      bytes = commit.buffer.length
      const started = performance.now()
      await this.segments.write(commit.buffer, commit.endSeq, receivedAt, commit.check)
      this.options.onCommit?.(performance.now() - started, bytes)
      this.acknowledge(commit, waiting)
    } catch (error) {
      // The commit failed before it was built: refuse its rows as well, none is written.
      if (waiting.length === 0) {
        waiting = this.takeWaiting()
        this.pending.clear()
      }
      this.refuseAll(waiting, bytes, error)
    }
  }

  private takeWaiting(): Waiter[] {
    const { waiting } = this
    this.waiting = []
    return waiting
  }

  private acknowledge({ buffer, frames, first, endSeq, outboxIds }: Commit, waiting: readonly Waiter[]): void {
    this.parts.acknowledged.note(endSeq)
    this.probe.succeeded()
    this.durableSeq = endSeq
    for (const [kind, ids] of outboxIds) if (ids.length > 0) this.outboxIds.set(kind, ids)
    this.tail.push(frames, buffer)
    for (const { kind, first: offset, rows, resolve } of waiting) {
      resolve({ firstSeq: first[kind] + offset, lastSeq: first[kind] + offset + rows - 1 })
    }
  }

  private refuseAll(waiting: readonly Waiter[], bytes: number, error: unknown): void {
    this.probe.failed(bytes)
    this.options.log.error('journal: a write failed; its calls are refused', { error })
    const refusal = new ApiError('UNAVAILABLE', 'the journal cannot be written; try again', {
      cause: error,
    })
    for (const waiter of waiting) waiter.reject(refusal)
  }
}

interface Waiter {
  readonly kind: Frame['kind']
  /** Index of the call's first row among the rows of its kind in this commit. */
  readonly first: number
  readonly rows: number
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: ApiError) => void
}
