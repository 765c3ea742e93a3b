import { sleep } from '../../base/abort.ts'
import { assert } from '../../base/assert.ts'
import { stopwatch } from '../../base/clock.ts'
import { Holds } from '../../base/holds.ts'
import type { Log } from '../../base/log.ts'
import { type Loop, Loops } from '../../base/loops.ts'
import { Wakeup } from '../../base/wakeup.ts'
import type { ColumnarClient } from '../clickhouse/client.ts'
import { endOfGap, type Frame, type Journal, lastSeqOf } from '../journal/journal.ts'
import { LOADED_TABLES } from '../journal/kinds.ts'
import type { SinkPositionStore } from './position.ts'

const INTERVAL_MS = 200
/** Loads of all partitions into each table. Every load makes a part, which ClickHouse has to merge. */
const LOADS_PER_SECOND_MAX = 60
/**
 * Of the 10,000 tokens that a table remembers. The others are room for loads with rows that were received on several days,
 * which take a token for each.
 */
const TOKENS_SURE = 7_000
const TOKEN_MS_MAX = 60_000
/** Callers that wait for rows make loads more frequent, up to this. */
const WOKEN_FACTOR = 2
/** Rows are in SQL after some seconds at most, however many partitions there are. */
const INTERVAL_MS_MAX = 2_000
const BATCH_BYTES_MAX = 48 * 1024 * 1024
const BATCH_ROWS_MAX = 500_000
const READ_BYTES = 4 * 1024 * 1024
const RETRY_MS_MIN = 50
/** While a load lasts, the sink makes sure this often that it may still store rows. */
const CONFIRM_MS = 500
/** After this long it does so before it begins another one. */
const CONFIRM_MAX_MS = 5_000
/**
 * After this long it does so before it sends the end of a load, without which nothing is stored. Before it deletes rows it
 * always does so, and again after an answer that took longer: another process may have loaded them.
 */
const CONFIRM_END_MAX_MS = 1_000
const RETRY_MS_MAX = 5_000

/** The minimum time between two loads of a partition, one of `partitions`. */
export function loadIntervalMs(partitions: number): number {
  return Math.min(INTERVAL_MS_MAX, Math.max(INTERVAL_MS, Math.ceil((partitions * 1000) / LOADS_PER_SECOND_MAX)))
}

/**
 * How long ClickHouse surely remembers the token of a load, one of `partitions`, in milliseconds: until the loads of all of
 * them have pushed it out.
 */
export function tokenMs(partitions: number): number {
  return Math.min(TOKEN_MS_MAX, ((TOKENS_SURE / partitions) * loadIntervalMs(partitions)) / WOKEN_FACTOR)
}

export interface SinkOptions {
  readonly journal: Journal
  readonly client: Pick<ColumnarClient, 'insertNative'>
  /**
   * Deletes the journal's rows after `afterSeq` up to `throughSeq` from ClickHouse. Required for {@link Sink.reload}.
   * @param confirm to be called right before each deletion: throws when another process has taken over, whose rows these are
   */
  readonly clear?: (
    afterSeq: number,
    throughSeq: number,
    signal: AbortSignal,
    confirm: () => Promise<void>,
  ) => Promise<void>
  readonly position: SinkPositionStore
  readonly log: Log
  /** Supervises the sink together with other loops. */
  readonly loops?: Loops
  /** Called after each loaded batch. */
  readonly onLoaded?: (rows: number, milliseconds: number) => void
  /** Minimum time between two loads, so that a slow stream does not create a part per row. */
  readonly intervalMs?: number
  /** See {@link tokenMs}. Undefined when no other process loads: then ClickHouse forgets no token of an unfinished batch. */
  readonly tokenMs?: number | undefined
}

/** A batch on its way into ClickHouse. */
interface Load {
  readonly batch: readonly Frame[]
  readonly token: string
  /** The tables that it was sent to. */
  readonly sent: Set<string>
  /**
   * The tables that have it. They are skipped: while one table refuses its rows, the sinks of other partitions go on, and
   * the tokens of a table are remembered for a limited number of loads.
   */
  readonly stored: Set<string>
}

/** How far ClickHouse has been loaded, for its readers. */
export interface LoadProgress {
  readonly epoch: string
  /** Every row up to this position is in ClickHouse. */
  loadedSeq(): number
  /** Waits until the row at `seq` is in ClickHouse. False after `timeoutMs`. */
  waitFor(seq: number, timeoutMs: number): Promise<boolean>
  /** Waits until ClickHouse has every row that was acknowledged before the call. False after `timeoutMs`. */
  waitForAll(timeoutMs: number): Promise<boolean>
}

/**
 * Loads the journal into ClickHouse, exactly once, beginning with the batch that a previous process left unfinished.
 * Before a batch is sent, its bounds are written to stable storage. After a crash the same batch is sent again with the
 * same deduplication token, so it is stored once in any case. While ClickHouse is unavailable the sink retries, and the
 * journal keeps the rows. When the loads of other processes may have pushed the token out of ClickHouse's memory, the batch
 * is loaded under another one, after deleting what exists of it.
 *
 * Nothing in ClickHouse refuses a load of an earlier owner. It does no harm while the token is remembered, since it is of a
 * batch that the next owner loads under the same one. So an owner asks whether it still is one while a load lasts, and right
 * before it sends the load's end. What remains: a process that stops in the microseconds after it has handed over the end,
 * and goes on when the token is forgotten, stores its batch a second time.
 *
 * When ClickHouse has gone back to an earlier state, rows are loaded again, after deleting those that still exist.
 */
export class Sink implements LoadProgress {
  private readonly position: SinkPositionStore
  private readonly stopping = new AbortController()
  private readonly finished: Promise<void>
  private waiters: { seq: number; resolve: () => void }[] = []
  private readonly wakeup = new Wakeup()
  private pendingReload: Reload | undefined
  private readonly holds = new Holds()
  private readonly stopped = Promise.withResolvers<void>()
  /** Aborted when the sink must stop waiting for rows. */
  private waiting = new AbortController()
  /** How long ago the last batch was announced, by whoever announced it first. No table has its token for longer. */
  private announcedAgeMs: () => number
  /** How long ago no other process had taken over the position. */
  private confirmedAgeMs: () => number = never
  private confirming: Promise<void> | undefined

  constructor(private readonly options: SinkOptions) {
    this.position = options.position
    this.announcedAgeMs = () => options.position.announcedAgeMs()
    options.journal.release('sink', this.position.get().loadedSeq)
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
    this.wakeup.wake()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiter = { seq, resolve: () => resolve(true) }
    this.waiters.push(waiter)
    const timer = setTimeout(() => {
      this.waiters = this.waiters.filter((other) => other !== waiter)
      resolve(false)
    }, timeoutMs)
    return promise.finally(() => clearTimeout(timer))
  }

  waitForAll(timeoutMs: number): Promise<boolean> {
    return this.waitFor(this.options.journal.endSeq, timeoutMs)
  }

  /**
   * Deletes the rows after `afterSeq` from ClickHouse and loads them again from the journal, which must still have them.
   * Resolves once the request is durable; rejects if the sink stops first. One call at a time.
   *
   * @param throughSeq rows after this position are not deleted, because the journal does not have them
   */
  reload(afterSeq: number, throughSeq = this.options.journal.endSeq): Promise<void> {
    const stored = Promise.withResolvers<void>()
    if (this.stopping.signal.aborted) stored.reject(this.stopping.signal.reason)
    this.pendingReload = { afterSeq, throughSeq, stored }
    // Keeps the rows in the journal.
    this.options.journal.release('sink', Math.min(afterSeq, this.loadedSeq()))
    this.waiting.abort()
    this.wakeup.wake()
    return stored.promise
  }

  /**
   * Pauses loading until the returned function is called; resolves once no load is running.
   * @throws the reason of `signal`
   */
  hold(signal: AbortSignal): Promise<() => void> {
    const hold = this.holds.request(signal)
    this.waiting.abort()
    this.wakeup.wake()
    return hold
  }

  /** Loads the journal's current rows, for at most `timeoutMs`, then stops. The rest is loaded after the next start. */
  async stop(timeoutMs: number): Promise<void> {
    await this.waitFor(this.options.journal.endSeq, timeoutMs)
    this.stopping.abort()
    this.stopped.resolve()
    this.waiting.abort()
    await this.finished
    this.pendingReload?.stored?.reject(this.stopping.signal.reason)
    await this.position.close()
  }

  private async run(loop: Loop): Promise<void> {
    const { signal } = this.stopping
    const { loadedSeq, inFlightSeq, clearThroughSeq } = this.position.get()
    const isUnfinished = inFlightSeq > loadedSeq && clearThroughSeq === 0
    if (isUnfinished) await this.load(await this.framesUpTo(loadedSeq, inFlightSeq), inFlightSeq, loop, true)
    while (!signal.aborted) {
      this.waiting = new AbortController()
      await this.holds.grant(this.stopped.promise)
      if (this.pendingReload !== undefined) await this.rewind(this.pendingReload)
      if (!(await this.clearAhead(loop))) continue
      const loaded = this.loadedSeq()
      if (loaded >= this.options.journal.endSeq) loop.succeeded()
      await this.options.journal.waitPast(loaded, this.waiting.signal)
      if (signal.aborted) return
      if (this.waiting.signal.aborted) continue
      const started = performance.now()
      const { endSeq } = this.options.journal
      const batch = await this.readBatch(loaded)
      if (batch.length === 0) await this.skipTo(endOfGap(this.options.journal, loaded, endSeq))
      else await this.load(batch, lastSeqOf(batch[batch.length - 1]), loop)
      if (this.pendingReload === undefined) loop.succeeded()
      await this.pause(performance.now() - started)
    }
  }

  /** Waits until the next load may begin: soon, if callers wait for it. @param passedMs since the last one began */
  private async pause(passedMs: number): Promise<void> {
    const { intervalMs = INTERVAL_MS, tokenMs } = this.options
    const { signal } = this.stopping
    const leastMs = tokenMs === undefined ? 0 : intervalMs / WOKEN_FACTOR
    if (passedMs < leastMs) await sleep(leastMs - passedMs, signal)
    const leftMs = intervalMs - Math.max(passedMs, leastMs)
    if (leftMs > 0) await this.wakeup.next(leftMs, signal)
  }

  /** What follows `afterSeq` is deleted, as far as it exists, and loaded again under another token. */
  private async rewind(reload: Reload): Promise<void> {
    const { afterSeq, throughSeq, stored } = reload
    const { reloads, clearThroughSeq } = this.position.get()
    await this.position.set({
      loadedSeq: afterSeq,
      inFlightSeq: afterSeq,
      reloads: reloads + 1,
      clearThroughSeq: Math.max(clearThroughSeq, throughSeq),
    })
    // Another one may have been asked for meanwhile.
    if (this.pendingReload === reload) this.pendingReload = undefined
    stored?.resolve()
  }

  /** Deletes leftovers of an earlier load before a reload. False when the sink was stopped or has to rewind. */
  private async clearAhead(loop: Loop): Promise<boolean> {
    const { loadedSeq, clearThroughSeq } = this.position.get()
    if (clearThroughSeq === 0) return true
    const { clear = async () => {} } = this.options
    const work = (signal: AbortSignal) => clear(loadedSeq, clearThroughSeq, signal, () => this.confirmNow())
    if (!(await this.persist(loop, () => this.whileOwner(work)))) return false
    await this.position.set({ clearThroughSeq: 0, inFlightSeq: loadedSeq })
    return true
  }

  /** Reads the frames of one insert: large enough to keep parts few, small enough for memory and latency. */
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
        // A batch has rows of one epoch only, because its token contains the epoch.
        if (batch.length > 0 && journal.epochAt(frame.firstSeq) !== journal.epochAt(batch[0].firstSeq)) return batch
        // Only the first frame may begin with rows that are loaded.
        const from = batch.length === 0 ? lastSeqOf(frame) : frame.firstSeq
        assert(from > position, 'the journal returns each row once, in order')
        batch.push(frame)
        bytes += frame.block.length
        rows += frame.rows
        position = lastSeqOf(frame)
      }
    }
    return batch
  }

  /** The frames of a batch whose outcome is unknown: the same ones as when it was sent. */
  private async framesUpTo(afterSeq: number, lastSeq: number): Promise<Frame[]> {
    const batch: Frame[] = []
    let position = afterSeq
    while (position < lastSeq) {
      const frames = await this.options.journal.read(position, READ_BYTES)
      batch.push(...frames.filter((frame) => lastSeqOf(frame) <= lastSeq))
      position =
        frames.length > 0 ? lastSeqOf(frames[frames.length - 1]) : endOfGap(this.options.journal, position, lastSeq)
    }
    return batch
  }

  /** Skips positions whose rows the journal lacks; it reports them as a gap. */
  private async skipTo(seq: number): Promise<void> {
    await this.position.set({ loadedSeq: seq, inFlightSeq: seq })
    this.options.journal.release('sink', seq)
    this.resolveWaiters(seq)
  }

  /**
   * Retries until the batch is in ClickHouse or the sink is stopped.
   * @param inFlightSeq the end of the batch: its last row, unless that was damaged after it was first sent
   * @param isUnfinished whether it was announced before, and may have been sent
   */
  private async load(batch: readonly Frame[], inFlightSeq: number, loop: Loop, isUnfinished = false): Promise<void> {
    if (batch.length === 0) return
    const { loadedSeq, reloads } = this.position.get()
    // The token of an insert is made of these: with wrong ones rows would be missing, or stored twice.
    assert(loadedSeq < inFlightSeq, 'a batch comes after what has been loaded')
    assert(inFlightSeq <= this.options.journal.endSeq, 'a batch ends before the journal does')
    const ageMs = stopwatch()
    await this.position.set({ inFlightSeq })
    this.confirmedAgeMs = ageMs
    if (!isUnfinished) this.announcedAgeMs = ageMs
    const epoch = this.options.journal.epochAt(batch[0].firstSeq)
    const token = `${epoch}-${loadedSeq}-${inFlightSeq}${reloads > 0 ? `-r${reloads}` : ''}`
    const sent = new Set(isUnfinished ? LOADED_TABLES.flatMap(([, tables]) => tables) : [])
    const load: Load = { batch, token, sent, stored: new Set() }
    if (!(await this.persist(loop, () => this.insert(load)))) return
    await this.position.set({ loadedSeq: inFlightSeq })
    this.options.journal.release('sink', inFlightSeq)
    this.options.onLoaded?.(
      batch.reduce((sum, frame) => sum + frame.rows, 0),
      ageMs(),
    )
    this.resolveWaiters(inFlightSeq)
  }

  /** Retries until it succeeds. False when the sink was stopped or has to rewind first. */
  private async persist(loop: Loop, work: () => Promise<void>): Promise<boolean> {
    const { signal } = this.stopping
    for (let attempt = 0; !signal.aborted && this.pendingReload === undefined; attempt++) {
      try {
        await work()
        return !signal.aborted
      } catch (error) {
        if (signal.aborted || this.pendingReload !== undefined) return false
        loop.failed(error)
        await this.wakeup.next(Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** attempt), signal)
      }
    }
    return false
  }

  /** Sends a batch to the tables that do not have it. */
  private async insert({ batch, token, sent, stored }: Load): Promise<void> {
    for (const [kind, tables] of LOADED_TABLES) {
      const blocks = batch.filter((frame) => frame.kind === kind).map((frame) => frame.block)
      if (blocks.length === 0) continue
      for (const table of tables.filter((each) => !stored.has(each))) {
        // Before it is sent for the first time, there is nothing that could be stored twice.
        const checkToken = sent.has(table) ? () => this.checkToken() : () => {}
        checkToken()
        await this.whileOwner((signal, confirm) => {
          sent.add(table)
          const beforeEnd = () => confirm().then(checkToken)
          return this.options.client.insertNative(table, blocks, token, signal, beforeEnd)
        })
        stored.add(table)
      }
    }
  }

  /** Makes the sink rewind when ClickHouse may have forgotten the token of a batch. @throws Error then */
  private checkToken(): void {
    const { tokenMs, log } = this.options
    if (tokenMs === undefined || this.announcedAgeMs() <= tokenMs) return
    const { loadedSeq: afterSeq, inFlightSeq: throughSeq } = this.position.get()
    this.pendingReload ??= { afterSeq, throughSeq }
    const message =
      'sink: ClickHouse may have forgotten the token of a batch; it is deleted, as far as it exists, and loaded again'
    log.warn(message, { after_seq: afterSeq, through_seq: throughSeq })
    throw new Error(message)
  }

  /**
   * A process that was paused may wake when another one has loaded its batch long ago, and ClickHouse has forgotten the token:
   * it must not go on with its load. Nor may it delete what another one has loaded.
   */
  private async whileOwner(work: (signal: AbortSignal, confirm: () => Promise<void>) => Promise<void>): Promise<void> {
    const lost = new AbortController()
    const giveUp = (error: unknown) => lost.abort(error)
    await this.confirmWithin(CONFIRM_MAX_MS)
    const timer = setInterval(() => this.confirm().catch(giveUp), CONFIRM_MS)
    const confirm = async () => {
      await this.confirmWithin(CONFIRM_END_MAX_MS).catch(giveUp)
      lost.signal.throwIfAborted()
    }
    try {
      await work(AbortSignal.any([this.stopping.signal, lost.signal]), confirm)
    } finally {
      clearInterval(timer)
      await this.confirming?.catch(() => {})
    }
  }

  private async confirmNow(): Promise<void> {
    await this.confirm()
    await this.confirmWithin(CONFIRM_END_MAX_MS)
  }

  /** Asks unless the last answer is as recent; also again after a pause between a question and its answer. */
  private async confirmWithin(ms: number): Promise<void> {
    while (this.confirmedAgeMs() > ms) await this.confirm()
  }

  /** One question at a time. @throws Error when another process has taken over */
  private confirm(): Promise<void> {
    this.confirming ??= this.ask().finally(() => {
      this.confirming = undefined
    })
    return this.confirming
  }

  private async ask(): Promise<void> {
    const askedAgeMs = stopwatch()
    // Unless this succeeds, no load begins before the next answer.
    this.confirmedAgeMs = never
    await this.position.set({})
    this.confirmedAgeMs = askedAgeMs
  }

  private resolveWaiters(loadedSeq: number): void {
    const ready = this.waiters.filter(({ seq }) => seq <= loadedSeq)
    this.waiters = this.waiters.filter(({ seq }) => seq > loadedSeq)
    for (const { resolve } of ready) resolve()
    // Callers wait for later rows: continue without a pause.
    if (this.waiters.length > 0) this.wakeup.wake()
  }
}

const never = () => Number.POSITIVE_INFINITY

interface Reload {
  readonly afterSeq: number
  readonly throughSeq: number
  readonly stored?: PromiseWithResolvers<void>
}
