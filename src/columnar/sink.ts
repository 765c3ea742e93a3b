import { join } from 'node:path'
import { type ActivityKind, type Frame, type Journal, lastSeqOf } from '../journal/journal.ts'
import type { Log } from '../log.ts'
import { Holds } from '../ops/holds.ts'
import { type Loop, Loops } from '../ops/supervise.ts'
import { type SinkPosition, SinkPositionFile } from './sink-position.ts'

/** What the sink needs of ClickHouse. */
export interface NativeInserter {
  /**
   * Inserts blocks in `Native` format, all or none; a repeat of the same blocks with the same token changes nothing.
   * Rejects when it is not known to have succeeded.
   */
  insertNative(table: string, blocks: readonly Uint8Array[], token: string, signal: AbortSignal): Promise<void>
}

export interface SinkOptions {
  readonly journal: Journal
  readonly client: NativeInserter
  /** Deletes the journal's rows after `afterSeq` up to `throughSeq` from ClickHouse. Without it nothing is loaded again. */
  readonly clear?: (afterSeq: number, throughSeq: number, signal: AbortSignal) => Promise<void>
  /** Where the sink keeps its position. */
  readonly dir: string
  readonly log: Log
  /** Where the sink is supervised together with others. */
  readonly loops?: Loops
  /** Told of each loaded batch. */
  readonly onLoaded?: (rows: number, milliseconds: number) => void
  /** Shortest time between two loads: a trickle must not become a part a row. */
  readonly intervalMs?: number
}

/** How fresh ClickHouse is, for those who query it. */
export interface SinkProgress {
  readonly epoch: string
  /** Every row up to this position is in ClickHouse. */
  loadedSeq(): number
  /** Waits until the row at `seq` is in ClickHouse. False when that took longer than `timeoutMs`. */
  waitFor(seq: number, timeoutMs: number): Promise<boolean>
}

/**
 * Loads the journal into ClickHouse, exactly once. Before a batch is sent, its bounds are noted on stable storage; after a
 * crash the very same batch is sent again under the same deduplication token, so it lands once whether or not it had
 * landed before. While ClickHouse is away the sink keeps trying, and the journal keeps the rows.
 *
 * When ClickHouse turns out to have less than it had, rows are loaded again: what of them is there is deleted first.
 */
export class Sink implements SinkProgress {
  private readonly stopping = new AbortController()
  private readonly finished: Promise<void>
  private waiters: { seq: number; resolve: () => void }[] = []
  private hurried = Promise.withResolvers<void>()
  private wanted: Reload | undefined
  private readonly holds = new Holds()
  private readonly stopped = Promise.withResolvers<void>()
  /** Aborted when there is something else to do than to wait for rows. */
  private waiting = new AbortController()

  constructor(
    private readonly options: SinkOptions,
    private readonly position: SinkPositionFile,
  ) {
    options.journal.release('sink', position.get().loadedSeq)
    const loops = options.loops ?? new Loops(options.log)
    this.finished = loops.run('sink', this.stopping.signal, (loop) => this.run(loop))
  }

  get epoch(): string {
    return this.options.journal.epoch
  }

  loadedSeq(): number {
    return this.position.get().loadedSeq
  }

  async waitFor(seq: number, timeoutMs: number): Promise<boolean> {
    if (seq <= this.loadedSeq()) return true
    this.hurried.resolve()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiter = { seq, resolve: () => resolve(true) }
    this.waiters.push(waiter)
    const timer = setTimeout(() => {
      this.waiters = this.waiters.filter((other) => other !== waiter)
      resolve(false)
    }, timeoutMs)
    return promise.finally(() => clearTimeout(timer))
  }

  /**
   * Goes back: rows after `afterSeq`, which the journal must still have, are deleted from ClickHouse and loaded again. Resolves
   * once that is certain to happen, whatever dies; rejects when the sink stops before. One call at a time.
   *
   * @param throughSeq what lies past it is not deleted: the journal does not have it
   */
  reload(afterSeq: number, throughSeq = this.options.journal.endSeq): Promise<void> {
    const noted = Promise.withResolvers<void>()
    if (this.stopping.signal.aborted) noted.reject(this.stopping.signal.reason)
    this.wanted = { afterSeq, throughSeq, noted }
    // They must not leave the journal meanwhile.
    this.options.journal.release('sink', Math.min(afterSeq, this.loadedSeq()))
    this.waiting.abort()
    this.hurried.resolve()
    return noted.promise
  }

  /**
   * Keeps the sink from loading until the function it answers is called; resolves once no load is under way.
   * @throws the reason of `signal`
   */
  hold(signal: AbortSignal): Promise<() => void> {
    const hold = this.holds.ask(signal)
    this.waiting.abort()
    this.hurried.resolve()
    return hold
  }

  /** Loads what the journal holds by now, for `timeoutMs` at the most, then stops. The rest is loaded after the next start. */
  async stop(timeoutMs: number): Promise<void> {
    await this.waitFor(this.options.journal.endSeq, timeoutMs)
    this.stopping.abort()
    this.stopped.resolve()
    this.waiting.abort()
    await this.finished
    this.wanted?.noted.reject(this.stopping.signal.reason)
    await this.position.close()
  }

  private async run(loop: Loop): Promise<void> {
    const { signal } = this.stopping
    const { loadedSeq, inFlightSeq, clearThroughSeq } = this.position.get()
    const isUnfinished = inFlightSeq > loadedSeq && clearThroughSeq === 0
    if (isUnfinished) await this.load(await this.framesUpTo(loadedSeq, inFlightSeq), inFlightSeq, loop)
    while (!signal.aborted) {
      this.waiting = new AbortController()
      await this.holds.giveWay(this.stopped.promise)
      if (this.wanted !== undefined) await this.goBack(this.wanted)
      if (!(await this.clearAhead(loop))) continue
      const loaded = this.loadedSeq()
      if (loaded >= this.options.journal.endSeq) loop.succeeded()
      await this.options.journal.waitPast(loaded, this.waiting.signal)
      if (signal.aborted) return
      if (this.waiting.signal.aborted) continue
      const started = performance.now()
      const { endSeq } = this.options.journal
      const batch = await this.readBatch(loaded)
      if (batch.length === 0) await this.skipTo(endSeq)
      else await this.load(batch, lastSeqOf(batch[batch.length - 1]), loop)
      loop.succeeded()
      const rest = (this.options.intervalMs ?? INTERVAL_MS) - (performance.now() - started)
      if (rest > 0) await this.pause(rest)
    }
  }

  private async goBack({ afterSeq, throughSeq, noted }: Reload): Promise<void> {
    const { reloads, clearThroughSeq } = this.position.get()
    await this.position.set({
      loadedSeq: afterSeq,
      inFlightSeq: afterSeq,
      reloads: reloads + 1,
      clearThroughSeq: Math.max(clearThroughSeq, throughSeq),
    })
    this.wanted = undefined
    noted.resolve()
  }

  /** Deletes what a load of before has left of the rows that are to be loaded now. False when there is something else to do. */
  private async clearAhead(loop: Loop): Promise<boolean> {
    const { loadedSeq, clearThroughSeq } = this.position.get()
    if (clearThroughSeq === 0) return true
    const clear = async (signal: AbortSignal) => this.options.clear?.(loadedSeq, clearThroughSeq, signal)
    if (!(await this.persist(loop, clear))) return false
    await this.position.set({ clearThroughSeq: 0, inFlightSeq: loadedSeq })
    return true
  }

  /** As many frames as make one good insert: large enough that parts stay few, small enough for memory and delay. */
  private async readBatch(afterSeq: number): Promise<Frame[]> {
    const batch: Frame[] = []
    let bytes = 0
    let rows = 0
    let position = afterSeq
    const { journal } = this.options
    while (bytes < BATCH_BYTES_MAX && rows < BATCH_ROWS_MAX) {
      const frames = await journal.read(position, Math.min(READ_BYTES, BATCH_BYTES_MAX - bytes))
      if (frames.length === 0) break
      for (const frame of frames) {
        // A batch is of one epoch, which its token names.
        if (batch.length > 0 && journal.epochAt(frame.firstSeq) !== journal.epochAt(batch[0].firstSeq)) return batch
        batch.push(frame)
        bytes += frame.block.length
        rows += frame.rows
        position = lastSeqOf(frame)
      }
    }
    return batch
  }

  /** The frames of a batch whose fate is unknown: the same ones it was made of. */
  private async framesUpTo(afterSeq: number, lastSeq: number): Promise<Frame[]> {
    const batch: Frame[] = []
    let position = afterSeq
    while (position < lastSeq) {
      const frames = await this.options.journal.read(position, READ_BYTES)
      if (frames.length === 0) break
      batch.push(...frames.filter((frame) => lastSeqOf(frame) <= lastSeq))
      position = lastSeqOf(frames[frames.length - 1])
    }
    return batch
  }

  /** Passes over rows that the journal gave a position and lacks: it has said so. */
  private async skipTo(seq: number): Promise<void> {
    await this.position.set({ loadedSeq: seq, inFlightSeq: seq })
    this.options.journal.release('sink', seq)
    this.wake(seq)
  }

  /**
   * Tries until the batch is in ClickHouse or the sink is stopped.
   * @param inFlightSeq the end of the batch: its last row, unless that has been damaged since it was sent first
   */
  private async load(batch: readonly Frame[], inFlightSeq: number, loop: Loop): Promise<void> {
    if (batch.length === 0) return
    const { loadedSeq, reloads } = this.position.get()
    await this.position.set({ inFlightSeq })
    const started = performance.now()
    const epoch = this.options.journal.epochAt(batch[0].firstSeq)
    const token = `${epoch}-${loadedSeq}-${inFlightSeq}${reloads > 0 ? `-r${reloads}` : ''}`
    if (!(await this.persist(loop, () => this.insert(batch, token)))) return
    await this.position.set({ loadedSeq: inFlightSeq })
    this.options.journal.release('sink', inFlightSeq)
    this.options.onLoaded?.(
      batch.reduce((sum, frame) => sum + frame.rows, 0),
      performance.now() - started,
    )
    this.wake(inFlightSeq)
  }

  /** Tries until it works. False when the sink was stopped, or is to go back, before. */
  private async persist(loop: Loop, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const { signal } = this.stopping
    for (let attempt = 0; !signal.aborted && this.wanted === undefined; attempt++) {
      try {
        await work(signal)
        return !signal.aborted
      } catch (error) {
        if (signal.aborted) return false
        loop.failed(error)
        await this.pause(Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** attempt))
      }
    }
    return false
  }

  private async insert(batch: readonly Frame[], token: string): Promise<void> {
    for (const [kind, tables] of TABLES) {
      const blocks = batch.filter((frame) => frame.kind === kind).map((frame) => frame.block)
      if (blocks.length === 0) continue
      for (const table of tables) await this.options.client.insertNative(table, blocks, token, this.stopping.signal)
    }
  }

  private wake(loadedSeq: number): void {
    const ready = this.waiters.filter(({ seq }) => seq <= loadedSeq)
    this.waiters = this.waiters.filter(({ seq }) => seq > loadedSeq)
    for (const { resolve } of ready) resolve()
    // Somebody waits for rows that came later: go on at once.
    if (this.waiters.length > 0) this.hurried.resolve()
  }

  /** A pause that ends early when the sink is stopped or somebody waits for rows. */
  private async pause(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, milliseconds)
    const { signal } = this.stopping
    signal.addEventListener('abort', () => resolve(), { once: true })
    this.hurried.promise.then(resolve)
    await promise
    clearTimeout(timer)
    this.hurried = Promise.withResolvers<void>()
  }
}

interface Reload {
  readonly afterSeq: number
  readonly throughSeq: number
  readonly noted: PromiseWithResolvers<void>
}

/** Starts loading at once, after what a predecessor left unfinished. */
export async function startSink(options: SinkOptions): Promise<Sink> {
  return new Sink(options, await SinkPositionFile.open(positionPath(options.dir)))
}

/** Where the sink of the journal in `dir` has come to, while none runs. */
export function readSinkPosition(dir: string): Promise<SinkPosition> {
  return SinkPositionFile.read(positionPath(dir))
}

function positionPath(dir: string): string {
  return join(dir, 'sink.position')
}

/**
 * Where rows go, in this order: what a run did comes before how it is, so that a run that is seen to be over has all that
 * was reported before. Runs and tasks go into the table of their latest states and into that of all changes.
 */
const TABLES: readonly (readonly [ActivityKind, readonly string[]])[] = [
  ['event', ['events']],
  ['task', ['tasks', 'task_changes']],
  ['run', ['runs', 'run_changes']],
]

const INTERVAL_MS = 200
const BATCH_BYTES_MAX = 48 * 1024 * 1024
const BATCH_ROWS_MAX = 500_000
const READ_BYTES = 4 * 1024 * 1024
const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 5_000
