import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import { StartError } from '../ops/start-error.ts'
import { connectPostgres } from './connect.ts'

/** Where this binary's migrations are. */
export const MIGRATIONS_DIR = join(import.meta.dir, '..', '..', 'sql', 'postgres')

/** Any number that no other program is likely to lock on the same database. */
const MIGRATION_LOCK = 7_231_046_598_211

/** A migration of a big table, or the wait for another process that does one, takes its time. */
const MIGRATION_TIMEOUT_MS = 600_000

/**
 * Brings the database up to the `NNNN_name.sql` files of `directory`, in order. All that are missing, with their
 * records, are one transaction; two processes that start together take turns.
 *
 * @throws StartError when the database has migrations that this binary does not know
 */
export async function migratePostgres(url: string, log: Log, directory = MIGRATIONS_DIR): Promise<void> {
  const known = (await readdir(directory)).filter((name) => /^\d{4}_\w+\.sql$/.test(name)).sort()
  const sql = connectPostgres(url, { log, max: 1, statementTimeoutMs: MIGRATION_TIMEOUT_MS })
  try {
    await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${MIGRATION_LOCK})`
      await tx`create table if not exists migrations (name text primary key, applied_at timestamptz(3) not null)`
      const rows = await tx<{ name: string }[]>`select name from migrations order by name`
      const applied = rows.map((row) => row.name)
      refuseUnknown(applied, known)
      for (const name of known.slice(applied.length)) {
        await tx.unsafe(await readFile(join(directory, name), 'utf8'))
        await tx`insert into migrations (name, applied_at) values (${name}, now())`
        log.info('migrated Postgres', { name })
      }
    })
  } finally {
    await sql.end()
  }
}

function refuseUnknown(applied: readonly string[], known: readonly string[]): void {
  const stranger = applied.find((name, i) => known[i] !== name)
  if (stranger === undefined) return
  throw new StartError(
    known.includes(stranger)
      ? `the database has migration ${stranger} but lacks one before it: another version migrated it`
      : `the database was migrated by a newer version (${stranger} is unknown here): start that version or a later one`,
  )
}
