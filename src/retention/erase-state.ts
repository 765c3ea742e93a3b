import { inTransaction, type Sql } from '../postgres/connect.ts'
import { LIVE_RUN_STATUSES } from '../runs/state.ts'

/** Of runs, with all their tasks, steps and calls: one statement must not take long, however large they are. */
const RUNS_PER_STATEMENT = 100
const ROWS_PER_STATEMENT = 5_000
/** Calls that were under way may store something once more behind our back; they are few, and soon over. */
const PASSES_MAX = 10
/** Something new refers to what was to be deleted; or a call under way wanted rows of ours while we wanted its. */
const PASSING_ERRORS: readonly unknown[] = ['23503', '40P01']

/**
 * Tables that hold rows of a workspace, besides `runs` and what belongs to them: each before those that its rows refer to. What is
 * counted has a column of that name in `erasures`.
 */
const TABLES: readonly { readonly table: string; readonly counted?: string }[] = [
  { table: 'session_messages' },
  { table: 'sessions' },
  { table: 'feed_tokens' },
  { table: 'saved_queries' },
  { table: 'secrets' },
  { table: 'api_keys', counted: 'keys' },
  { table: 'agents', counted: 'agents' },
  { table: 'outbox' },
  { table: 'retention_horizons' },
]

/**
 * Deletes what Postgres has of a suspended workspace, but for its row in `workspaces`, and counts it in its row of
 * `erasures`. Afterwards no statement can put anything of it into the outbox. May be interrupted and called again.
 */
export async function eraseState(sql: Sql, workspaceId: string): Promise<void> {
  for (let pass = 1; ; pass++) {
    try {
      await stopDriving(sql, workspaceId)
      await eraseRuns(sql, workspaceId)
      await eraseIdempotencyKeys(sql, workspaceId)
      await sql`update api_keys set replaced_by = null where workspace_id = ${workspaceId} and replaced_by is not null`
      for (const each of TABLES) await eraseTable(sql, workspaceId, each)
      return
    } catch (error) {
      if (!PASSING_ERRORS.includes((error as { code?: unknown }).code) || pass === PASSES_MAX) throw error
    }
  }
}

/**
 * Names of the tables that have rows of the workspace besides its own, by the database's catalogue: no list of ours. Tables
 * that refer to `runs` have none once that has none, and may be too large to be searched.
 */
export async function tablesHolding(sql: Sql, workspaceId: string): Promise<string[]> {
  const tables = await sql<{ table: string }[]>`
    select table_name as table from information_schema.columns
    where table_schema = current_schema() and column_name = 'workspace_id'
      and table_name not in ('workspaces', 'erasures')
      and not exists (
        select from pg_constraint c
        where c.contype = 'f' and c.conrelid = format('%I', table_name)::regclass and c.confrelid = 'runs'::regclass
      )
    order by table_name`
  const holding: string[] = []
  for (const { table } of tables) {
    const [found] = await sql`select from ${sql(table)} where workspace_id = ${workspaceId} limit 1`
    if (found !== undefined) holding.push(table)
  }
  return holding
}

/** Whoever drives a run of the workspace finds that it is no longer theirs, and stores nothing more. */
async function stopDriving(sql: Sql, workspaceId: string): Promise<void> {
  await sql`
    update hosted_runs set phase = 'over', owner = null
    where workspace_id = ${workspaceId} and phase in ('waiting', 'queued', 'driven') and run_id = any(array(
      select run_id from runs
      where workspace_id = ${workspaceId} and runtime_type = 'hosted' and status in ${sql(LIVE_RUN_STATUSES)}
    ))`
}

/** Rows are locked by workspace and run_id, as every statement on several runs does, so that none wait for each other in a circle. */
async function eraseRuns(sql: Sql, workspaceId: string): Promise<void> {
  await untilNone(async () => {
    const [gone] = await sql<[{ count: number }]>`
      with batch as materialized (
        select run_id, workspace_id from runs
        where (run_id, workspace_id) in (
          select run_id, workspace_id from runs where workspace_id = ${workspaceId}
          order by created_at desc, run_id desc limit ${RUNS_PER_STATEMENT}
        )
        order by run_id for update
      ), gone_tasks as (
        delete from tasks where (run_id, workspace_id) in (select * from batch) returning 1
      ), gone_pauses as (
        delete from pauses where (run_id, workspace_id) in (select * from batch)
      ), gone_calls as (
        delete from tool_calls where (run_id, workspace_id) in (select * from batch)
      ), gone_steps as (
        delete from run_steps where (run_id, workspace_id) in (select * from batch)
      ), gone_hosted as (
        delete from hosted_runs where (run_id, workspace_id) in (select * from batch)
      ), gone_runs as (
        delete from runs where (run_id, workspace_id) in (select * from batch) returning 1
      )
      update erasures set
        runs = runs + (select count(*) from gone_runs), tasks = tasks + (select count(*) from gone_tasks)
      where workspace_id = ${workspaceId}
      returning (select count(*) from gone_runs) as count`
    return gone
  })
}

/** Kept answers name their key only; so they go before the keys. */
async function eraseIdempotencyKeys(sql: Sql, workspaceId: string): Promise<void> {
  await untilNone(
    () => sql`
      delete from idempotency_keys where ctid = any(array(
        select ctid from idempotency_keys
        where key_id in (select key_id from api_keys where workspace_id = ${workspaceId}) limit ${ROWS_PER_STATEMENT}
      ))`,
  )
}

async function eraseTable(sql: Sql, workspaceId: string, { table, counted }: (typeof TABLES)[number]): Promise<void> {
  await untilNone(() =>
    inTransaction(sql, async (tx) => {
      const { count } = await tx`
        delete from ${tx(table)} where ctid = any(array(
          select ctid from ${tx(table)} where workspace_id = ${workspaceId} limit ${ROWS_PER_STATEMENT}
        ))`
      if (counted !== undefined)
        await tx`
          update erasures set ${tx(counted)} = ${tx(counted)} + ${count} where workspace_id = ${workspaceId}`
      return { count }
    }),
  )
}

async function untilNone(deleteSome: () => PromiseLike<{ readonly count: number }>): Promise<void> {
  while ((await deleteSome()).count > 0);
}
