import { createPrices, type PricesOnDemand } from '../../base/conventions/prices.ts'
import { ApiError } from '../../base/errors.ts'
import { SharedSlice } from '../../base/http/shared-slice.ts'
import { type RunIdentity, runKey } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type Loop, Loops } from '../../base/loops.ts'
import { type SetAside, Sieve } from '../../base/set-aside.ts'
import { Wakeup } from '../../base/wakeup.ts'
import { eventsOfType } from '../../stores/clickhouse/native-reader.ts'
import { endOfGap, type Frame, type Journal, lastSeqOf } from '../../stores/journal/journal.ts'
import { isPoison } from '../../stores/postgres/connect.ts'
import { CONSUMER, type CountedUsage, type RunCounts, type Tally, type WrittenRange } from './counts.ts'
import { MODEL_CALL, mayReportUsage, UsageReader } from './usage-reader.ts'

interface RunStatisticsDeps {
  readonly counts: Pick<RunCounts, keyof RunCounts>
  readonly journal: Journal
  readonly log: Log
  /** Supervises the counting. */
  readonly loops?: Loops
  /** For model calls that do not report their cost. */
  readonly prices?: PricesOnDemand
  /** Counts the runs that cannot be counted. */
  readonly setAside?: SetAside
  /** Called after each commit that wrote to `run_usage_changes`. */
  readonly onUsage?: () => void
  /** Shortest time between two writes, milliseconds. */
  readonly intervalMs?: number
}

const INTERVAL_MS = 500
/** Frames are read after this time, while they are still in memory; reading them from disk costs far more. */
const GATHER_MS = 50
/** The pause after a write, in multiples of its duration: under load the counts lag instead of taking all the time. */
const PAUSE_PER_WRITE = 4
const READ_BYTES = 4 << 20
const MODEL_CALL_BYTES = new TextEncoder().encode(MODEL_CALL)
const RUNS_PER_WRITE_MAX = 5_000

/**
 * Keeps `event_count`, `last_event_at`, and the usage of external runs: a consumer of the journal that commits its counts
 * together with its position, so each event is counted exactly once, even across crashes. It reads and writes nothing
 * while there are no events.
 */
export async function startRunStatistics(deps: RunStatisticsDeps) {
  const { counts, journal, log, loops = new Loops(log), intervalMs = INTERVAL_MS } = deps
  const prices = deps.prices ?? createPrices()
  let reader: UsageReader | undefined
  const usageReader = async () => (reader ??= new UsageReader(await prices.loaded()))
  const stopping = new AbortController()
  const { signal } = stopping
  let position = await counts.position(journal)
  const wakeup = new Wakeup()
  let flushes: { seq: number; done: PromiseWithResolvers<void> }[] = []
  journal.release(CONSUMER, position)

  let isUnsure = false
  /** Of the positions that are being written. */
  let range: WrittenRange = { epoch: journal.epoch, from: position, to: position }
  const probe = (all: readonly Tally[]) => counts.probe(range, all)
  const sieve = new Sieve({ consumer: 'run_statistics', log, counts: deps.setAside, probe, isPoison, describe })

  async function run(loop: Loop): Promise<void> {
    // After a failure it is not known whether the last write was committed.
    if (isUnsure) position = await counts.position(journal)
    isUnsure = true
    /** Events up to here are in `tallies` or written. */
    let seen = position
    let tallies = new Tallies(usageReader)
    let dueMs = 0
    while (!signal.aborted) {
      answerFlushes()
      if (position >= journal.endSeq) loop.succeeded()
      if (seen === position) await journal.waitPast(seen, signal)
      // Gathers more events, unless a flush is pending.
      if (flushes.length === 0) await wakeup.next(GATHER_MS, signal)
      if (signal.aborted) break
      seen = await gather(journal, seen, tallies)
      const isDue = performance.now() >= dueMs || flushes.length > 0 || tallies.size >= RUNS_PER_WRITE_MAX
      if (seen === position || !isDue) continue
      const started = performance.now()
      range = { epoch: journal.epoch, from: position, to: seen }
      const { isWritten, hasUsage } = await sieve.run(tallies.all(), (all) => counts.write(range, all))
      if (hasUsage) deps.onUsage?.()
      dueMs = performance.now() + Math.max(intervalMs, PAUSE_PER_WRITE * (performance.now() - started))
      position = isWritten ? seen : await counts.position(journal)
      journal.release(CONSUMER, position)
      loop.succeeded()
      seen = position
      tallies = new Tallies(usageReader)
    }
  }

  function answerFlushes(): void {
    const counted = flushes.filter(({ seq }) => seq <= position)
    flushes = flushes.filter(({ seq }) => seq > position)
    for (const { done } of counted) done.resolve()
  }

  const finished = loops.run('run statistics', signal, run).then(() => {
    for (const { done } of flushes) done.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
  })
  return {
    /** Resolves once every event now in the journal has been counted. Rejects if the statistics are stopped before. */
    flush(): Promise<void> {
      const seq = journal.endSeq
      if (seq <= position) return Promise.resolve()
      const done = Promise.withResolvers<void>()
      if (signal.aborted) done.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
      else flushes.push({ seq, done })
      wakeup.wake()
      return done.promise
    },
    /** Stops after the current write. The rest is counted after the next start. */
    async stop() {
      stopping.abort()
      await finished
    },
    /** Journal rows not yet counted. */
    lag: () => journal.endSeq - position,
  }
}

/** Adds events after `position` to the tallies, up to the size of one write. Returns the new position. */
async function gather(journal: Journal, position: number, tallies: Tallies): Promise<number> {
  let seq = position
  while (tallies.size < RUNS_PER_WRITE_MAX) {
    const { endSeq } = journal
    const frames = await journal.read(seq, READ_BYTES)
    if (frames.length === 0) return endOfGap(journal, seq, endSeq)
    for (const frame of frames) await tallies.add(frame)
    seq = lastSeqOf(frames[frames.length - 1])
  }
  return seq
}

const NOTHING: CountedUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
}

/** What the log says of a run whose counts are skipped. */
function describe({ workspaceId, runId, events }: Tally) {
  return { workspace_id: workspaceId, run_id: runId, events }
}

/** Sums up the events of a range of the journal for each run. */
class Tallies {
  private readonly slice = new SharedSlice().of('run statistics')
  private readonly byRun = new Map<string, { -readonly [field in keyof Tally]: Tally[field] }>()

  /** @param reader is asked for when the first model call may have to be read */
  constructor(private readonly reader: () => Promise<UsageReader>) {}

  /** Number of runs. */
  get size(): number {
    return this.byRun.size
  }

  all(): readonly Tally[] {
    return [...this.byRun.values()]
  }

  async add({ kind, runs, block, receivedAt }: Frame): Promise<void> {
    if (kind !== 'event') return
    const tallies = runs.map(({ runId, workspaceId, rows }) => {
      const tally = this.of({ runId, workspaceId })
      tally.events += rows
      tally.lastAt = Math.max(tally.lastAt, receivedAt)
      return tally
    })
    let run = 0
    let runEnd = runs.length === 0 ? 0 : runs[0].rows
    const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength)
    if (!mayReportUsage(bytes)) return
    const reader = await this.reader()
    for (const { row, start, occurredAt } of eventsOfType(bytes, MODEL_CALL_BYTES)) {
      // Each may have a model whose price has to be looked for.
      if (this.slice.isOver) await this.slice.yield()
      while (row >= runEnd) runEnd += runs[++run].rows
      const usage = reader.read(bytes, start, occurredAt)
      if (usage === null) continue
      const tally = tallies[run]
      tally.inputTokens += usage.inputTokens
      tally.outputTokens += usage.outputTokens
      tally.cacheReadTokens += usage.cacheReadTokens
      tally.cacheWriteTokens += usage.cacheWriteTokens
      tally.reasoningTokens += usage.reasoningTokens
      tally.costUsd += usage.costUsd
    }
  }

  private of({ runId, workspaceId }: RunIdentity) {
    const key = runKey(workspaceId, runId)
    let tally = this.byRun.get(key)
    if (tally === undefined) {
      tally = { workspaceId, runId, events: 0, lastAt: 0, ...NOTHING }
      this.byRun.set(key, tally)
    }
    return tally
  }
}
