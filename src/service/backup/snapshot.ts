import { copyFile, link, mkdir, readdir, readlink, realpath, rm, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { withTimeout } from '../../base/abort.ts'
import type { Log } from '../../base/log.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import { connectPostgres } from '../../stores/postgres/connect.ts'
import { SinkPositionFile } from '../../stores/sink/position.ts'

/** A consistent snapshot of a service's stores, held until they are copied. */
export interface Snapshot {
  readonly version: string
  readonly epoch: string
  readonly endSeq: number
  readonly loadedSeq: number
  readonly heldMs: number
  /** Postgres snapshot id, for `SET TRANSACTION SNAPSHOT`. */
  readonly postgresSnapshot: string
  /** Files to copy: their source, their path in a data directory, and how many bytes to copy. */
  readonly files: readonly SnapshotFile[]
}

interface SnapshotFile {
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
  /** Pauses loading into ClickHouse until the returned function is called. */
  readonly holdSink: (signal: AbortSignal) => Promise<() => void>
  readonly log: Log
  /** How long appends to the journal may wait for Postgres and the file system, milliseconds; loading waits up to twice as long. */
  readonly holdMaxMs?: number
}

/** How long to wait for a load in progress. */
const SINK_TIMEOUT_MS = 60_000
const HOLD_MAX_MS = 10_000
/** Timeout of copying Postgres. */
const COPY_MS = 12 * 3_600_000
/** ClickHouse escapes other characters in directory names. */
const PREFIX = 'backup_'

/**
 * Takes a consistent snapshot of the three stores. ClickHouse is frozen first, with loading paused. Then appends to the
 * journal wait while Postgres exports its snapshot and the journal's files are hard-linked. Rows that ClickHouse lacks
 * are in the journal.
 *
 * @returns what to copy, and a function that releases it
 */
export async function takeSnapshot(deps: SnapshotDeps): Promise<{ snapshot: Snapshot; release: () => Promise<void> }> {
  const { dataDir, columnar, journal, log } = deps
  const name = `${PREFIX}${crypto.randomUUID().replaceAll('-', '')}`
  // In the journal's directory, which may be a link to another disk: hard links cannot leave theirs.
  const work = join(dataDir, 'journal', name)
  const shadow = join(dataDir, 'clickhouse', 'shadow', name)
  const done = Promise.withResolvers<void>()
  const postgres = connectPostgres(deps.postgresUrl, { log, max: 1, statementTimeoutMs: COPY_MS })
  let transaction: Promise<unknown> = Promise.resolve()
  const release = async () => {
    done.resolve()
    // At the same time: a transaction in a database that no longer answers ends with its connection.
    await Promise.all([transaction.catch(() => {}), postgres.end({ timeout: 1 })])
    await Promise.all([work, shadow].map((path) => rm(path, { recursive: true, force: true })))
  }
  try {
    await mkdir(work, { mode: 0o700 })
    const releaseSink = await deps.holdSink(AbortSignal.timeout(SINK_TIMEOUT_MS))
    try {
      await freeze(columnar, name)
      const tables = await frozenFiles(join(dataDir, 'clickhouse'), shadow)
      const held = Promise.withResolvers<Awaited<ReturnType<typeof holdJournal>>>()
      transaction = postgres
        .begin('isolation level repeatable read, read only', async (sql) => {
          const holding = holdJournal(deps, work, () => sql<{ id: string }[]>`select pg_export_snapshot() as id`)
          // Not only what becomes of the transaction, which may take as long as Postgres does not answer.
          held.resolve(holding)
          await holding
          await done.promise
        })
        .catch(held.reject)
      const { heldMs, postgresSnapshot, endSeq, segments } = await withTimeout(
        held.promise,
        2 * (deps.holdMaxMs ?? HOLD_MAX_MS),
      )
      const position = await writeSinkPosition(join(dataDir, 'journal'), work)
      const files = [...segments, ...(await otherFiles(dataDir)), ...tables, position.file]
      const { epoch } = journal
      const { version } = deps
      const { loadedSeq } = position
      return { snapshot: { version, epoch, endSeq, loadedSeq, heldMs, postgresSnapshot, files }, release }
    } finally {
      releaseSink()
    }
  } catch (error) {
    await release().catch((failure) => log.warn('backup: its files could not be removed', { error: failure }))
    throw error
  }
}

/** Removes leftovers of a backup whose service was killed. No other process may use the directory. */
export async function sweepSnapshots(dataDir: string): Promise<void> {
  for (const dir of [join(dataDir, 'journal'), join(dataDir, 'clickhouse', 'shadow')]) {
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

/** Pauses appends while the journal and Postgres are captured: the moment of the backup. @throws Error when that takes too long */
async function holdJournal(deps: SnapshotDeps, work: string, exportSnapshot: ExportSnapshot) {
  const { journal, holdMaxMs = HOLD_MAX_MS } = deps
  const startedAt = performance.now()
  const over = new AbortController()
  const releaseJournal = await journal.hold()
  try {
    const captured = await withTimeout(capture(deps, work, exportSnapshot, over.signal), holdMaxMs)
    return { ...captured, endSeq: journal.endSeq, heldMs: performance.now() - startedAt }
  } finally {
    over.abort()
    releaseJournal()
  }
}

type ExportSnapshot = () => PromiseLike<{ id: string }[]>

/** @param signal when nobody waits for it any more: `work` is about to be removed */
async function capture({ dataDir }: SnapshotDeps, work: string, exportSnapshot: ExportSnapshot, signal: AbortSignal) {
  const [{ id }] = await exportSnapshot()
  const segments: SnapshotFile[] = []
  const dir = join(dataDir, 'journal')
  for (const name of await readdir(dir)) {
    signal.throwIfAborted()
    if (name.startsWith('sink.position') || name.startsWith(PREFIX)) continue
    const from = join(work, name)
    // Segments only grow, so a link is enough; the other files are small and overwritten.
    if (name.endsWith('.segment')) await link(join(dir, name), from)
    else await copyFile(join(dir, name), from)
    segments.push({ from, path: join('journal', name), bytes: (await stat(from)).size })
  }
  return { postgresSnapshot: id, segments }
}

/** Writes the sink's position as of the freeze. Rows after it that ClickHouse may already have must be deleted before loading. */
async function writeSinkPosition(journalDir: string, work: string) {
  const { loadedSeq, inFlightSeq, reloads, clearThroughSeq } = await SinkPositionFile.read(journalDir)
  const from = join(work, 'sink.position')
  const file = await SinkPositionFile.open(work)
  const mayHaveMore = inFlightSeq > loadedSeq || clearThroughSeq > 0
  await file.set({
    loadedSeq,
    inFlightSeq: loadedSeq,
    reloads: reloads + 1,
    clearThroughSeq: mayHaveMore ? Math.max(inFlightSeq, clearThroughSeq) : 0,
  })
  await file.close()
  return { loadedSeq, file: { from, path: join('journal', 'sink.position'), bytes: (await stat(from)).size } }
}

/** Files outside the stores. */
async function otherFiles(dataDir: string): Promise<SnapshotFile[]> {
  const names = await readdir(dataDir)
  const wanted = ['journal-id', 'secrets.key'].filter((name) => names.includes(name))
  return Promise.all(wanted.map((name) => fileOf(join(dataDir, name), name)))
}

/** The frozen parts and the tables' metadata. */
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
    const store = await realpath(resolve(metadata, await readlink(from)))
    for (const name of await readdir(store)) {
      const path = join(store, name)
      files.push(await fileOf(path, join('clickhouse', relative(await realpath(directory), path))))
    }
  }
  return files
}

async function fileOf(from: string, path: string): Promise<SnapshotFile> {
  return { from, path, bytes: (await stat(from)).size }
}
