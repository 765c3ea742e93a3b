import { createReadStream, createWriteStream } from 'node:fs'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import { connectPostgres, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import { MIGRATIONS_DIR, migratePostgres } from '../../stores/postgres/migrate.ts'
import { type DumpedTable, dumpOf, type Manifest } from './manifest.ts'

type Dump = Manifest['postgres']

const COPY_MS = 12 * 3_600_000
const DIR = 'postgres'

/** Dumps every table of the exported snapshot into `<folder>/postgres`. */
export async function dumpPostgres(
  { url, snapshot, folder, log }: { url: string; snapshot: string; folder: string; log: Log },
  onBytes: (bytes: number) => void,
): Promise<Dump> {
  await mkdir(join(folder, DIR), { mode: 0o700 })
  const pool = connectPostgres(url, { log, max: 1, statementTimeoutMs: COPY_MS })
  try {
    return (await pool.begin('isolation level repeatable read, read only', async (tx) => {
      const sql = tx as unknown as TransactionSql
      await sql.unsafe(`set transaction snapshot '${snapshot}'`)
      const migrations = await sql<{ name: string }[]>`select name from migrations order by name`
      const tables: DumpedTable[] = []
      for (const { name, columns } of await listTables(sql)) {
        const [{ rows }] = await sql<{ rows: number }[]>`select count(*) as rows from ${sql(name)}`
        const source = await sql`copy ${sql(name)} (${sql(columns)}) to stdout`.readable()
        const count = new Transform({
          transform(chunk, _encoding, done) {
            onBytes(chunk.length)
            done(null, chunk)
          },
        })
        const file = createWriteStream(join(folder, dumpOf(name)), { mode: 0o600, flush: true })
        await pipeline(source, count, createZstdCompress(), file)
        tables.push({ name, columns, rows })
      }
      const sequences = await sql<{ name: string; value: number | null }[]>`
        select sequencename as name, last_value as value from pg_sequences where schemaname = current_schema()`
      const known = sequences.flatMap(({ name, value }) => (value === null ? [] : [[name, value] as const]))
      return { migrations: migrations.map(({ name }) => name), tables, sequences: Object.fromEntries(known) }
    })) as Dump
  } finally {
    await pool.end({ timeout: 1 })
  }
}

/**
 * Loads `<folder>/postgres` into an empty database, with the schema of the version that was backed up.
 * @throws StartError when rows of a table are missing, or the backup is from a newer version
 */
export async function loadPostgres({
  url,
  dump,
  folder,
  log,
}: {
  url: string
  dump: Dump
  folder: string
  log: Log
}): Promise<void> {
  await migrateToVersion(url, dump.migrations, log)
  const pool = connectPostgres(url, { log, max: 1, statementTimeoutMs: COPY_MS })
  try {
    await pool.begin(async (tx) => {
      const sql = tx as unknown as TransactionSql
      // Disables foreign keys: rows are loaded table by table and may refer to later tables.
      await sql`set local session_replication_role = replica`
      await sql`truncate ${sql(dump.tables.map(({ name }) => name))}`
      for (const { name, columns, rows } of dump.tables) {
        const target = await sql`copy ${sql(name)} (${sql(columns)}) from stdin`.writable()
        await pipeline(createReadStream(join(folder, dumpOf(name))), createZstdDecompress(), target)
        const [{ found }] = await sql<{ found: number }[]>`select count(*) as found from ${sql(name)}`
        if (found !== rows)
          throw new StartError(`the backup is damaged: table ${name} has ${found} rows instead of ${rows}`)
      }
      // As in the file beside the journal: see `forgetColumnarBeat`.
      await sql`update store_marks set columnar_beat = 0`
      for (const [name, value] of Object.entries(dump.sequences)) await sql`select setval(${name}::regclass, ${value})`
    })
  } finally {
    await pool.end({ timeout: 1 })
  }
}

/** Creates the tables of that version, so that later migrations also migrate the restored rows. */
async function migrateToVersion(url: string, migrations: readonly string[], log: Log): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'agent-run-restore-'))
  try {
    for (const name of migrations)
      await cp(join(MIGRATIONS_DIR, name), join(directory, name)).catch((cause) => {
        throw new StartError(
          `the backup is of a newer version (${name} is unknown here): restore it with that version`,
          {
            cause,
          },
        )
      })
    await migratePostgres(url, log, directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function listTables(sql: Sql | TransactionSql): Promise<{ name: string; columns: string[] }[]> {
  return sql<{ name: string; columns: string[] }[]>`
    select t.table_name::text as name, array_agg(c.column_name::text order by c.ordinal_position) as columns
    from information_schema.tables t
    join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name
    where t.table_schema = current_schema() and t.table_type = 'BASE TABLE' and c.is_generated = 'NEVER'
    group by t.table_name order by t.table_name`
}
