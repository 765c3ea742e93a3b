import { StartError } from '../../base/start-error.ts'
import type { ColumnarClient } from './client.ts'

/**
 * A load that is repeated after a long outage must still be recognised. ClickHouse forgets the tokens of replicated
 * tables by age as well as by number; the default age has been an hour in some versions.
 */
const DEDUPLICATION_SECONDS = 366 * 86_400

const DEFINITION = /^(create (?:table|database|materialized view) if not exists) (\w+(?:\.\w+)?)/m
const ENGINE = /\bengine = ((?:Replacing)?MergeTree)(?:\((\w+)\))?/

/**
 * A statement of a migration, for a cluster: DDL runs on every replica, and tables are replicated. A table's path in
 * Keeper has its name, not its UUID, so that the same definition on a new replica joins the others.
 *
 * @param cluster its name in `remote_servers` of the servers' configuration, or a macro such as `{cluster}`
 * @throws Error for a kind of statement that no migration has had so far
 */
export function onCluster(statement: string, cluster: string): string {
  const text = statement.replace(/^\s*--.*\n/gm, '').trim()
  const [definition, action, name] = DEFINITION.exec(text) ?? []
  if (definition === undefined || action === undefined || name === undefined)
    throw new Error(`no rule how to run this statement on a cluster: ${text}`)
  const everywhere = text.replace(definition, `${definition} on cluster '${cluster}'`)
  if (!action.startsWith('create table')) return everywhere
  if (!ENGINE.test(everywhere)) throw new Error(`no rule how to replicate this table: ${text}`)
  return everywhere
    .replace(ENGINE, (_, engine: string, version: string | undefined) => {
      const path = `/clickhouse/tables/{shard}/${name.replace('.', '/')}`
      return `engine = Replicated${engine}('${path}', '{replica}'${version === undefined ? '' : `, ${version}`})`
    })
    .replace(
      /\bnon_replicated_deduplication_window = (\d+)/,
      `replicated_deduplication_window = $1,\n  replicated_deduplication_window_seconds = ${DEDUPLICATION_SECONDS}`,
    )
}

/**
 * Checks that the existing tables fit the configuration: tables are not converted, and inserts into replicated tables
 * without a quorum could be lost with one replica.
 *
 * @throws StartError
 */
export async function refuseOtherTables(client: ColumnarClient): Promise<void> {
  const tables = await client.query<{ name: string; engine: string }>(
    `select name, engine from system.tables where database = {database:String} and engine like '%MergeTree' order by name`,
    { params: { database: client.database }, database: 'default' },
  )
  const isCluster = client.cluster !== undefined
  // Managed services replace the engine by one of their own, such as SharedMergeTree, with or without a cluster.
  const other = tables.find(
    ({ engine }) => engine.startsWith('Replicated') !== isCluster && !engine.startsWith('Shared'),
  )
  if (other === undefined) return
  throw new StartError(
    isCluster
      ? `CLICKHOUSE_CLUSTER is set, but table ${client.database}.${other.name} is not replicated (${other.engine}): name a new database in CLICKHOUSE_URL, or unset CLICKHOUSE_CLUSTER`
      : `table ${client.database}.${other.name} is replicated: set CLICKHOUSE_CLUSTER to the name of its cluster`,
  )
}
