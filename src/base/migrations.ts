import { readdir } from 'node:fs/promises'
import { StartError } from './start-error.ts'

/** The names of the migrations in `directory` (`NNNN_name.sql`), in order. */
export async function listMigrations(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => /^\d{4}_\w+\.sql$/.test(name)).sort()
}

/**
 * The known migrations that a database still lacks.
 *
 * @param store the database, in messages
 * @param applied in order
 * @throws StartError when the database was migrated by a newer or another version, or by one from before the first release
 */
export function missingMigrations(store: string, applied: readonly string[], known: readonly string[]): string[] {
  const at = applied.findIndex((name, i) => known[i] !== name)
  if (at < 0) return known.slice(applied.length)
  const name = applied[at]
  if (at === 0)
    throw new StartError(
      `${store} was written by an earlier, unreleased version: name an empty database. Nothing was changed.`,
    )
  throw new StartError(
    known.includes(name)
      ? `${store} has migration ${name} but lacks an earlier one: a different version migrated it`
      : `${store} was migrated by a newer version (migration ${name} is unknown): start that version or a later one`,
  )
}
