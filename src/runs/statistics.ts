import { ApiError } from '../http/errors.ts'
import { type RunIdentity, runKey } from '../ids.ts'
import { type Frame, type Journal, lastSeqOf } from '../journal/journal.ts'
import type { Log } from '../log.ts'
import { type Loop, Loops } from '../ops/supervise.ts'
import type { Sql } from '../postgres/connect.ts'

export interface RunStatisticsDeps {
  readonly sql: Sql
  readonly journal: Journal
  readonly log: Log
  /** Supervises the counting. */
  readonly loops?: Loops
  /** Shortest time between two writes, milliseconds. */
  readonly intervalMs?: number
}

export interface RunStatistics {
  /** Resolves once every event now in the journal has been counted. Rejects if the statistics are stopped before. */
  flush(): Promise<void>
  /** Stops after the current write. The rest is counted after the next start. */
  stop(): Promise<void>
  /** Journal rows not yet counted. */
  lag(): number
}

const CONSUMER = 'run-statistics'
const INTERVAL_MS = 500
/** Frames are read after this time, while they are still in memory; reading them from disk costs far more. */
const GATHER_MS = 50
/** Counting uses at most a fifth of the time; under heavy load the counts lag further behind instead. */
const REST_PER_WORK = 4
const READ_BYTES = 4 << 20
const RUNS_PER_WRITE_MAX = 5_000

/**
 * Keeps `event_count` and `last_event_at` of runs: a consumer of the journal that commits its counts together with its
 * position, so each event is counted exactly once, even across crashes. It reads and writes nothing while there are no
 * events.
 */
export async function startRunStatistics(deps: RunStatisticsDeps): Promise<RunStatistics> {
  const { sql, journal, log, loops = new Loops(log), intervalMs = INTERVAL_MS } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  let position = await openPosition(sql, journal)
  let woken = Promise.withResolvers<void>()
  let flushes: { seq: number; done: PromiseWithResolvers<void> }[] = []
  signal.addEventListener('abort', () => woken.resolve())
  journal.release(CONSUMER, position)

  let isUnsure = false

  async function run(loop: Loop): Promise<void> {
    // It is not known whether the failed write was committed.
    if (isUnsure) position = await openPosition(sql, journal)
    isUnsure = true
    /** Events up to here are in `tallies` or written. */
    let seen = position
    let tallies = new Map<string, Tally>()
    let dueMs = 0
    while (!signal.aborted) {
      answerFlushes()
      if (position >= journal.endSeq) loop.succeeded()
      if (seen === position) await journal.waitPast(seen, signal)
      await rest(GATHER_MS)
      if (signal.aborted) break
      seen = await gather(journal, seen, tallies)
      const isDue = performance.now() >= dueMs || flushes.length > 0 || tallies.size >= RUNS_PER_WRITE_MAX
      if (seen === position || !isDue) continue
      const started = performance.now()
      const written = await write(sql, journal.epoch, position, seen, tallies)
      dueMs = performance.now() + Math.max(intervalMs, REST_PER_WORK * (performance.now() - started))
      position = written ? seen : await openPosition(sql, journal)
      journal.release(CONSUMER, position)
      loop.succeeded()
      seen = position
      tallies = new Map()
    }
  }

  function answerFlushes(): void {
    const counted = flushes.filter(({ seq }) => seq <= position)
    flushes = flushes.filter(({ seq }) => seq > position)
    for (const { done } of counted) done.resolve()
  }

  /** Waits for more events, unless a flush is pending. */
  async function rest(milliseconds: number): Promise<void> {
    const timer = setTimeout(() => woken.resolve(), milliseconds)
    if (flushes.length === 0) await woken.promise
    clearTimeout(timer)
    woken = Promise.withResolvers()
  }

  const finished = loops.run('run statistics', signal, run).then(() => {
    for (const { done } of flushes) done.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
  })
  return {
    flush() {
      const seq = journal.endSeq
      if (seq <= position) return Promise.resolve()
      const done = Promise.withResolvers<void>()
      if (signal.aborted) done.reject(new ApiError('UNAVAILABLE', 'the service is shutting down'))
      else flushes.push({ seq, done })
      woken.resolve()
      return done.promise
    },
    async stop() {
      stopping.abort()
      await finished
    },
    lag: () => journal.endSeq - position,
  }
}

/**
 * The position from which counting continues. A new epoch starts at the position of the previous one, whose rows may
 * not all be counted yet.
 */
async function openPosition(sql: Sql, { epoch, epochs }: Journal): Promise<number> {
  await sql`
    insert into journal_consumers (epoch, consumer, seq)
    select ${epoch}, ${CONSUMER}, coalesce(
      (select seq from journal_consumers where epoch = ${epochs.at(-2)?.epoch ?? null} and consumer = ${CONSUMER}), 0)
    on conflict (epoch, consumer) do nothing`
  const [{ seq }] = await sql<{ seq: number }[]>`
    select seq from journal_consumers where epoch = ${epoch} and consumer = ${CONSUMER}`
  return seq
}

interface Tally extends RunIdentity {
  events: number
  /** Unix milliseconds. */
  lastAt: number
}

/** Adds events after `position` to the tallies, up to the size of one write. Returns the new position. */
async function gather(journal: Journal, position: number, tallies: Map<string, Tally>): Promise<number> {
  let seq = position
  while (tallies.size < RUNS_PER_WRITE_MAX) {
    const { endSeq } = journal
    const frames = await journal.read(seq, READ_BYTES)
    // The positions up to `endSeq` are a gap.
    if (frames.length === 0) return Math.max(seq, endSeq)
    for (const frame of frames) tally(tallies, frame)
    seq = lastSeqOf(frames[frames.length - 1])
  }
  return seq
}

function tally(tallies: Map<string, Tally>, { kind, spans, receivedAt }: Frame): void {
  if (kind !== 'event') return
  for (const { runId, workspaceId, rows } of spans) {
    const key = runKey(workspaceId, runId)
    const known = tallies.get(key)
    if (known === undefined) tallies.set(key, { workspaceId, runId, events: rows, lastAt: receivedAt })
    else {
      known.events += rows
      known.lastAt = Math.max(known.lastAt, receivedAt)
    }
  }
}

/**
 * Adds the tallies to their runs and advances the position from `from` to `to`, atomically. Returns false if the position
 * is no longer `from`, because another process that follows the same journal was faster. Locks the rows in order of
 * workspace and run_id, as every statement on several runs does, to avoid deadlocks.
 */
async function write(sql: Sql, epoch: string, from: number, to: number, tallies: Map<string, Tally>): Promise<boolean> {
  const all = [...tallies.values()]
  const rows = await sql`
    with advanced as (
      update journal_consumers set seq = ${to}
      where epoch = ${epoch} and consumer = ${CONSUMER} and seq = ${from}
      returning seq
    ), item as (
      select * from unnest(
        ${all.map(({ runId }) => runId)}::uuid[], ${all.map(({ workspaceId }) => workspaceId)}::uuid[],
        ${all.map(({ events }) => events)}::bigint[],
        ${all.map(({ lastAt }) => new Date(lastAt).toISOString())}::timestamptz[]
      ) as i (run_id, workspace_id, events, last_at)
    ), locked as materialized (
      select i.* from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      where exists (select from advanced)
      order by r.workspace_id, r.run_id for no key update of r
    ), counted as (
      update runs r set event_count = r.event_count + i.events, last_event_at = greatest(r.last_event_at, i.last_at)
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id
    )
    select from advanced`
  return rows.length === 1
}
