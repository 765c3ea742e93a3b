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
import { isPoison, type Sql, type TransactionSql, withoutEffect } from '../../stores/postgres/connect.ts'
import { boundedTokens, roundedUsd, USAGE_COLUMNS } from './rows.ts'
import { LIVE_RUN_STATUSES } from './state.ts'
import { MODEL_CALL, mayReportUsage, UsageReader, type UsageWithCost } from './usage-reader.ts'

interface RunStatisticsDeps {
  readonly sql: Sql
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

/** The name of its position in `journal_consumers`. */
export const CONSUMER = 'run-statistics'
const INTERVAL_MS = 500
/** Frames are read after this time, while they are still in memory; reading them from disk costs far more. */
const GATHER_MS = 50
/** The pause after a write, in multiples of its duration: under load the counts lag instead of taking all the time. */
const PAUSE_PER_WRITE = 4
const READ_BYTES = 4 << 20
const MODEL_CALL_BYTES = new TextEncoder().encode(MODEL_CALL)
const RUNS_PER_WRITE_MAX = 5_000
/** A row in the outbox has the whole run, input included, so live runs get one in intervals, not after each model call. */
const LIVE_USAGE_INTERVAL_MS = 5_000

/**
 * Keeps `event_count`, `last_event_at`, and the usage of external runs: a consumer of the journal that commits its counts
 * together with its position, so each event is counted exactly once, even across crashes. It reads and writes nothing
 * while there are no events.
 */
export async function startRunStatistics(deps: RunStatisticsDeps) {
  const { sql, journal, log, loops = new Loops(log), intervalMs = INTERVAL_MS } = deps
  const prices = deps.prices ?? createPrices()
  let reader: UsageReader | undefined
  const usageReader = async () => (reader ??= new UsageReader(await prices.loaded()))
  const stopping = new AbortController()
  const { signal } = stopping
  let position = await openPosition(sql, journal)
  const wakeup = new Wakeup()
  let flushes: { seq: number; done: PromiseWithResolvers<void> }[] = []
  journal.release(CONSUMER, position)

  let isUnsure = false
  /** Of the positions that are being written. */
  let range: WrittenRange = { epoch: journal.epoch, from: position, to: position }
  const probe = (all: readonly Tally[]) => withoutEffect(sql, (tx) => write(tx, range, all))
  const sieve = new Sieve({ consumer: 'run_statistics', log, counts: deps.setAside, probe, isPoison, describe })

  async function run(loop: Loop): Promise<void> {
    // After a failure it is not known whether the last write was committed.
    if (isUnsure) position = await openPosition(sql, journal)
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
      const { isWritten, hasUsage } = await sieve.run(tallies.all(), (all) => write(sql, range, all))
      if (hasUsage) deps.onUsage?.()
      dueMs = performance.now() + Math.max(intervalMs, PAUSE_PER_WRITE * (performance.now() - started))
      position = isWritten ? seen : await openPosition(sql, journal)
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

/**
 * The position from which counting continues. A new epoch starts at the position of the newest one with a position: not all
 * of its rows may be counted yet, and an owner may have begun an epoch without counting in it.
 */
async function openPosition(sql: Sql, { epoch, epochs }: Journal): Promise<number> {
  await sql`
    insert into journal_consumers (epoch, consumer, seq)
    select ${epoch}, ${CONSUMER}, coalesce(
      (select max(seq) from journal_consumers
        where epoch = any(${epochs.map((each) => each.epoch)}::text[]) and consumer = ${CONSUMER}), 0)
    on conflict (epoch, consumer) do nothing`
  return countedSeq(sql, epoch)
}

/** The position up to which the runs in the database count the events of a journal, as any process can read it. */
export async function countedSeq(sql: Sql, epoch: string): Promise<number> {
  const [row] = await sql<{ seq: number }[]>`
    select seq from journal_consumers where epoch = ${epoch} and consumer = ${CONSUMER}`
  return row?.seq ?? 0
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

/**
 * Adds the tallies to their runs and advances the position from `from` to `to`, atomically. Usage that the end of a run has
 * reported stays as it is, as does that of hosted runs, which store it themselves. Locks the rows in order of workspace and
 * run_id, as every statement on several runs does, to avoid deadlocks.
 *
 * Sums of tokens are computed as decimals and have a bound: a sum that fails would stop the counts of all workspaces.
 *
 * @returns `isWritten` is false if the position was no longer the expected one, because another process that follows the
 *   journal was faster; `hasUsage`: the usage of some run has changed
 */
async function write(sql: Sql | TransactionSql, { epoch, from, to }: WrittenRange, all: readonly Tally[]) {
  const tokens = (column: string) =>
    boundedTokens(`r.${column} + case when i.counts_tokens then i.${column} else 0 end`)
  const [row] = await sql<{ has_usage: boolean }[]>`
    with advanced as (
      update journal_consumers set seq = ${to}
      where epoch = ${epoch} and consumer = ${CONSUMER} and seq = ${from}
      returning seq
    ), item as (
      select * from unnest(
        ${all.map(({ runId }) => runId)}::uuid[], ${all.map(({ workspaceId }) => workspaceId)}::uuid[],
        ${all.map(({ events }) => events)}::bigint[],
        ${all.map(({ lastAt }) => new Date(lastAt).toISOString())}::timestamptz[],
        ${all.map(({ inputTokens }) => inputTokens)}::numeric[], ${all.map(({ outputTokens }) => outputTokens)}::numeric[],
        ${all.map(({ cacheReadTokens }) => cacheReadTokens)}::numeric[],
        ${all.map(({ cacheWriteTokens }) => cacheWriteTokens)}::numeric[],
        ${all.map(({ reasoningTokens }) => reasoningTokens)}::numeric[],
        ${all.map(({ costUsd }) => costUsd)}::double precision[]
      ) as i (run_id, workspace_id, events, last_at, ${sql.unsafe(USAGE_COLUMNS.join(', '))}, cost_usd)
    ), locked as materialized (
      select i.*, r.runtime_type = 'external' and not r.is_usage_reported as counts_tokens,
        r.runtime_type = 'external' and not r.is_cost_reported as counts_cost,
        case when r.status in ${sql(LIVE_RUN_STATUSES)} then ${LIVE_USAGE_INTERVAL_MS / 1_000} else 0 end as due_in
      from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      where exists (select from advanced)
      order by r.workspace_id, r.run_id for no key update of r
    ), counted as (
      update runs r set event_count = r.event_count + i.events, last_event_at = greatest(r.last_event_at, i.last_at),
        ${sql.unsafe(USAGE_COLUMNS.map((name) => `${name} = ${tokens(name)}`).join(', '))},
        cost_usd = ${sql.unsafe(roundedUsd('r.cost_usd + case when i.counts_cost then i.cost_usd else 0 end'))}
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id
    ), changed as (
      insert into run_usage_changes (run_id, workspace_id, due_at)
      select run_id, workspace_id, now() + make_interval(secs => due_in) from locked
      where (counts_tokens and input_tokens + output_tokens > 0) or (counts_cost and cost_usd > 0)
      on conflict (run_id, workspace_id) do update set due_at = least(run_usage_changes.due_at, excluded.due_at)
    )
    select exists (select from locked where input_tokens + output_tokens > 0 or cost_usd > 0) as has_usage from advanced`
  return { isWritten: row !== undefined, hasUsage: row?.has_usage === true }
}

/** The positions whose events are written: after `from`, up to `to`. */
interface WrittenRange {
  readonly epoch: string
  readonly from: number
  readonly to: number
}

/** What is summed up of the usage of model calls. */
type CountedUsage = Omit<UsageWithCost, 'cacheWrite1hTokens' | 'audioInputTokens' | 'audioOutputTokens'>

const NOTHING: CountedUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
}

/** What the events of a run add to its row. */
interface Tally extends RunIdentity, CountedUsage {
  readonly events: number
  /** When the last one was received, Unix milliseconds. */
  readonly lastAt: number
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
