import { copyFile, link, mkdir, readdir, readlink, rm, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { ColumnarClient } from '../columnar/client.ts'
import { readSinkPosition } from '../columnar/sink.ts'
import { SinkPositionFile } from '../columnar/sink-position.ts'
import type { Log } from '../log.ts'
import { connectPostgres } from '../postgres/connect.ts'

/** The stores of a service, held together at one position for as long as it takes to copy them. */
export interface Snapshot {
  readonly version: string
  readonly epoch: string
  readonly endSeq: number
  readonly loadedSeq: number
  readonly heldMs: number
  /** Of Postgres, for `SET TRANSACTION SNAPSHOT`. */
  readonly postgresSnapshot: string
  /** Files to copy: where they are, where they belong in a data directory, and how much of them counts. */
  readonly files: readonly SnapshotFile[]
}

export interface SnapshotFile {
  readonly from: string
  readonly path: string
  readonly bytes: number
}

export interface SnapshotDeps {
  readonly version: string
  readonly dataDir: string
  readonly postgresUrl: string
  readonly columnar: ColumnarClient
  readonly journal: { readonly epoch: string; readonly endSeq: number; hold(): Promise<() => void> }
  /** Lets nothing be loaded into ClickHouse until the function it answers is called. */
  readonly holdSink: (signal: AbortSignal) => Promise<() => void>
  readonly log: Log
}

/** The load under way may take so long. */
const SINK_PATIENCE_MS = 60_000
/** Copying Postgres may take so long. */
const COPY_MS = 12 * 3_600_000
/** ClickHouse writes other characters than these differently into the name of a directory. */
const PREFIX = 'backup_'

/**
 * Holds the three stores at one position. ClickHouse is frozen first, with nothing being loaded; then appends to the journal wait
 * while Postgres exports its snapshot and the journal's files get a second name. What ClickHouse lacks then is in the journal.
 *
 * @returns what to copy, and a function that lets go of it
 */
export async function takeSnapshot(deps: SnapshotDeps): Promise<{ snapshot: Snapshot; release: () => Promise<void> }> {
  const { dataDir, columnar, journal, log } = deps
  const name = `${PREFIX}${crypto.randomUUID().replaceAll('-', '')}`
  const work = join(dataDir, name)
  const shadow = join(dataDir, 'clickhouse', 'shadow', name)
  const done = Promise.withResolvers<void>()
  const postgres = connectPostgres(deps.postgresUrl, { log, max: 1, statementTimeoutMs: COPY_MS })
  let transaction: Promise<unknown> = Promise.resolve()
  const release = async () => {
    done.resolve()
    await transaction.catch(() => {})
    await postgres.end({ timeout: 1 })
    await Promise.all([work, shadow].map((path) => rm(path, { recursive: true, force: true })))
  }
  try {
    await mkdir(work, { mode: 0o700 })
    const releaseSink = await deps.holdSink(AbortSignal.timeout(SINK_PATIENCE_MS))
    try {
      await freeze(columnar, name)
      const tables = await frozenFiles(join(dataDir, 'clickhouse'), shadow)
      const held = Promise.withResolvers<Held>()
      transaction = postgres
        .begin('isolation level repeatable read, read only', async (sql) => {
          held.resolve(await holdJournal(deps, work, () => sql<{ id: string }[]>`select pg_export_snapshot() as id`))
          await done.promise
        })
        .catch(held.reject)
      const { heldMs, postgresSnapshot, endSeq, segments } = await held.promise
      const position = await noteSinkPosition(join(dataDir, 'journal'), work)
      const files = [...segments, ...(await restOf(dataDir)), ...tables, position.file]
      const { epoch } = journal
      const { version } = deps
      const { loadedSeq } = position
      return { snapshot: { version, epoch, endSeq, loadedSeq, heldMs, postgresSnapshot, files }, release }
    } finally {
      releaseSink()
    }
  } catch (error) {
    await release()
    throw error
  }
}

/** Removes what a backup has left behind whose service was killed. Nobody else may be using the directory. */
export async function sweepSnapshots(dataDir: string): Promise<void> {
  for (const dir of [dataDir, join(dataDir, 'clickhouse', 'shadow')]) {
    const names = await readdir(dir).catch(() => [])
    const left = names.filter((name) => name.startsWith(PREFIX))
    await Promise.all(left.map((name) => rm(join(dir, name), { recursive: true, force: true })))
  }
}

async function freeze(columnar: ColumnarClient, name: string): Promise<void> {
  const tables = await columnar.query<{ name: string }>(
    `select name from system.tables where database = {database:String} and engine like '%MergeTree'`,
    { params: { database: columnar.database } },
  )
  for (const { name: table } of tables) await columnar.command(`alter table ${table} freeze with name '${name}'`)
}

interface Held {
  readonly heldMs: number
  readonly postgresSnapshot: string
  readonly endSeq: number
  readonly segments: readonly SnapshotFile[]
}

/** The moment of the backup: what is acknowledged waits for it. */
async function holdJournal(
  { dataDir, journal }: SnapshotDeps,
  work: string,
  exportSnapshot: () => PromiseLike<{ id: string }[]>,
): Promise<Held> {
  const startedAt = performance.now()
  const releaseJournal = await journal.hold()
  try {
    const [{ id }] = await exportSnapshot()
    const segments: SnapshotFile[] = []
    const dir = join(dataDir, 'journal')
    for (const name of await readdir(dir)) {
      if (name.startsWith('sink.position')) continue
      const from = join(work, name)
      // A segment only grows; the others are small, and written over.
      if (name.endsWith('.segment')) await link(join(dir, name), from)
      else await copyFile(join(dir, name), from)
      segments.push({ from, path: join('journal', name), bytes: (await stat(from)).size })
    }
    return { postgresSnapshot: id, endSeq: journal.endSeq, segments, heldMs: performance.now() - startedAt }
  } finally {
    releaseJournal()
  }
}

/** The sink's position as ClickHouse was frozen: what is after it, and there all the same, is to be deleted first. */
async function noteSinkPosition(journalDir: string, work: string) {
  const { loadedSeq, inFlightSeq, reloads, clearThroughSeq } = await readSinkPosition(journalDir)
  const from = join(work, 'sink.position')
  const file = await SinkPositionFile.open(from)
  const isUnsure = inFlightSeq > loadedSeq || clearThroughSeq > 0
  await file.set({
    loadedSeq,
    inFlightSeq: loadedSeq,
    reloads: reloads + 1,
    clearThroughSeq: isUnsure ? Math.max(inFlightSeq, clearThroughSeq) : 0,
  })
  await file.close()
  return { loadedSeq, file: { from, path: join('journal', 'sink.position'), bytes: (await stat(from)).size } }
}

/** What is in no store. */
async function restOf(dataDir: string): Promise<SnapshotFile[]> {
  const names = await readdir(dataDir)
  const wanted = ['journal-id', 'secrets.key'].filter((name) => names.includes(name))
  return Promise.all(wanted.map((name) => fileOf(join(dataDir, name), name)))
}

/** Parts that were frozen, and what describes their tables. */
async function frozenFiles(directory: string, shadow: string): Promise<SnapshotFile[]> {
  const files: SnapshotFile[] = []
  const frozen = await readdir(shadow, { recursive: true, withFileTypes: true })
  for (const entry of frozen) {
    if (!entry.isFile() || !entry.parentPath.startsWith(join(shadow, 'store'))) continue
    const from = join(entry.parentPath, entry.name)
    files.push(await fileOf(from, join('clickhouse', relative(shadow, from))))
  }
  for (const path of new Bun.Glob('store/*/*/format_version.txt').scanSync(directory))
    files.push(await fileOf(join(directory, path), join('clickhouse', path)))
  const metadata = join(directory, 'metadata')
  for (const entry of await readdir(metadata, { withFileTypes: true })) {
    const from = join(metadata, entry.name)
    if (entry.isFile()) files.push(await fileOf(from, join('clickhouse', 'metadata', entry.name)))
    if (!entry.isSymbolicLink()) continue
    const store = join(metadata, await readlink(from))
    for (const name of await readdir(store)) {
      const path = join(store, name)
      files.push(await fileOf(path, join('clickhouse', relative(directory, path))))
    }
  }
  return files
}

async function fileOf(from: string, path: string): Promise<SnapshotFile> {
  return { from, path, bytes: (await stat(from)).size }
}
