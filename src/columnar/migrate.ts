import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import { StartError } from '../ops/start-error.ts'
import type { ColumnarClient } from './client.ts'

/** The directory of the migrations. */
const MIGRATIONS_DIR = join(import.meta.dir, '..', '..', 'sql', 'clickhouse')

/** Migrating a large table takes time. */
const MIGRATION_TIMEOUT_MS = 600_000

/**
 * Creates the client's database and applies the missing `NNNN_name.sql` files of `directory`, in order. `{database}` in
 * the files stands for its name. ClickHouse has no transactional DDL, so every statement must be idempotent: a crash
 * between a file and its record repeats the file.
 *
 * @throws StartError when the database has migrations that this version does not know
 */
export async function migrateClickHouse(client: ColumnarClient, log: Log, directory = MIGRATIONS_DIR): Promise<void> {
  const known = (await readdir(directory)).filter((name) => /^\d{4}_\w+\.sql$/.test(name)).sort()
  const { database } = client
  const run = (sql: string) => client.command(sql, { database: 'default', timeoutMs: MIGRATION_TIMEOUT_MS })
  await run(`create database if not exists ${database}`)
  await run(`create table if not exists ${database}.schema_migrations (name String, applied_at DateTime64(3, 'UTC'))
             engine = MergeTree order by name settings fsync_after_insert = 1, fsync_part_directory = 1`)
  const rows = await client.query<{ name: string }>('select distinct name from schema_migrations order by name')
  const applied = rows.map((row) => row.name)
  refuseUnknown(applied, known)
  for (const name of known.slice(applied.length)) {
    const text = await readFile(join(directory, name), 'utf8')
    for (const statement of statementsOf(text.replaceAll('{database}', database))) await run(statement)
    await client.command('insert into schema_migrations select {name:String}, now64(3)', { params: { name } })
    log.info('migrated ClickHouse', { name })
  }
}

/** Statements end with a semicolon at the end of a line. */
function statementsOf(text: string): string[] {
  return text
    .split(/;[ \t]*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement.replace(/^\s*--.*$/gm, '').trim() !== '')
}

function refuseUnknown(applied: readonly string[], known: readonly string[]): void {
  const unexpected = applied.find((name, i) => known[i] !== name)
  if (unexpected === undefined) return
  throw new StartError(
    known.includes(unexpected)
      ? `ClickHouse has migration ${unexpected} but lacks an earlier one: a different version migrated it`
      : `ClickHouse was migrated by a newer version (migration ${unexpected} is unknown): start that version or a later one`,
  )
}
