import { RETENTION_DAYS_MAX } from '../../base/limits.ts'
import type { Log } from '../../base/log.ts'
import { Loops } from '../../base/loops.ts'
import type { Metrics } from '../../base/metrics.ts'
import { partitionOf } from '../../base/timestamp.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import { ACTIVITY_TABLES, EXPIRING_TABLES } from '../../stores/journal/kinds.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Partitions } from '../../tenants/partitions/partition.ts'
import type { RetentionClock } from './retention-clock.ts'
import type { RetentionFloor, RetentionFloors } from './retention-floors.ts'
import { expireSetAside } from './set-aside.ts'

interface RetentionDeps {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly partitions: Pick<Partitions, 'owned' | 'oldestUnloaded'>
  readonly retentionFloors: Pick<RetentionFloors, 'raise'>
  readonly clock: Pick<RetentionClock, 'advance'>
  readonly log: Log
  readonly metrics: Metrics
  /** Supervises retention together with other loops. */
  readonly loops?: Loops
  /** `EVENT_RETENTION_DAYS`; undefined: no limit. */
  readonly days: number | undefined
}

const INTERVAL_MS = 600_000
const DAY_MS = 86_400_000

/** Deleting rows of one day is a mutation, which takes time. */
const DELETE_TIMEOUT_MS = 100_000

/**
 * Deletes events, scores, the changes of runs and tasks that feeds replay, and deliveries, when their retention ends
 * (docs/workspaces.md#retention). It runs at the start and every ten minutes and deletes whole UTC days, so that nothing
 * is kept for more than a day longer. The global limit drops partitions; a shorter limit of a workspace deletes its rows
 * from them. The latest states of runs and tasks are kept.
 *
 * Rows that consumers have skipped expire as well, whatever the limits are.
 *
 * The time comes from the {@link RetentionClock}, which does not follow a system clock that jumps ahead.
 *
 * Every step is idempotent: several processes may run it at the same time, and the next round repeats a failed step.
 *
 * @returns a function that stops it
 */
export function startRetention(deps: RetentionDeps): () => Promise<void> {
  const { log, metrics, loops = new Loops(log) } = deps
  const stopping = new AbortController()
  const counters = {
    partitions: metrics
      .counter('retention_partitions_dropped_total', 'Table partitions (days) dropped by retention.')
      .at(),
    rows: metrics
      .counter('retention_rows_deleted_total', 'Rows deleted because their workspace has a shorter retention.')
      .at(),
  }
  const end = loops.repeat(
    'retention',
    INTERVAL_MS,
    async () => {
      const { partitions, rows } = await enforce(deps, stopping.signal)
      counters.partitions.value += partitions
      counters.rows.value += rows
      if (partitions > 0 || rows > 0) log.info('retention: deleted expired activity', { partitions, rows })
    },
    { atOnce: true },
  )
  return async () => {
    stopping.abort()
    await end()
  }
}

interface Deleted {
  readonly partitions: number
  readonly rows: number
}

async function enforce(deps: RetentionDeps, signal: AbortSignal): Promise<Deleted> {
  const { sql, partitions: all, clock, days, log } = deps
  // Advances even without any limit: a limit that is set later must not trust a clock that has jumped.
  const now = await clock.advance()
  await expireSetAside(sql, now, log)
  const shorter = await readShorterLimits(deps)
  const shortest = Math.min(days ?? Number.POSITIVE_INFINITY, ...shorter.keys())
  if (shortest === Number.POSITIVE_INFINITY) return { partitions: 0, rows: 0 }
  const endOf = (limit: number) => now - limit * DAY_MS
  if (await hasUnloadedBefore(deps, endOf(shortest))) {
    log.info('retention: waiting for ClickHouse to catch up')
    return { partitions: 0, rows: 0 }
  }
  const partitions = days === undefined ? 0 : await dropDays(deps, partitionOf(endOf(days)), signal)
  let rows = 0
  for (const [limit, workspaceIds] of shorter) {
    rows += await deleteOf(deps, workspaceIds, partitionOf(endOf(limit)), signal)
  }
  // ClickHouse has all rows, so the journal need not keep them, even those of workspaces with a longer retention.
  for (const { journal } of all.owned()) await journal.expire(endOf(shortest))
  return { partitions, rows }
}

/** The limits that are shorter than the global one, with their workspaces. */
async function readShorterLimits({ sql, days }: RetentionDeps): Promise<Map<number, string[]>> {
  const rows = await sql<{ retention_days: number; workspace_ids: string[] }[]>`
    select retention_days, array_agg(workspace_id) as workspace_ids from workspaces
    where retention_days < ${days ?? RETENTION_DAYS_MAX + 1}
    group by retention_days order by retention_days`
  return new Map(rows.map((row) => [row.retention_days, row.workspace_ids]))
}

/** Expired rows that are not loaded yet would reach ClickHouse after the floor was stored. */
async function hasUnloadedBefore({ partitions }: RetentionDeps, ms: number): Promise<boolean> {
  const oldest = await partitions.oldestUnloaded()
  return oldest !== null && partitionOf(oldest) < partitionOf(ms)
}

async function dropDays(
  { columnar, retentionFloors }: RetentionDeps,
  before: string,
  signal: AbortSignal,
): Promise<number> {
  const partitions = await oldPartitions(columnar, before, signal)
  if (partitions.length === 0) return 0
  await retentionFloors.raise(await floorsBefore(columnar, before, signal))
  for (const partition of partitions) await dropPartition(columnar, partition, signal)
  return partitions.length
}

async function deleteOf(
  { columnar, retentionFloors }: RetentionDeps,
  workspaceIds: readonly string[],
  before: string,
  signal: AbortSignal,
): Promise<number> {
  const found = await oldRowsOf(columnar, workspaceIds, before, signal)
  if (found.length === 0) return 0
  await retentionFloors.raise(found.filter(({ table }) => ACTIVITY_TABLES.includes(table)))
  const partitions = new Map(found.map(({ table, id }) => [`${table} ${id}`, { table, id }]))
  for (const partition of partitions.values()) await deleteRows(columnar, partition, workspaceIds, signal)
  return found.reduce((sum, { rows }) => sum + rows, 0)
}

/** One day of one table. */
interface Partition {
  readonly table: string
  /** The day, as `20260131`. */
  readonly id: string
}

/** Partitions older than the partition `before`. */
async function oldPartitions(client: ColumnarClient, before: string, signal: AbortSignal): Promise<Partition[]> {
  return client.query<Partition>(
    `select distinct table, partition_id as id from system.parts
     where active and database = currentDatabase() and table in {tables:Array(String)} and partition_id < {before:String}
     order by id, table`,
    { params: { tables: EXPIRING_TABLES, before }, signal },
  )
}

/** The highest position of activity of each epoch in partitions older than `before`. */
async function floorsBefore(client: ColumnarClient, before: string, signal: AbortSignal): Promise<RetentionFloor[]> {
  const rows = ACTIVITY_TABLES.map((table) => `select epoch, seq from ${table} where _partition_id < {before:String}`)
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
async function oldRowsOf(
  client: ColumnarClient,
  workspaceIds: readonly string[],
  before: string,
  signal: AbortSignal,
): Promise<OldRows[]> {
  const found = EXPIRING_TABLES.map(
    (table) => `
      select '${table}' as table, _partition_id as id, epoch, workspace_id as workspaceId, max(seq) as seq, count() as rows
      from ${table} where _partition_id < {before:String} and workspace_id in {workspaces:Array(UUID)}
      group by id, epoch, workspaceId`,
  )
  return client.query<OldRows>(found.join(' union all '), { params: { before, workspaces: workspaceIds }, signal })
}

/** Drops one day of a table, which is cheap. */
function dropPartition(client: ColumnarClient, { table, id }: Partition, signal: AbortSignal): Promise<void> {
  return client.command(`alter table ${table} drop partition id {id:String}`, {
    params: { id },
    // By default ClickHouse refuses to drop a partition of more than 50 GB.
    settings: { max_partition_size_to_drop: 0 },
    signal,
  })
}

/** Marks the workspaces' rows of a day as deleted; the next merge of their part removes them from disk. */
function deleteRows(
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
