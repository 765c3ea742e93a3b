import type { ColumnarClient } from '../columnar/client.ts'
import type { RetentionWatermark } from './retention-watermarks.ts'

/**
 * What of ClickHouse retention is about: events, and the changes that feeds replay, in partitions by the day (UTC) of
 * acceptance. The latest states in `runs` and `tasks` stay.
 */
const TABLES = ['events', 'run_changes', 'task_changes'] as const

/** A mutation of a day's rows. */
const DELETE_TIMEOUT_MS = 100_000

/** One day of one table. */
export interface Partition {
  readonly table: string
  /** The day, as `20260131`. */
  readonly id: string
}

/** The id of the partition that rows of this moment, Unix milliseconds, go into. */
export function partitionOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')
}

/** Partitions that are older than the one `before`, with whatever is in them. */
export async function oldPartitions(client: ColumnarClient, before: string, signal: AbortSignal): Promise<Partition[]> {
  return client.query<Partition>(
    `select distinct table, partition_id as id from system.parts
     where active and database = currentDatabase() and table in {tables:Array(String)} and partition_id < {before:String}
     order by id, table`,
    { params: { tables: TABLES, before }, signal },
  )
}

/** Up to where each journal's rows in partitions older than `before` reach. */
export async function watermarksBefore(
  client: ColumnarClient,
  before: string,
  signal: AbortSignal,
): Promise<RetentionWatermark[]> {
  const rows = TABLES.map((table) => `select epoch, seq from ${table} where _partition_id < {before:String}`)
  return client.query<RetentionWatermark>(
    `select epoch, null as workspaceId, max(seq) as seq from (${rows.join(' union all ')}) group by epoch`,
    { params: { before }, signal },
  )
}

/** Rows of one workspace and journal in one partition. */
export interface OldRows extends Partition, RetentionWatermark {
  readonly rows: number
}

/** What the workspaces have in partitions older than `before`. */
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

/** Drops a day of a table whole, which costs next to nothing. */
export function dropPartition(client: ColumnarClient, { table, id }: Partition, signal: AbortSignal): Promise<void> {
  return client.command(`alter table ${table} drop partition id {id:String}`, {
    params: { id },
    // ClickHouse asks twice before it parts with 50 GB.
    settings: { max_partition_size_to_drop: 0 },
    signal,
  })
}

/** Hides the workspaces' rows of a day; they leave the disk with the next merge of their part. */
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
