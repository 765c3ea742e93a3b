import { withTimeout } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { OwnedPartition, Partitions } from '../../tenants/partitions/partition.ts'
import { RUN_ROW_COLUMNS, runsToOutbox } from './rows.ts'
import { LIVE_RUN_STATUSES, RUN_TRANSITIONS } from './state.ts'

interface StaleRunsDeps {
  readonly sql: Sql
  readonly partitions: Pick<Partitions, 'owned'>
  readonly clock: Clock
  readonly log: Log
  /** Supervises the sweep. */
  readonly loops?: Loops
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  /** Time between two sweeps, milliseconds. */
  readonly intervalMs?: number
}

const INTERVAL_MS = 5_000
/** A partition whose events are not counted by then is left to a later sweep. */
const COUNTED_MS = 30_000
const RUNS_PER_STATEMENT = 500

/**
 * Times out runs of external agents that have been silent for longer than their agent's `stale_after_seconds`
 * (docs/agents.md): no event, no task, no change of state.
 *
 * Each process does this for the partitions that it owns, because it knows which of their events are not counted yet.
 * This needs no job queue: it is one guarded UPDATE, any number of processes may run it at any time, and the next sweep
 * makes up for one that failed.
 */
export function startStaleRuns({
  sql,
  partitions,
  clock,
  log,
  loops = new Loops(log),
  onChange,
  intervalMs = INTERVAL_MS,
}: StaleRunsDeps) {
  /** Partitions whose events are being counted. */
  const counting = new WeakSet<OwnedPartition>()

  /** Resolves with the number of runs that it has timed out. No partition waits for another. */
  async function sweep(): Promise<number> {
    const totals = await Promise.all(partitions.owned().map(sweepPartition))
    return totals.reduce((sum, runs) => sum + runs, 0)
  }

  async function sweepPartition(owned: OwnedPartition): Promise<number> {
    const now = clock.now()
    // Events that were acknowledged before `now` but not counted yet must be considered.
    if (!(await isCounted(owned))) return 0
    let total = 0
    for (;;) {
      const runs = await timeOut(sql, now, owned.id)
      total += runs
      if (runs > 0) onChange()
      if (runs < RUNS_PER_STATEMENT) return total
    }
  }

  async function isCounted(owned: OwnedPartition): Promise<boolean> {
    if (counting.has(owned)) return false
    counting.add(owned)
    const flushed = owned.statistics.flush().finally(() => counting.delete(owned))
    return withTimeout(flushed, COUNTED_MS).then(
      () => true,
      () => false,
    )
  }

  const stop = loops.repeat('stale runs', intervalMs, async () => {
    const runs = await sweep()
    if (runs > 0) log.info('stale runs: timed out', { runs })
  })
  return { sweep, stop }
}

/** Skips locked runs: they are being changed, so they are not silent. The next sweep checks them again. */
async function timeOut(sql: Sql, now: number, partition: number): Promise<number> {
  const rows = await sql`
    with silent as materialized (
      select r.workspace_id, r.run_id, a.stale_after_seconds
      from agents a
      join workspaces w on w.workspace_id = a.workspace_id and w.partition = ${partition}
      cross join lateral (
        select ${new Date(now)}::timestamptz - make_interval(secs => a.stale_after_seconds) as silent_since
      ) d
      join runs r on r.agent_id = a.agent_id and r.workspace_id = a.workspace_id
      where a.stale_after_seconds is not null and r.runtime_type = 'external'
        and r.status in ${sql(LIVE_RUN_STATUSES)}
        and greatest(r.created_at, r.started_at, r.last_event_at) < d.silent_since
        and not exists (select 
          from tasks t
          where t.workspace_id = r.workspace_id and t.run_id = r.run_id and t.updated_at >= d.silent_since
        )
      order by r.workspace_id, r.run_id limit ${RUNS_PER_STATEMENT}
      for no key update of r skip locked
    ), changed as (
      update runs r set
        status = 'timed_out', completed_at = greatest(${new Date(now)}::timestamptz, r.started_at),
        error_message = 'silent for more than ' || s.stale_after_seconds || ' s: no event, no task, no change of state'
      from silent s
      where r.workspace_id = s.workspace_id and r.run_id = s.run_id
        and r.status || '>timed_out' = any(${RUN_TRANSITIONS as string[]}::text[])
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), logged as (${sql.unsafe(runsToOutbox('changed r'))})
    select from changed`
  return rows.length
}
