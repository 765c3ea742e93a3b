import { scopeDatabase } from '../../src/sql/analytics/views.ts'
import { type ColumnarBackend, remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { eventually } from './eventually.ts'
import { newDatabaseName, SHARED_CLICKHOUSE, startClickHouseTemplate } from './stores.ts'
import { atEnd, shared } from './teardown.ts'

export interface FreshColumnarDatabase {
  /** For a service's `CLICKHOUSE_URL`. */
  readonly url: string
  readonly client: ColumnarClient
  readonly backend: ColumnarBackend
}

const sharedTemplate = shared(readTemplate)

/**
 * Its own ClickHouse database for one test or one file, migrated and empty: on the engine that the processes of this
 * test run share, or on the server of `CLICKHOUSE_URL`, or on an embedded engine of this process.
 */
export async function freshColumnarDatabase(): Promise<FreshColumnarDatabase> {
  const { backend, admin, tables, views } = await sharedTemplate()
  const name = newDatabaseName()
  const client = createColumnarClient(backend, name)
  await admin.command(`create database ${name}`)
  await admin.command(`create database ${scopeDatabase(name)}`)
  const create = (statements: readonly string[]) =>
    Promise.all(statements.map((statement) => admin.command(statement.replaceAll(admin.database, name))))
  await create(tables)
  await create(views)
  await admin.command(`insert into ${name}.schema_migrations select * from schema_migrations`)
  atEnd(async () => {
    await client.command(`DROP DATABASE IF EXISTS ${scopeDatabase(name)}`)
    await client.command(`DROP DATABASE IF EXISTS ${name}`)
  })
  return { url: urlOf(backend, name), client, backend }
}

/** A copy of a database on the shared server, like a backup of it. */
export async function copyColumnarDatabase(url: string): Promise<string> {
  const from = new URL(url).pathname.slice(1)
  const { client, url: copy } = await freshColumnarDatabase()
  const tables = await client.query<{ name: string }>(
    `select name from system.tables where database = {from:String} and engine like '%MergeTree' and name != 'schema_migrations'`,
    { params: { from } },
  )
  for (const { name } of tables) await client.command(`alter table ${name} attach partition all from ${from}.${name}`)
  return copy
}

/** The number of running statements whose text matches. Other files share the engine, so the text must be unique to this file. */
export async function runningStatements(client: ColumnarClient, like: string): Promise<number> {
  const [{ n }] = await client.query<{ n: number }>(
    'select count() as n from system.processes where query_id != queryID() and query like {like:String}',
    { params: { like } },
  )
  return n
}

/**
 * Waits until as many statements run as there are queries: see {@link runningStatements}.
 * @throws if one of the queries ends before
 */
export async function untilRunning(
  client: ColumnarClient,
  like: string,
  queries: readonly Promise<unknown>[],
): Promise<void> {
  const ended = queries.map(async (query) => {
    throw new Error('a query ended before all were running', { cause: await query })
  })
  const running = eventually(async () => {
    const n = await runningStatements(client, like)
    if (n !== queries.length) throw new Error(`${n} statements run, not ${queries.length}`)
  })
  await Promise.race([running, ...ended])
}

/** The statements that create the template's tables and views: running every migration takes many times as long. */
async function readTemplate(): Promise<{
  backend: ColumnarBackend
  admin: ColumnarClient
  tables: string[]
  views: string[]
}> {
  const backend = remoteClickHouse(process.env[SHARED_CLICKHOUSE] ?? (await startClickHouseTemplate()))
  const admin = createColumnarClient(backend)
  atEnd(() => backend.stop())
  const statements = async (condition: string) => {
    const sql = `select create_table_query as text from system.tables where database = currentDatabase() and ${condition}`
    return (await admin.query<{ text: string }>(sql)).map(({ text }) => text)
  }
  const [tables, views] = await Promise.all(
    ["engine != 'MaterializedView'", "engine = 'MaterializedView'"].map(statements),
  )
  return { backend, admin, tables, views }
}

function urlOf(backend: ColumnarBackend, database: string): string {
  const url = new URL(backend.url)
  url.username = backend.username
  url.password = backend.password
  url.pathname = `/${database}`
  return url.href
}
