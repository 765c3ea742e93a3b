import { assert } from '../../../base/assert.ts'
import type { Clock } from '../../../base/clock.ts'
import { ApiError } from '../../../base/errors.ts'
import { Holds } from '../../../base/holds.ts'
import type { Log } from '../../../base/log.ts'
import { EventBlock } from '../blocks/event-block.ts'
import { RecordBlock } from '../blocks/record-block.ts'
import { ScoreBlock } from '../blocks/score-block.ts'
import type { Appended, Frame } from '../journal.ts'
import { COMMIT_ORDER, type RowKind } from '../kinds.ts'
import { type AppendPoint, type FrameDraft, frameBytes, writeFrame } from './frame.ts'
import type { BufferPool, Commit, LogStorage } from './storage.ts'

const EARLY_COMMIT_BYTES = 256 * 1024
/** After a commit that served this many calls, the next one gathers more. */
const BUSY_CALLS = 8
/** Gathering ends after this many ticks without a call, after this time, or at this size. */
const IDLE_TICKS_MAX = 3
const GATHER_MS_MAX = 1
const GATHER_BYTES_MAX = 32 * 1024
/** When the last commit is further ahead of the clock than this, the clock was wrong then. */
const AHEAD_MAX_MS = 60_000

export interface GroupCommitOptions {
  readonly storage: LogStorage
  readonly clock: Clock
  /** A time, Unix milliseconds: when the clock is before it, the clock is wrong. */
  readonly earliest?: () => number
  readonly log: Log
  /** Called with the duration and the size of each write. */
  readonly onCommit?: (milliseconds: number, bytes: number) => void
}

/** The journal whose rows are committed. */
interface Committed {
  readonly epoch: string
  readonly endSeq: number
  /** How long to wait before the next commit, in milliseconds. */
  pauseMs(): number
  /** Makes a durable commit visible to consumers, before its calls resolve. */
  publish(commit: Commit): void
}

/** Group commit: one write serves all waiting appends. */
export class GroupCommit {
  /** Rows waiting for the next commit. Each call adds rows here, then calls {@link committed}. */
  readonly pending = new PendingRows()
  private waiting: Waiter[] = []
  /** How many calls the last commit served. */
  private lastCalls = 0
  private committing: Promise<void> | undefined
  /** Starts the scheduled commits; undefined once they have started. */
  private startCommits: (() => void) | undefined
  private cuts: PromiseWithResolvers<number>[] = []
  private readonly holds = new Holds()
  private isBehind = false

  /** @param receivedAt the time of the log's last commit, Unix milliseconds */
  constructor(
    private readonly journal: Committed,
    private receivedAt: number,
    private readonly options: GroupCommitOptions,
  ) {}

  /**
   * Resolves once the rows of a call are durable.
   * @param first index of its first row among the pending rows of its kind
   */
  committed(kind: Frame['kind'], first: number, rows: number): Promise<Appended> {
    const { promise, resolve, reject } = Promise.withResolvers<Appended>()
    this.waiting.push({ kind, first, rows, resolve, reject })
    if (this.committing === undefined) this.schedule()
    // A large commit starts immediately, so that the storage works while the rest of this tick's requests are read.
    if (this.startCommits !== undefined && this.pending.bytes > EARLY_COMMIT_BYTES) this.startCommits()
    return promise
  }

  /** Ends the storage's current unit after everything added so far. Returns the position of the last row before the end. */
  cut(): Promise<number> {
    const cut = Promise.withResolvers<number>()
    this.cuts.push(cut)
    if (this.committing === undefined) this.schedule()
    return cut.promise
  }

  /**
   * Pauses commits until the returned function is called; resolves once none is running. No later commit has an earlier
   * time than that.
   */
  async hold(): Promise<() => void> {
    const hold = this.holds.request()
    if (this.committing === undefined) this.schedule()
    const release = await hold
    this.advance()
    return release
  }

  /** Resolves once nothing waits for a commit. */
  async drained(): Promise<void> {
    while (this.committing !== undefined) await this.committing
  }

  /** Commits after this tick's other requests have been read, so that they share the write. */
  private schedule(): void {
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
      const pauseMs = this.journal.pauseMs()
      if (pauseMs > 0) await Bun.sleep(pauseMs)
      if (this.waiting.length > 0) await this.commit()
      if (cuts.length > 0) await this.serve(cuts)
      await this.gather()
    }
    this.committing = undefined
  }

  /**
   * Waits a tick for requests that have arrived meanwhile, for fewer, larger commits. While many small calls arrive,
   * waits for more, because a commit takes as much of the main thread's time as three to five calls.
   */
  private async gather(): Promise<void> {
    const isBusy = this.lastCalls >= BUSY_CALLS
    if (!isBusy && this.waiting.length === 0) return
    const untilMs = performance.now() + GATHER_MS_MAX
    let idleTicks = 0
    do {
      const before = this.waiting.length
      await new Promise((resolve) => setImmediate(resolve))
      idleTicks = this.waiting.length > before ? 0 : idleTicks + 1
    } while (isBusy && idleTicks < IDLE_TICKS_MAX && this.isSmall && performance.now() < untilMs)
  }

  /** Serves cuts that were requested before the last commit began. */
  private async serve(cuts: readonly PromiseWithResolvers<number>[]): Promise<void> {
    const { endSeq } = this.journal
    try {
      await this.options.storage.begin(endSeq + 1)
      for (const cut of cuts) cut.resolve(endSeq)
    } catch (cause) {
      for (const cut of cuts) cut.reject(refusalOf(cause))
    }
  }

  /** Writes everything collected so far. */
  private async commit(): Promise<void> {
    const { journal, pending } = this
    const { storage, onCommit } = this.options
    const receivedAt = this.advance()
    const firstSeq = journal.endSeq + 1
    let waiting: readonly Waiter[] = []
    let { bytes } = pending
    try {
      const point = storage.appendPoint(firstSeq, receivedAt)
      const known = point instanceof Promise ? await point : point
      waiting = this.takeWaiting()
      const commit = pending.build(firstSeq, receivedAt, journal.epoch, known, storage.pool)
      bytes = commit.buffer.length
      assert(firstSeq === journal.endSeq + 1, 'a commit continues where the log ends')
      const acknowledged = waiting.reduce((sum, { rows }) => sum + rows, 0)
      assert(firstSeq + acknowledged === commit.endSeq + 1, 'every row of a commit belongs to a call that waits for it')
      const started = performance.now()
      await storage.write(commit, receivedAt)
      onCommit?.(performance.now() - started, bytes)
      journal.publish(commit)
      for (const { kind, first, rows, resolve } of waiting) {
        resolve({ firstSeq: commit.first[kind] + first, lastSeq: commit.first[kind] + first + rows - 1 })
      }
    } catch (error) {
      // The commit failed before it was built: refuse its rows as well, none is written.
      if (waiting.length === 0) {
        waiting = this.takeWaiting()
        pending.clear()
      }
      this.refuse(waiting, bytes, error)
    }
  }

  /**
   * The time of a commit, Unix milliseconds: never before that of the last one, although clocks go back a little and owners'
   * clocks differ. So the rows that were received up to a time in the past stay the same. If the last one is more than a
   * minute ahead, the clock was wrong then: new rows get the time of the clock, because whoever looks at what was received
   * of late, such as alerts, would see nothing until it has passed the wrong time. Unless it is the clock that is wrong now:
   * rows with a time of long ago would expire at once.
   */
  private advance(): number {
    const { clock, earliest, log } = this.options
    const now = clock.now()
    const earliestMs = Math.floor(earliest?.() ?? 0)
    const aheadMs = this.receivedAt - now
    const isBehind = now < earliestMs
    const wasAhead = aheadMs > AHEAD_MAX_MS && !isBehind
    if (wasAhead)
      log.warn('journal: the clock was ahead at the last commit; new rows get its time of now', { ahead_ms: aheadMs })
    if (isBehind && !this.isBehind)
      log.warn('journal: the system clock is far behind; new rows do not get its time', { behind_ms: earliestMs - now })
    this.isBehind = isBehind
    this.receivedAt = wasAhead ? now : Math.max(this.receivedAt, now, earliestMs)
    return this.receivedAt
  }

  private get isSmall(): boolean {
    return this.pending.bytes < GATHER_BYTES_MAX
  }

  private takeWaiting(): Waiter[] {
    const { waiting } = this
    this.waiting = []
    this.lastCalls = waiting.length
    return waiting
  }

  private refuse(waiting: readonly Waiter[], bytes: number, error: unknown): void {
    this.options.storage.failed(bytes)
    this.options.log.error('journal: a write failed; its calls are refused', { error })
    const refusal = refusalOf(error)
    for (const waiter of waiting) waiter.reject(refusal)
  }
}

function refusalOf(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause
  return new ApiError('UNAVAILABLE', 'the journal cannot be written; try again', { cause })
}

interface Waiter {
  readonly kind: Frame['kind']
  /** Index of the call's first row among the rows of its kind in this commit. */
  readonly first: number
  readonly rows: number
  readonly resolve: (appended: Appended) => void
  readonly reject: (error: ApiError) => void
}

/** Rows waiting for the next commit. */
export class PendingRows {
  readonly events = new EventBlock()
  readonly runs = RecordBlock.ofRuns()
  readonly tasks = RecordBlock.ofTasks()
  readonly scores = new ScoreBlock()
  readonly deliveries = RecordBlock.ofDeliveries()

  private readonly blocksOf = {
    run: this.runs,
    task: this.tasks,
    event: this.events,
    score: this.scores,
    delivery: this.deliveries,
  } satisfies Record<RowKind, { readonly rows: number }>
  /** In the order of a commit. */
  private readonly blocks = COMMIT_ORDER.map((kind) => ({ kind, block: this.blocksOf[kind] }))

  get bytes(): number {
    return this.blocks.reduce((sum, { block }) => sum + block.bytes, 0)
  }

  /**
   * Lays out the collected rows and empties the collection, also when it throws: rows whose calls are refused must not be
   * part of the next commit. Records precede events: a run's start precedes its events.
   */
  build(firstSeq: number, receivedAt: number, epoch: string, point: AppendPoint, pool: BufferPool): Commit {
    try {
      return this.layOut(firstSeq, receivedAt, epoch, point, pool)
    } finally {
      this.clear()
    }
  }

  private layOut(firstSeq: number, receivedAt: number, epoch: string, point: AppendPoint, pool: BufferPool): Commit {
    let endSeq = firstSeq - 1
    const firsts = this.blocks.map(({ kind, block }) => {
      const first = endSeq + 1
      endSeq += block.rows
      return [kind, first] as const
    })
    const first = Object.fromEntries(firsts) as Record<RowKind, number>
    const drafts = this.drafts(first, receivedAt, epoch)
    const used = drafts.reduce((sum, { draft }) => sum + frameBytes(draft), 0)
    const buffer = pool.take(used)
    drafts[drafts.length - 1].draft.padding = buffer.length - used
    const frames: Frame[] = []
    let at = 0
    let nextSeq = firstSeq
    let { before: check } = point
    for (const { draft, pieces } of drafts) {
      const { kind, rows, runs } = draft
      assert(draft.firstSeq === nextSeq, 'the frames of a commit are consecutive')
      nextSeq += rows
      const written = writeFrame(buffer, at, draft, pieces, { seal: point.seal, at: point.at + at, before: check })
      frames.push({ kind, firstSeq: draft.firstSeq, rows, receivedAt, runs, block: written.block })
      check = written.check
      at += frameBytes(draft)
    }
    assert(nextSeq === endSeq + 1, 'a commit ends with its last frame')
    const outboxIds = new Map(drafts.map(({ draft }) => [draft.kind, draft.outboxIds]))
    return { buffer, frames, check, first, endSeq, outboxIds }
  }

  /** Empties the collection. */
  clear(): void {
    for (const { block } of this.blocks) block.clear()
  }

  private drafts(first: Record<Frame['kind'], number>, receivedAt: number, epoch: string) {
    return this.blocks
      .filter(({ block }) => block.rows > 0)
      .map(({ block, kind }) => {
        const pieces = block.build(first[kind], receivedAt, epoch)
        const draft: FrameDraft = {
          kind,
          firstSeq: first[kind],
          rows: block.rows,
          receivedAt,
          runs: block.runs,
          outboxIds: [...block.outboxIds],
          blockBytes: pieces.reduce((sum, piece) => sum + piece.length, 0),
          padding: 0,
        }
        return { draft, pieces }
      })
  }
}
