import { ApiError } from '../../base/errors.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { OwnedPartition, Partitions } from '../../tenants/partitions/partition.ts'

export interface EraseActivityDeps {
  readonly sql: Sql
  readonly partitions: Pick<Partitions, 'owned'>
  readonly columnar: ColumnarClient
  /** This process in the table `instances`. */
  readonly instanceId: string
}

const SINK_PATIENCE_MS = 30_000
/** How often to check whether the process is stopping. */
const SINK_WAIT_MS = 500
/** The mutation rewrites every part that has rows of the workspace. */
const MUTATION_TIMEOUT_MS = 90_000

/**
 * Deletes the activity of workspaces whose rows are already deleted from Postgres, from the logs that this process owns and
 * from ClickHouse. Every process that shares the database does this for its own logs; a process that was down does it after
 * its next start. May be interrupted and called again; one call at a time.
 *
 * @throws ApiError UNAVAILABLE when ClickHouse is behind; what the stores throw
 */
export async function eraseActivity(deps: EraseActivityDeps, signal: AbortSignal): Promise<void> {
  for (const owned of deps.partitions.owned()) await eraseFromPartition(deps, owned, signal)
}

async function eraseFromPartition(deps: EraseActivityDeps, owned: OwnedPartition, signal: AbortSignal): Promise<void> {
  const { sql, instanceId } = deps
  const { id: partition, journal, relay } = owned
  const { epoch } = journal
  const due = await sql<{ workspace_id: string }[]>`
    with known as (
      update instances set epoch = ${epoch}
      where instance_id = ${instanceId} and epoch is distinct from ${epoch} and not exists (select from journal_partitions)
    )
    select workspace_id from erasures
    where state_gone_at is not null and partition = ${partition} and not ${epoch} = any(released_epochs)`
  if (due.length === 0) return
  const workspaceIds = due.map((row) => row.workspace_id)
  for (const id of workspaceIds) journal.refuse(id)
  // After this the journal has every change that left the outbox before the outbox rows were deleted.
  await relay.flush()
  const seq = await journal.cut()
  // Deletes outbox rows whose frames lie before the cut: after a crash the relay would append them again.
  await relay.flush()
  await allConsumed(owned, seq, signal)
  for (const id of workspaceIds) await eraseFromColumnar(deps, id, signal)
  if (!(await journal.drop(seq))) throw new ApiError('UNAVAILABLE', 'the journal is still being read; try again')
  await sql`
    update erasures set released_epochs = array_append(released_epochs, ${epoch})
    where workspace_id = any(${workspaceIds}::uuid[]) and not ${epoch} = any(released_epochs)`
}

/**
 * Refuses rows of erased workspaces in a log that this process has just opened. Its earlier owners did, but a call that has
 * waited for an owner since before the erasure may reach this one.
 */
export async function refuseErased(sql: Sql, { id, journal }: Pick<OwnedPartition, 'id' | 'journal'>): Promise<void> {
  const erased = await sql<{ workspace_id: string }[]>`
    select workspace_id from erasures where state_gone_at is not null and partition = ${id}`
  for (const { workspace_id } of erased) journal.refuse(workspace_id)
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
  const counts = await countRows(columnar, workspaceId)
  const events = counts.get('events') ?? 0
  await sql`update erasures set events = greatest(events, ${events}) where workspace_id = ${workspaceId}`
  await eraseRows(columnar, workspaceId, counts.keys(), signal)
}

/** The number of a workspace's rows in each ClickHouse table, by ClickHouse's catalogue; tables without any are omitted. */
export async function countRows(client: ColumnarClient, workspaceId: string): Promise<Map<string, number>> {
  const tables = await client.query<{ table: string }>(
    `select table from system.columns where database = currentDatabase() and name = 'workspace_id'
     and table in (select name from system.tables where database = currentDatabase() and engine like '%MergeTree')`,
  )
  const counts = tables.map(
    ({ table }) => `select '${table}' as table, count() as rows from ${table} where workspace_id = {workspace:UUID}`,
  )
  const rows = await client.query<{ table: string; rows: number }>(
    `select table, rows from (${counts.join(' union all ')}) where rows > 0`,
    { params: { workspace: workspaceId } },
  )
  return new Map(rows.map((row) => [row.table, row.rows]))
}

/**
 * Deletes a workspace's rows from the tables, and rows that retention has only marked as deleted. This call gives up
 * after 90 s, but ClickHouse continues, so a repeat finds less to do.
 *
 * @throws ColumnarUnavailable, also after that time; the reason of `signal` when it aborts
 */
async function eraseRows(
  client: ColumnarClient,
  workspaceId: string,
  tables: Iterable<string>,
  signal: AbortSignal,
): Promise<void> {
  const options = { settings: { mutations_sync: 2 }, timeoutMs: MUTATION_TIMEOUT_MS, signal }
  const where = { ...options, params: { workspace: workspaceId } }
  await Promise.all(
    [...tables].map((table) =>
      client.command(`alter table ${table} delete where workspace_id = {workspace:UUID}`, where),
    ),
  )
  const hiding = await client.query<{ table: string }>(
    'select distinct table from system.parts where active and database = currentDatabase() and has_lightweight_delete',
    { signal },
  )
  await Promise.all(hiding.map(({ table }) => client.command(`alter table ${table} apply deleted mask`, options)))
}
