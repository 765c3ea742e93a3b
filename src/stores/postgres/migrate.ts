import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import { listMigrations, missingMigrations } from '../../base/migrations.ts'
import { connectPostgres, inTransaction, type TransactionSql } from './connect.ts'

/** The directory of the migrations. */
export const MIGRATIONS_DIR = join(import.meta.dir, '..', '..', '..', 'sql', 'postgres')

/** Advisory lock of migrations; any number that no other program is likely to use on the same database. */
const MIGRATION_LOCK = 7_231_046_598_211

/** The lock of {@link withMigrationLock}: Postgres and ClickHouse can be migrated at the same time. */
const OTHER_MIGRATION_LOCK = MIGRATION_LOCK + 1

/** Migrating a large table, or waiting for another process that does, takes time. */
const MIGRATION_TIMEOUT_MS = 600_000

/**
 * Applies the missing `NNNN_name.sql` files of `directory`, in order, and records them, in one transaction. A lock
 * serializes processes that start at the same time.
 *
 * @throws StartError when the database has migrations that this version does not know
 */
export async function migratePostgres(url: string, log: Log, directory = MIGRATIONS_DIR): Promise<void> {
  const known = await listMigrations(directory)
  await underLock(url, log, MIGRATION_LOCK, async (tx) => {
    await tx`create table if not exists migrations (name text primary key, applied_at timestamptz(3) not null)`
    const rows = await tx<{ name: string }[]>`select name from migrations order by name`
    const applied = rows.map((row) => row.name)
    for (const name of missingMigrations('the Postgres database', applied, known)) {
      await tx.unsafe(await readFile(join(directory, name), 'utf8'))
      await tx`insert into migrations (name, applied_at) values (${name}, now())`
      log.info('migrated Postgres', { name })
    }
  })
}

/** Does `work` while no other process on this database does the same: for stores that have no lock of their own. */
export function withMigrationLock(url: string, log: Log, work: () => Promise<void>): Promise<void> {
  return underLock(url, log, OTHER_MIGRATION_LOCK, work)
}

async function underLock(url: string, log: Log, lock: number, work: (tx: TransactionSql) => Promise<void>) {
  const sql = connectPostgres(url, { log, max: 1, statementTimeoutMs: MIGRATION_TIMEOUT_MS })
  try {
    await inTransaction(sql, async (tx) => {
      await tx`select pg_advisory_xact_lock(${lock})`
      await work(tx)
    })
  } finally {
    await sql.end()
  }
}
