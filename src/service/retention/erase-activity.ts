import type { RunDirectory } from '../../activity/runs/directory.ts'
import { ApiError } from '../../base/errors.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Journal } from '../../stores/journal/journal.ts'
import type { Fragment, Sql } from '../../stores/postgres/connect.ts'
import type { OwnedPartition, Partitions } from '../../tenants/partitions/partition.ts'
import { type ErasedRun, eraseRetries, eraseRunState, isWhole } from './erase-state.ts'

export interface EraseActivityDeps {
  readonly sql: Sql
  readonly partitions: Pick<Partitions, 'owned'>
  readonly columnar: ColumnarClient
  /** This process in the table `instances`. */
  readonly instanceId: string
  readonly directory: Pick<RunDirectory, 'forget'>
  /** When each partition last deleted runs, on the monotonic clock. */
  readonly runsErasedMs: Map<number, number>
}

const SINK_PATIENCE_MS = 30_000
/** How often to check whether the process is stopping. */
const SINK_WAIT_MS = 500
/** The mutation rewrites every part that has rows of the workspace. */
const MUTATION_TIMEOUT_MS = 90_000
/** A round rewrites parts of ClickHouse, and after it feeds read earlier rows from there: single runs are deleted together. */
const RUNS_INTERVAL_MS = 30_000
const RUNS_PER_ROUND = 500
/** How much the clocks of two processes may differ. */
const CLOCKS_DIFFER_MS = 3_600_000
/** Of all partitions. No call waits for an owner while as many are deleted. */
const RUNS_REFUSED_MAX = 1_000

/**
 * Deletes the activity of workspaces and runs whose rows are already deleted from Postgres, from the logs that this process
 * owns and from ClickHouse. Every process that shares the database does this for its own logs; a process that was down does it after
 * its next start. May be interrupted and called again; one call at a time.
 *
 * @throws ApiError UNAVAILABLE when ClickHouse is behind; what the stores throw
 */
export async function eraseActivity(deps: EraseActivityDeps, signal: AbortSignal): Promise<void> {
  for (const owned of deps.partitions.owned()) await eraseFromPartition(deps, owned, signal)
}

async function eraseFromPartition(deps: EraseActivityDeps, owned: OwnedPartition, signal: AbortSignal): Promise<void> {
  const { sql, instanceId, directory, runsErasedMs } = deps
  const { id: partition, journal, relay } = owned
  const { epoch } = journal
  const due = await sql<{ workspace_id: string }[]>`
    with known as (
      update instances set epoch = ${epoch}
      where instance_id = ${instanceId} and epoch is distinct from ${epoch} and not exists (select from journal_partitions)
    )
    select workspace_id from erasures
    where state_gone_at is not null and partition = ${partition} and not ${epoch} = any(released_epochs)`
  if (!runsErasedMs.has(partition)) {
    await reopenMissed(deps, owned)
    runsErasedMs.set(partition, Number.NEGATIVE_INFINITY)
  }
  const areRunsDue = performance.now() - runsErasedMs.get(partition)! > RUNS_INTERVAL_MS
  const runs = areRunsDue
    ? await readOpen(sql, sql`partition = ${partition} and not ${epoch} = any(released_epochs)`)
    : []
  if (due.length === 0 && runs.length === 0) return
  const workspaceIds = due.map((row) => row.workspace_id)
  for (const id of workspaceIds) journal.refuse(id)
  // Also if it fails: the next attempt does the same again.
  if (runs.length > 0) runsErasedMs.set(partition, performance.now())
  for (const run of runs) {
    directory.forget(run)
    refuseErasedRun(journal, run)
  }
  await eraseRunState(sql, runs.filter(isWhole))
  await eraseRetries(sql, runs)
  // After this the journal has every change that left the outbox before the outbox rows were deleted.
  await relay.flush()
  const seq = await journal.cut()
  // Deletes outbox rows whose frames lie before the cut: after a crash the relay would append them again.
  await relay.flush()
  await allConsumed(owned, seq, signal)
  for (const id of workspaceIds) await eraseFromColumnar(deps, id, signal)
  await eraseRunsFromColumnar(deps.columnar, runs, signal)
  if (!(await journal.drop(seq))) throw new ApiError('UNAVAILABLE', 'the journal is still being read; try again')
  await sql`
    update erasures set released_epochs = array_append(released_epochs, ${epoch})
    where workspace_id = any(${workspaceIds}::uuid[]) and not ${epoch} = any(released_epochs)`
  await sql`
    update run_erasures set released_epochs = array_append(released_epochs, ${epoch})
    where erasure_id = any(${runs.map(({ erasureId }) => erasureId)}::uuid[]) and not ${epoch} = any(released_epochs)`
}

/**
 * A process with a log of its own that was down while a run was deleted may still have rows of it, and load them now. Of the
 * runs that were deleted before the oldest row of the log, it has none.
 */
async function reopenMissed({ sql }: EraseActivityDeps, { id, journal }: OwnedPartition): Promise<void> {
  const [oldest] = await journal.read(0, 1)
  if (oldest === undefined) return
  await sql`
    update run_erasures set done_at = null
    where partition = ${id} and done_at is not null and not ${journal.epoch} = any(released_epochs)
      and requested_at > ${new Date(oldest.receivedAt - CLOCKS_DIFFER_MS)} and not exists (select from journal_partitions)`
}

interface OpenErasure extends ErasedRun {
  readonly erasureId: string
}

/** Refuses further rows of it. */
export function refuseErasedRun(journal: Pick<Journal, 'refuseRun' | 'refuseScore'>, run: ErasedRun): void {
  if (run.scoreId === null) journal.refuseRun(run)
  else journal.refuseScore(run, run.scoreId)
}

/** The first runs and scores that are being deleted and match an SQL condition on `run_erasures e`. */
export function readOpen(sql: Sql, condition: Fragment): Promise<readonly OpenErasure[]> {
  return sql<OpenErasure[]>`
    select erasure_id as "erasureId", run_id as "runId", workspace_id as "workspaceId", score_id as "scoreId"
    from run_erasures e
    where done_at is null and ${condition} order by number limit ${RUNS_PER_ROUND}`
}

/**
 * Deletes the rows of runs and scores; their deliveries stay.
 * @returns the tables that had some
 * @throws like {@link eraseRows}
 */
export async function eraseRunsFromColumnar(
  columnar: ColumnarClient,
  runs: readonly ErasedRun[],
  signal: AbortSignal,
): Promise<string[]> {
  const found: string[] = []
  for (const rows of rowsOf(runs)) {
    const tables = [...(await countRows(columnar, rows)).keys()]
    if (tables.length > 0) await eraseRows(columnar, rows, tables, signal)
    found.push(...tables)
  }
  return found
}

/**
 * Refuses rows of erased workspaces and of runs deleted lately in a log that this process has just opened. Its earlier owners
 * did, but a call that has waited for an owner since before the erasure may reach this one.
 */
export async function refuseErased(sql: Sql, { id, journal }: Pick<OwnedPartition, 'id' | 'journal'>): Promise<void> {
  const erased = await sql<{ workspace_id: string }[]>`
    select workspace_id from erasures where state_gone_at is not null and partition = ${id}`
  for (const { workspace_id } of erased) journal.refuse(workspace_id)
  const runs = await sql<ErasedRun[]>`
    select run_id as "runId", workspace_id as "workspaceId", score_id as "scoreId" from run_erasures
    where partition = ${id} and number > (select coalesce(max(number), 0) from run_erasures) - ${RUNS_REFUSED_MAX}`
  for (const run of runs) refuseErasedRun(journal, run)
}

/** Waits until every consumer has processed everything up to `seq`. */
async function allConsumed({ sink, statistics }: OwnedPartition, seq: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + SINK_PATIENCE_MS
  while (!(await sink.waitFor(seq, SINK_WAIT_MS))) {
    signal.throwIfAborted()
    if (performance.now() > deadline)
      throw new ApiError('UNAVAILABLE', 'ClickHouse is behind; try again', { retryAfterSeconds: 10 })
  }
  await statistics.flush()
}

/** Stores the count before deleting: after a crash a repeat finds fewer rows, and the larger count is kept. */
async function eraseFromColumnar(
  { sql, columnar }: EraseActivityDeps,
  workspaceId: string,
  signal: AbortSignal,
): Promise<void> {
  const counts = await countRows(columnar, { workspaceId })
  const events = counts.get('events') ?? 0
  await sql`update erasures set events = greatest(events, ${events}) where workspace_id = ${workspaceId}`
  await eraseRows(columnar, { workspaceId }, counts.keys(), signal)
}

/** Rows of a workspace; with `runIds` what was reported of these runs only; with `scoreIds`, of each its score only. */
interface Rows {
  readonly workspaceId: string
  readonly runIds?: readonly string[]
  readonly scoreIds?: readonly string[]
}

interface RowsOfRuns extends Rows {
  readonly runIds: readonly string[]
}

/** The rows of runs and of scores, by workspace. */
function rowsOf(runs: readonly ErasedRun[]): RowsOfRuns[] {
  const groups = Map.groupBy(runs, (run) => `${run.workspaceId} ${isWhole(run)}`)
  return [...groups.values()].map((some) => {
    const [{ workspaceId }] = some as [ErasedRun]
    const scoreIds = some.flatMap(({ scoreId }) => scoreId ?? [])
    return { workspaceId, runIds: some.map(({ runId }) => runId), ...(scoreIds.length > 0 && { scoreIds }) }
  })
}

/** SQL with its parameters. */
function conditionOf({ workspaceId, runIds, scoreIds }: Rows) {
  const ofRuns = runIds ? ' and run_id in {runs:Array(UUID)}' : ''
  const ofScores = scoreIds ? ' and (run_id, score_id) in arrayZip({runs:Array(UUID)}, {scores:Array(String)})' : ''
  return {
    where: `workspace_id = {workspace:UUID}${ofRuns}${ofScores}`,
    params: { workspace: workspaceId, ...(runIds && { runs: runIds }), ...(scoreIds && { scores: scoreIds }) },
    tables: scoreIds
      ? "name = 'score_id'"
      : runIds
        ? "name = 'run_id' and table <> 'deliveries'"
        : "name = 'workspace_id'",
  }
}

/** The number of such rows in each ClickHouse table, by ClickHouse's catalogue; tables without any are omitted. */
export async function countRows(client: ColumnarClient, which: Rows): Promise<Map<string, number>> {
  const { where, params, tables: ofTables } = conditionOf(which)
  const tables = await client.query<{ table: string }>(
    `select table from system.columns where database = currentDatabase() and ${ofTables}
     and table in (select name from system.tables where database = currentDatabase() and engine like '%MergeTree')`,
  )
  const counts = tables.map(({ table }) => `select '${table}' as table, count() as rows from ${table} where ${where}`)
  const rows = await client.query<{ table: string; rows: number }>(
    `select table, rows from (${counts.join(' union all ')}) where rows > 0`,
    { params },
  )
  return new Map(rows.map((row) => [row.table, row.rows]))
}

/**
 * Deletes such rows from the tables, and rows that retention has only marked as deleted. This call gives up
 * after 90 s, but ClickHouse continues, so a repeat finds less to do.
 *
 * @throws ColumnarUnavailable, also after that time; the reason of `signal` when it aborts
 */
async function eraseRows(
  client: ColumnarClient,
  which: Rows,
  tables: Iterable<string>,
  signal: AbortSignal,
): Promise<void> {
  const options = { settings: { mutations_sync: 2 }, timeoutMs: MUTATION_TIMEOUT_MS, signal }
  const { where, params } = conditionOf(which)
  await Promise.all(
    [...tables].map((table) => client.command(`alter table ${table} delete where ${where}`, { ...options, params })),
  )
  const hiding = await client.query<{ table: string }>(
    'select distinct table from system.parts where active and database = currentDatabase() and has_lightweight_delete',
    { signal },
  )
  await Promise.all(hiding.map(({ table }) => client.command(`alter table ${table} apply deleted mask`, options)))
}
