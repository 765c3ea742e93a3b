import type { ColumnarClient } from '../clickhouse/client.ts'
import type { RetentionFloor } from './retention-floors.ts'

/**
 * The tables subject to retention: events, and the changes that feeds replay. They are partitioned by UTC day of
 * acceptance. The latest states in `runs` and `tasks` are kept.
 */
const TABLES = ['events', 'run_changes', 'task_changes'] as const

/** Deleting rows of one day is a mutation, which takes time. */
const DELETE_TIMEOUT_MS = 100_000

/** One day of one table. */
interface Partition {
  readonly table: string
  /** The day, as `20260131`. */
  readonly id: string
}

/** The id of the partition for rows accepted at `ms`, Unix milliseconds. */
export function partitionOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')
}

/** Partitions older than the partition `before`. */
export async function oldPartitions(client: ColumnarClient, before: string, signal: AbortSignal): Promise<Partition[]> {
  return client.query<Partition>(
    `select distinct table, partition_id as id from system.parts
     where active and database = currentDatabase() and table in {tables:Array(String)} and partition_id < {before:String}
     order by id, table`,
    { params: { tables: TABLES, before }, signal },
  )
}

/** The highest position of each epoch in partitions older than `before`. */
export async function floorsBefore(
  client: ColumnarClient,
  before: string,
  signal: AbortSignal,
): Promise<RetentionFloor[]> {
  const rows = TABLES.map((table) => `select epoch, seq from ${table} where _partition_id < {before:String}`)
  return client.query<RetentionFloor>(
    `select epoch, null as workspaceId, max(seq) as seq from (${rows.join(' union all ')}) group by epoch`,
    { params: { before }, signal },
  )
}

/** Rows of one workspace and epoch in one partition. */
interface OldRows extends Partition, RetentionFloor {
  readonly rows: number
}

/** The workspaces' rows in partitions older than `before`. */
export async function oldRowsOf(
  client: ColumnarClient,
  workspaceIds: readonly string[],
  before: string,
  signal: AbortSignal,
): Promise<OldRows[]> {
  const found = TABLES.map(
    (table) => `
      select '${table}' as table, _partition_id as id, epoch, workspace_id as workspaceId, max(seq) as seq, count() as rows
      from ${table} where _partition_id < {before:String} and workspace_id in {workspaces:Array(UUID)}
      group by id, epoch, workspaceId`,
  )
  return client.query<OldRows>(found.join(' union all '), { params: { before, workspaces: workspaceIds }, signal })
}

/** Drops one day of a table, which is cheap. */
export function dropPartition(client: ColumnarClient, { table, id }: Partition, signal: AbortSignal): Promise<void> {
  return client.command(`alter table ${table} drop partition id {id:String}`, {
    params: { id },
    // By default ClickHouse refuses to drop a partition of more than 50 GB.
    settings: { max_partition_size_to_drop: 0 },
    signal,
  })
}

/** Marks the workspaces' rows of a day as deleted; the next merge of their part removes them from disk. */
export function deleteRows(
  client: ColumnarClient,
  { table, id }: Partition,
  workspaceIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  return client.command(
    `delete from ${table} in partition id {id:String} where workspace_id in {workspaces:Array(UUID)}`,
    {
      params: { id, workspaces: workspaceIds },
      settings: { lightweight_deletes_sync: 2 },
      timeoutMs: DELETE_TIMEOUT_MS,
      signal,
    },
  )
}
