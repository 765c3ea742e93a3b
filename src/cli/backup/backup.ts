import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isPartitioned } from '../../base/data-dir.ts'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import { askForSnapshot } from '../../service/backup/control.ts'
import { type Snapshot, takeSnapshot } from '../../service/backup/snapshot.ts'
import type { Config } from '../../service/config/config.ts'
import { openEmbeddedPostgres, openStopped } from './embedded.ts'
import { copyFile } from './files.ts'
import { type BackupFile, FORMAT, type Manifest, type SignedManifest, writeManifest } from './manifest.ts'
import { dumpPostgres } from './postgres-dump.ts'
import type { ReportProgress } from './report.ts'
import { restoreBackup, signerOf } from './restore.ts'

interface BackupOptions {
  readonly config: Pick<Config, 'dataDir' | 'databaseUrl' | 'clickhouseUrl'>
  /** Target folder; it must be missing or empty. */
  readonly folder: string
  /** Verifies the backup by restoring it into a temporary directory. */
  readonly isVerified: boolean
  readonly log: Log
  readonly report: ReportProgress
}

/**
 * Copies the stores of an embedded service, running or stopped, at one position.
 * @throws StartError for problems that the operator can fix
 */
export async function takeBackup({
  config,
  folder: target,
  isVerified,
  log,
  report,
}: BackupOptions): Promise<SignedManifest> {
  const { dataDir } = config
  if (config.databaseUrl !== undefined || config.clickhouseUrl !== undefined)
    throw new StartError(
      'with DATABASE_URL or CLICKHOUSE_URL, back up those servers with their own tools: see docs/operations.md',
    )
  if (isPartitioned(dataDir))
    throw new StartError(
      'a service with WORKERS is backed up by copying DATA_DIR while it is stopped: see docs/operations.md',
    )
  const folder = await openFolder(target)
  const held = await report.during('holding the stores at one position', undefined, () => hold(dataDir, log))
  let manifest: Manifest
  try {
    manifest = await copyAll({ ...held, folder, log, report })
  } finally {
    await held.release()
  }
  const signed = await writeManifest(folder, manifest, signerOf(folder))
  if (isVerified) await verifyByRestoring(folder, log, report)
  return signed
}

interface HeldStores {
  readonly snapshot: Snapshot
  readonly postgresUrl: string
  readonly takenAt: Date
  readonly release: () => Promise<void>
}

/** Takes a snapshot of the running service, or of the data directory if none is running. */
async function hold(dataDir: string, log: Log): Promise<HeldStores> {
  const takenAt = new Date()
  const running = await askForSnapshot(dataDir)
  if (running !== undefined) {
    const postgres = await openEmbeddedPostgres(dataDir)
    const release = () => running.release().finally(postgres.close)
    return { snapshot: running.snapshot, postgresUrl: postgres.url, takenAt, release }
  }
  const stopped = await openStopped(dataDir, log)
  try {
    const { snapshot, release } = await takeSnapshot(stopped)
    return { snapshot, postgresUrl: stopped.postgresUrl, takenAt, release: () => release().finally(stopped.close) }
  } catch (error) {
    await stopped.close()
    throw error
  }
}

async function copyAll({
  snapshot,
  postgresUrl,
  takenAt,
  folder,
  log,
  report,
}: HeldStores & Pick<BackupOptions, 'folder' | 'log' | 'report'>): Promise<Manifest> {
  const files: BackupFile[] = []
  let rows = 0
  const total = snapshot.files.reduce((sum, { bytes }) => sum + bytes, 0)
  await report.during('copying the journal and ClickHouse', total, async (onBytes) => {
    for (const { from, path, bytes } of snapshot.files) {
      const copied = await copyFile(from, join(folder, path), bytes, onBytes)
      if (copied.bytes !== bytes) throw new StartError(`${from} changed while it was copied`)
      files.push({ path, ...copied })
      if (/^clickhouse\/store\/.*\/count\.txt$/.test(path)) rows += Number(await readFile(join(folder, path), 'utf8'))
    }
  })
  const postgres = await report.during('copying Postgres', undefined, (onBytes) =>
    dumpPostgres({ url: postgresUrl, snapshot: snapshot.postgresSnapshot, folder, log }, onBytes),
  )
  for (const name of await readdir(join(folder, 'postgres'))) files.push(await describe(folder, join('postgres', name)))
  return {
    format: FORMAT,
    version: snapshot.version,
    taken_at: takenAt.toISOString(),
    epoch: snapshot.epoch,
    end_seq: snapshot.endSeq,
    loaded_seq: snapshot.loadedSeq,
    held_ms: Math.round(snapshot.heldMs),
    postgres,
    clickhouse: { rows },
    files,
  }
}

async function describe(folder: string, path: string): Promise<BackupFile> {
  const hash = new Bun.CryptoHasher('sha256')
  let bytes = 0
  for await (const chunk of Bun.file(join(folder, path)).stream()) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { path, bytes, sha256: hash.digest('hex') }
}

/** Restores beside the backup folder, which has the space and which the Postgres user can access. */
async function verifyByRestoring(folder: string, log: Log, report: ReportProgress): Promise<void> {
  const parent = await mkdtemp(join(dirname(folder), `.${basename(folder)}-check-`))
  try {
    await chmod(parent, process.getuid?.() === 0 ? 0o711 : 0o700)
    await restoreBackup({ folder, dataDir: join(parent, 'data'), log, report })
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}

/** Creates the folder. @returns its real path: beside a link to it there may be no space */
async function openFolder(target: string): Promise<string> {
  if (existsSync(target) && (await readdir(target)).length > 0)
    throw new StartError(`${target} is not empty: choose a new folder`)
  try {
    await mkdir(target, { recursive: true, mode: 0o700 })
    await chmod(target, 0o700)
    return await realpath(target)
  } catch (cause) {
    throw new StartError(`${target} cannot be created: ${(cause as Error).message}`, { cause })
  }
}
