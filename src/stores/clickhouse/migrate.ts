import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { listMigrations, missingMigrations } from '../../base/migrations.ts'
import type { ColumnarClient } from './client.ts'
import { onCluster, refuseOtherTables } from './cluster.ts'

/** The directory of the migrations. */
const MIGRATIONS_DIR = join(import.meta.dir, '..', '..', '..', 'sql', 'clickhouse')

/** Migrating a large table takes time. */
const MIGRATION_TIMEOUT_MS = 600_000

/** A replica that is down finds the statements in the cluster's queue when it starts. */
const DDL_SETTINGS = { distributed_ddl_output_mode: 'throw_only_active' }

/** Table settings that only make inserts cheaper; older servers do not have them. */
const OPTIONAL_SETTINGS = ['materialize_projections_on_insert', 'materialize_projections_on_merge']

const SCHEMA_MIGRATIONS = `
create table if not exists {database}.schema_migrations (name String, applied_at DateTime64(3, 'UTC'))
engine = MergeTree
order by name
settings fsync_after_insert = 1, fsync_part_directory = 1`

/**
 * Creates the client's database and applies the missing `NNNN_name.sql` files of `directory`, in order. `{database}` in
 * the files stands for its name. ClickHouse has no transactional DDL, so every statement must be idempotent: a crash
 * between a file and its record repeats the file. One process at a time: concurrent changes of a table fail.
 *
 * @throws StartError when the database has migrations that this version does not know, or tables that do not fit the
 *   client's cluster
 */
export async function migrateClickHouse(client: ColumnarClient, log: Log, directory = MIGRATIONS_DIR): Promise<void> {
  const known = await listMigrations(directory)
  const { cluster, database } = client
  const options = { database: 'default', timeoutMs: MIGRATION_TIMEOUT_MS }
  const run = (sql: string) =>
    cluster === undefined
      ? client.command(sql, options)
      : client.command(onCluster(sql, cluster), { ...options, settings: DDL_SETTINGS })
  // On a cluster a statement waits for every replica, and the tables exist at all starts but the first.
  if (!(await hasMigrations(client))) {
    await run(`create database if not exists ${database}`)
    await run(SCHEMA_MIGRATIONS.replaceAll('{database}', database))
  }
  await refuseOtherTables(client)
  const rows = await client.query<{ name: string }>('select distinct name from schema_migrations order by name')
  const applied = rows.map((row) => row.name)
  const missing = missingMigrations(`the ClickHouse database ${database}`, applied, known)
  const unknown = missing.length === 0 ? [] : await unknownSettings(client)
  for (const name of missing) {
    const text = withoutSettings(await readFile(join(directory, name), 'utf8'), unknown)
    for (const statement of statementsOf(text.replaceAll('{database}', database))) await run(statement)
    await client.command('insert into schema_migrations select {name:String}, now64(3)', { params: { name } })
    log.info('migrated ClickHouse', { name })
  }
}

async function hasMigrations({ query, database }: ColumnarClient): Promise<boolean> {
  const found = await query(
    `select 1 from system.tables where database = {database:String} and name = 'schema_migrations'`,
    { params: { database }, database: 'default' },
  )
  return found.length > 0
}

/** The optional settings that the server does not have. */
async function unknownSettings({ query }: ColumnarClient): Promise<string[]> {
  const sql = 'select name from system.merge_tree_settings where name in {names:Array(String)}'
  const found = await query<{ name: string }>(sql, { params: { names: OPTIONAL_SETTINGS }, database: 'default' })
  return OPTIONAL_SETTINGS.filter((name) => !found.some((each) => each.name === name))
}

/** Relies on each of the settings having a line of its own, with another setting below. */
function withoutSettings(text: string, names: readonly string[]): string {
  return names.reduce((rest, name) => rest.replace(new RegExp(`^ *${name} = \\d+,\n`, 'gm'), ''), text)
}

/** Statements end with a semicolon at the end of a line. */
function statementsOf(text: string): string[] {
  return text
    .split(/;[ \t]*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement.replace(/^\s*--.*$/gm, '').trim() !== '')
}
