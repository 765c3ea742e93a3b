import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import { type SetAside, Sieve } from '../../base/set-aside.ts'
import { isPoison, type Sql, type TransactionSql, withoutEffect } from '../../stores/postgres/connect.ts'
import { RUN_ROW_COLUMNS, runsToOutbox } from './rows.ts'

interface UsageChangesDeps {
  readonly sql: Sql
  readonly log: Log
  /** Supervises the loop. */
  readonly loops?: Loops
  /** Counts the runs that cannot be written. */
  readonly setAside?: SetAside
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
}

interface DueRun {
  readonly run_id: string
  readonly workspace_id: string
}

const INTERVAL_MS = 500
const RUNS_PER_STATEMENT = 500
/** SQL text. Nothing is due in more than some seconds, unless the clock was ahead when it was written; or it is skipped. */
const IS_DUE = `(due_at <= now() or (due_at > now() + interval '1 minute' and due_at < 'infinity'))`

/**
 * Writes runs whose usage has changed to the outbox, so that feeds and SQL show it: ended runs at once, live ones in
 * intervals. The changes are kept in a table, written in the same commit as the usage, so a crash loses none. Queries
 * Postgres only after a start and while the table may have rows.
 */
export function startUsageChanges({ sql, log, loops = new Loops(log), setAside, onChange }: UsageChangesDeps) {
  let hasChanges = true
  const sieve = new Sieve<DueRun>({
    consumer: 'run_usage',
    log,
    counts: setAside,
    isPoison,
    probe: (due) => withoutEffect(sql, (tx) => writeRuns(tx, due)),
    describe: (run) => run,
    remove: (due) => postpone(sql, due),
  })

  async function sweep(): Promise<void> {
    if (!hasChanges) return
    hasChanges = false
    try {
      if (await writeDue(sql, sieve)) onChange()
      const [{ some }] = await sql<{ some: boolean }[]>`
        select exists (select from run_usage_changes where due_at < 'infinity') as some`
      if (some) hasChanges = true
    } catch (error) {
      hasChanges = true
      throw error
    }
  }

  const stop = loops.repeat('run usage', INTERVAL_MS, sweep)
  return {
    /** Run statistics have written to `run_usage_changes`. Cheap. */
    wake() {
      hasChanges = true
    },
    stop,
  }
}

/** Runs that are due, at most {@link RUNS_PER_STATEMENT}. */
export async function usageLag(sql: Sql): Promise<number> {
  const [{ runs }] = await sql<{ runs: number }[]>`
    select count(*) as runs from (
      select from run_usage_changes where ${sql.unsafe(IS_DUE)} limit ${RUNS_PER_STATEMENT}
    ) as due`
  return runs
}

/** Writes the runs that are due, in pages; runs that are locked wait for the next sweep. */
async function writeDue(sql: Sql, sieve: Sieve<DueRun>): Promise<boolean> {
  let hasWritten = false
  for (;;) {
    const due = await sql<DueRun[]>`
      select run_id, workspace_id from run_usage_changes where ${sql.unsafe(IS_DUE)} order by due_at limit ${RUNS_PER_STATEMENT}`
    const written = due.length === 0 ? 0 : await sieve.run(due, (some) => writeRuns(sql, some))
    hasWritten ||= written > 0
    if (written < RUNS_PER_STATEMENT) return hasWritten
  }
}

/**
 * Locks the runs in order of workspace and run_id, as every statement on several runs does, so that their outbox rows are
 * in the order of their changes. Skips runs that another statement is changing. The join with `gone` leaves out runs that
 * another process has already written. The runs are parameters because a join with the table itself, which has no
 * planner statistics, would read all runs.
 */
async function writeRuns(sql: Sql | TransactionSql, due: readonly DueRun[]): Promise<number> {
  const rows = await sql`
    with item as (
      select * from unnest(${due.map(({ run_id }) => run_id)}::uuid[], ${due.map(({ workspace_id }) => workspace_id)}::uuid[])
        as i (run_id, workspace_id)
    ), locked as materialized (
      select ${sql.unsafe(RUN_ROW_COLUMNS)}
      from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      order by r.workspace_id, r.run_id for no key update of r skip locked
    ), gone as (
      delete from run_usage_changes c using locked r
      where c.workspace_id = r.workspace_id and c.run_id = r.run_id
      returning c.workspace_id, c.run_id
    ), logged as (${sql.unsafe(runsToOutbox('locked r join gone using (workspace_id, run_id)', true))})
    select from gone`
  return rows.length
}

/** Runs that cannot be written wait for the next change of their usage. */
async function postpone(sql: Sql, due: readonly DueRun[]): Promise<void> {
  await sql`
    update run_usage_changes c set due_at = 'infinity'
    from unnest(${due.map(({ run_id }) => run_id)}::uuid[], ${due.map(({ workspace_id }) => workspace_id)}::uuid[])
      as i (run_id, workspace_id)
    where c.workspace_id = i.workspace_id and c.run_id = i.run_id`
}
