import { LIVE_RUN_STATUSES } from '../../activity/runs/state.ts'
import type { RunIdentity } from '../../base/ids.ts'
import { type HostedPhase, NEXT_PHASES, statesBefore } from '../../hosted/run/state.ts'
import { type Fragment, inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'

/** A run that is being deleted, or one of its scores. */
export interface ErasedRun extends RunIdentity {
  readonly scoreId: string | null
}

export function isWhole({ scoreId }: ErasedRun): boolean {
  return scoreId === null
}

/** Few, because a run has tasks, steps and calls: one statement must not take long. */
const RUNS_PER_STATEMENT = 100
const ROWS_PER_STATEMENT = 5_000
/** Each may have megabytes, and one run any number of them. */
const TASKS_PER_STATEMENT = 500
/** Requests that were in flight may still store rows. They are few and end soon. */
const PASSES_MAX = 10
/** SQLSTATEs of a foreign key violation (a new row refers to a deleted one) and of a deadlock with a request in flight. */
const TRANSIENT_ERRORS: readonly unknown[] = ['23503', '40P01']

/**
 * Tables with rows of a workspace, except `runs` and the tables that refer to it. Each comes before the tables that its
 * rows refer to. `counted` is the column of `erasures` that counts the deleted rows.
 */
const TABLES: readonly { readonly table: string; readonly counted?: string }[] = [
  { table: 'session_messages' },
  { table: 'sessions' },
  { table: 'feed_tokens' },
  { table: 'sign_ins' },
  { table: 'webhook_retries' },
  { table: 'webhooks' },
  { table: 'alerts' },
  { table: 'saved_queries' },
  { table: 'boards' },
  { table: 'run_views' },
  { table: 'secrets' },
  { table: 'api_keys', counted: 'keys' },
  { table: 'people' },
  { table: 'agent_versions' },
  { table: 'agents', counted: 'agents' },
  { table: 'outbox' },
  { table: 'outbox_set_aside' },
  { table: 'retention_floors' },
  { table: 'recounts' },
  { table: 'run_erasures' },
]

/**
 * Deletes all rows of a suspended workspace from Postgres, except its row in `workspaces`, and counts them in its row of
 * `erasures`. Afterwards no statement can add rows of the workspace to the outbox. May be interrupted and called again.
 */
export async function eraseState(sql: Sql, workspaceId: string): Promise<void> {
  await inPasses(async () => {
    await stopExecutors(sql, workspaceId)
    await eraseRuns(sql, workspaceId)
    await eraseIdempotencyKeys(sql, workspaceId)
    await sql`update api_keys set replaced_by = null where workspace_id = ${workspaceId} and replaced_by is not null`
    for (const each of TABLES) await eraseTable(sql, workspaceId, each)
  })
}

/**
 * Deletes ended runs from Postgres, except their own rows in `run_erasures`. May be interrupted and called again.
 * @returns how many runs were still there
 */
export async function eraseRunState(sql: Sql, runs: readonly RunIdentity[]): Promise<number> {
  if (runs.length === 0) return 0
  const named = sql`
    select * from unnest(
      ${runs.map(({ runId }) => runId)}::uuid[], ${runs.map(({ workspaceId }) => workspaceId)}::uuid[]
    ) as i (run_id, workspace_id)`
  return inPasses(async () => {
    await untilNone(() => taskDeletion(sql, named))
    return inTransaction(sql, async (tx) => {
      await tx`delete from feed_tokens where (run_id, workspace_id) in (${named})`
      await retryDeletion(
        tx,
        runs.map((run) => ({ ...run, scoreId: null })),
      )
      // Extracting a member would fail on texts with \u0000. Within a string, quotes are escaped.
      await tx`
        delete from outbox_set_aside o using (${named}) as i
        where o.workspace_id = i.workspace_id and o.body::text like '%"run_id":"' || i.run_id || '"%'`
      // Ids of scores are what callers have reported.
      await tx`
        delete from run_erasures where score_id is not null and (run_id, workspace_id) in (${named})`
      // Those of a hosted session, whose ids are UUIDs.
      await tx`
        delete from session_messages m using hosted_runs h, (${named}) as i
        where h.run_id = i.run_id and h.workspace_id = i.workspace_id and m.session_id = h.session_id
          and m.run_id = i.run_id`
      const [deleted] = await tx<[{ count: number }]>`
        ${runDeletion(tx, named)}
        select count(*) as count from deleted_runs`
      return deleted.count
    })
  })
}

/** Deletes the deliveries of runs and scores that wait for another attempt, with what they say. */
export async function eraseRetries(sql: Sql, runs: readonly ErasedRun[]): Promise<void> {
  if (runs.length > 0) await inPasses(() => retryDeletion(sql, runs))
}

function retryDeletion(sql: Sql | TransactionSql, runs: readonly ErasedRun[]) {
  return sql`
    with gone as (
      delete from webhook_retries r using webhooks w, unnest(
        ${runs.map(({ runId }) => runId)}::uuid[], ${runs.map(({ workspaceId }) => workspaceId)}::uuid[],
        ${runs.map(({ scoreId }) => scoreId)}::text[]
      ) as i (run_id, workspace_id, score_id)
      where w.workspace_id = i.workspace_id and r.webhook_id = w.webhook_id and r.run_id = i.run_id
        and (i.score_id is null or r.score_id = i.score_id)
      returning r.webhook_id
    )
    update webhooks set retries_erased = retries_erased + 1 where webhook_id in (select webhook_id from gone)`
}

/** Repeats what requests in flight disturb. */
async function inPasses<T>(work: () => PromiseLike<T>): Promise<T> {
  for (let pass = 1; ; pass++) {
    try {
      return await work()
    } catch (error) {
      if (!TRANSIENT_ERRORS.includes((error as { code?: unknown }).code) || pass === PASSES_MAX) throw error
    }
  }
}

/**
 * Names of the tables that still have rows of the workspace. They come from the database's catalogue, not from the list
 * above. Tables that refer to `runs` are skipped: they have no rows once `runs` has none, and may be too large to search.
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

/** Takes the workspace's runs away from their executors, which then store nothing more. */
async function stopExecutors(sql: Sql, workspaceId: string): Promise<void> {
  await sql`
    update hosted_runs set phase = ${'ended' satisfies HostedPhase}, owner = null
    where workspace_id = ${workspaceId} and phase in ${sql(statesBefore(NEXT_PHASES, 'ended'))} and run_id = any(array(
      select run_id from runs
      where workspace_id = ${workspaceId} and runtime_type = 'hosted' and status in ${sql(LIVE_RUN_STATUSES)}
    ))`
}

async function eraseRuns(sql: Sql, workspaceId: string): Promise<void> {
  const some = sql`
    select run_id, workspace_id from runs where workspace_id = ${workspaceId}
    order by created_at desc, run_id desc limit ${RUNS_PER_STATEMENT}`
  await untilNone(async () => {
    await untilNone(
      () => sql`
        with deleted as (${taskDeletion(sql, some)} returning 1)
        update erasures set tasks = tasks + (select count(*) from deleted)
        where workspace_id = ${workspaceId} and exists (select from deleted)`,
    )
    const [deleted] = await sql<[{ count: number }]>`
      ${runDeletion(sql, some)}
      update erasures set
        runs = runs + (select count(*) from deleted_runs), tasks = tasks + (select count(*) from deleted_tasks)
      where workspace_id = ${workspaceId}
      returning (select count(*) from deleted_runs) as count`
    return deleted
  })
}

/** SQL: deletes some tasks of runs. @param which a query of run_id and workspace_id */
function taskDeletion(sql: Sql, which: Fragment) {
  return sql`
    delete from tasks where ctid = any(array(
      select t.ctid from (${which}) as r cross join lateral (
        select ctid from tasks where run_id = r.run_id and workspace_id = r.workspace_id limit ${TASKS_PER_STATEMENT}
      ) t limit ${TASKS_PER_STATEMENT}
    ))`
}

/**
 * SQL: deletes runs and what refers to them, as CTEs of a statement; `deleted_runs` and `deleted_tasks` have a row for each.
 * Locks rows in the order of run_id, like every statement on several runs, which avoids deadlocks.
 * @param which a query of run_id and workspace_id
 */
function runDeletion(sql: Sql | TransactionSql, which: Fragment) {
  return sql`
    with batch as materialized (
      select run_id, workspace_id from runs
      where (run_id, workspace_id) in (${which})
      order by run_id for update
    ), deleted_tasks as (
      delete from tasks where (run_id, workspace_id) in (select * from batch) returning 1
    ), deleted_pauses as (
      delete from pauses where (run_id, workspace_id) in (select * from batch)
    ), deleted_calls as (
      delete from tool_calls where (run_id, workspace_id) in (select * from batch)
    ), deleted_steps as (
      delete from run_steps where (run_id, workspace_id) in (select * from batch)
    ), deleted_usage as (
      delete from run_usage_changes where (run_id, workspace_id) in (select * from batch)
    ), deleted_hosted as (
      delete from hosted_runs where (run_id, workspace_id) in (select * from batch)
    ), deleted_runs as (
      delete from runs where (run_id, workspace_id) in (select * from batch) returning 1
    )`
}

/** Stored responses refer only to their key or sign-in, so they are deleted before these. */
async function eraseIdempotencyKeys(sql: Sql, workspaceId: string): Promise<void> {
  await untilNone(
    () => sql`
      delete from idempotency_keys where ctid = any(array(
        select ctid from idempotency_keys
        where key_id in (
          select key_id from api_keys where workspace_id = ${workspaceId}
          union all select sign_in_id from sign_ins where workspace_id = ${workspaceId}
        ) limit ${ROWS_PER_STATEMENT}
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
