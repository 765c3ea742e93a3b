import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import { StartError } from '../ops/start-error.ts'
import type { ColumnarClient } from './client.ts'

/** Where this binary's migrations are. */
const MIGRATIONS_DIR = join(import.meta.dir, '..', '..', 'sql', 'clickhouse')

/** A migration of a big table takes its time. */
const MIGRATION_TIMEOUT_MS = 600_000

/**
 * Brings the client's database, which it creates, up to the `NNNN_name.sql` files of `directory`, in order. The files
 * write `{database}` for its name. ClickHouse has no transactions over DDL, so each statement must bear being run
 * again: a crash between a file and its record repeats the file.
 *
 * @throws StartError when the database has migrations that this binary does not know
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
  const stranger = applied.find((name, i) => known[i] !== name)
  if (stranger === undefined) return
  throw new StartError(
    known.includes(stranger)
      ? `ClickHouse has migration ${stranger} but lacks one before it: another version migrated it`
      : `ClickHouse was migrated by a newer version (${stranger} is unknown here): start that version or a later one`,
  )
}
