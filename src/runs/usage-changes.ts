import type { Log } from '../log.ts'
import { Loops } from '../ops/supervise.ts'
import type { Sql } from '../postgres/connect.ts'
import { RUN_ROW, RUN_ROW_COLUMNS } from './rows.ts'
import { LIVE_RUN_STATUSES } from './state.ts'

export interface UsageChangesDeps {
  readonly sql: Sql
  readonly log: Log
  /** Supervises the loop. */
  readonly loops?: Loops
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  /** Shortest time between two rows of a live run, milliseconds. */
  readonly liveIntervalMs?: number
}

export interface UsageChanges {
  /** Signals that run statistics have written to `run_usage_changes`. Cheap. */
  poke(): void
  stop(): Promise<void>
}

const INTERVAL_MS = 500
/** A row in the journal has the whole run, input included, so live runs get one in intervals, not after each call. */
const LIVE_INTERVAL_MS = 5_000
const RUNS_PER_STATEMENT = 500

/**
 * Writes runs whose usage was counted into the outbox, so that feeds and SQL show it: a run that has ended at once, a live
 * one in intervals. What is due is in a table, written together with the counts, so none is forgotten in a crash. Asks
 * Postgres only after a start and while there may be something due.
 */
export function startUsageChanges(deps: UsageChangesDeps): UsageChanges {
  const { sql, log, loops = new Loops(log), onChange, liveIntervalMs = LIVE_INTERVAL_MS } = deps
  let mayBeDue = true

  async function sweep(): Promise<void> {
    if (!mayBeDue) return
    mayBeDue = false
    try {
      let written = 0
      do {
        written = await writeDue(sql, liveIntervalMs)
        if (written > 0) onChange()
      } while (written === RUNS_PER_STATEMENT)
      if (await hasChanges(sql)) mayBeDue = true
    } catch (error) {
      mayBeDue = true
      throw error
    }
  }

  const stop = loops.repeat('run usage', INTERVAL_MS, sweep)
  return {
    poke() {
      mayBeDue = true
    },
    stop,
  }
}

/**
 * Locks the runs in the order of every statement on several runs, so that their outbox rows are in the order of their
 * changes. Skips locked ones: they are being changed. Another process may have been faster, hence the join with `gone`.
 */
async function writeDue(sql: Sql, liveIntervalMs: number): Promise<number> {
  const rows = await sql`
    with due as materialized (
      select ${sql.unsafe(RUN_ROW_COLUMNS)}
      from run_usage_changes c join runs r on r.workspace_id = c.workspace_id and r.run_id = c.run_id
      where r.status not in ${sql(LIVE_RUN_STATUSES)}
        or c.changed_at <= now() - make_interval(secs => ${liveIntervalMs / 1_000})
      order by r.workspace_id, r.run_id limit ${RUNS_PER_STATEMENT}
      for no key update of r skip locked
    ), gone as (
      delete from run_usage_changes c using due d
      where c.workspace_id = d.workspace_id and c.run_id = d.run_id
      returning c.workspace_id, c.run_id
    ), logged as (
      insert into outbox (workspace_id, kind, body)
      select r.workspace_id, 'run', ${sql.unsafe(RUN_ROW)}
      from due r join gone g on g.workspace_id = r.workspace_id and g.run_id = r.run_id
        join agents a on a.agent_id = r.agent_id
    )
    select from gone`
  return rows.length
}

async function hasChanges(sql: Sql): Promise<boolean> {
  const [{ some }] = await sql<{ some: boolean }[]>`select exists (select from run_usage_changes) as some`
  return some
}
