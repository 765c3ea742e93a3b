import type { ColumnarClient } from '../clickhouse/client.ts'

/** The mutation rewrites every part that has rows of the workspace. */
const MUTATION_TIMEOUT_MS = 90_000

/** The number of a workspace's rows in each ClickHouse table, by ClickHouse's catalogue; tables without any are omitted. */
export async function countRows(client: ColumnarClient, workspaceId: string): Promise<Map<string, number>> {
  const tables = await client.query<{ table: string }>(
    `select table from system.columns where database = currentDatabase() and name = 'workspace_id'`,
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
export async function eraseRows(
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
