import { mkdir, readdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type FileLock, LOCK_NAME, RESTORING_NAME, takeFileLock, writeFormat } from '../../base/data-dir.ts'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import { markRestored, StoreMarkFile } from '../../service/store-marks/mark-file.ts'
import { Identity } from '../../stores/journal/local/identity.ts'
import { openStores, startPostgres } from './embedded.ts'
import { copyFile, verifyFile } from './files.ts'
import { checkSignature, type Manifest, readManifest, type Sign } from './manifest.ts'
import { loadPostgres } from './postgres-dump.ts'
import type { ReportProgress } from './report.ts'

interface RestoreOptions {
  readonly folder: string
  readonly dataDir: string
  /** The signature that `backup` printed; undefined accepts any backup that is sound in itself. */
  readonly signature?: string | undefined
  readonly log: Log
  readonly report: ReportProgress
}

/**
 * Restores a backup into an empty data directory and opens the stores there to verify them. The next start of the service
 * begins a new epoch.
 *
 * @throws StartError when the directory is not empty, the backup is damaged, tampered with, another one, or of a newer version
 */
export async function restoreBackup({ folder, dataDir, signature, log, report }: RestoreOptions): Promise<Manifest> {
  const manifest = await readManifest(folder)
  checkSignature(manifest, signerOf(folder), signature)
  const { lock, isCreated } = await claim(dataDir)
  try {
    await report.during('checking the backup', bytesOf(manifest.files), async (onBytes) => {
      for (const file of manifest.files) await verifyFile(folder, file, onBytes)
    })
    const stored = manifest.files.filter(({ path }) => !path.startsWith('postgres/'))
    await report.during('copying the journal and ClickHouse', bytesOf(stored), async (onBytes) => {
      for (const { path, bytes, sha256 } of stored) {
        const copied = await copyFile(join(folder, path), join(dataDir, path), bytes, onBytes)
        if (copied.sha256 !== sha256) throw new StartError(`the backup is damaged: ${path} changed while it was copied`)
      }
    })
    await report.during('loading Postgres', undefined, async () => {
      const postgres = await startPostgres(dataDir, log)
      await loadPostgres({ url: postgres.url, dump: manifest.postgres, folder, log }).finally(postgres.stop)
    })
    await report.during('opening the stores', undefined, () => checkStores(dataDir, manifest, log))
    await forgetColumnarBeat(dataDir)
    markRestored(dataDir)
    writeFormat(dataDir)
    await rm(join(dataDir, RESTORING_NAME))
    return manifest
  } catch (error) {
    // If the directory was there before, only its contents are removed: it may be a mount point.
    for (const name of await readdir(dataDir)) await rm(join(dataDir, name), { recursive: true, force: true })
    if (isCreated) await rmdir(dataDir)
    throw error
  } finally {
    lock.close()
  }
}

/**
 * Takes an empty directory, before anything else is done: checking and copying take long, and a service that was started there
 * meanwhile would lose what it acknowledges.
 *
 * @throws StartError when it is not empty, or somebody else takes it at the same time
 */
async function claim(dataDir: string): Promise<{ readonly lock: FileLock; readonly isCreated: boolean }> {
  // A directory of root must be searchable, because Postgres in it runs as another user.
  const created = await mkdir(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 }).catch(
    (cause) => {
      throw new StartError(`DATA_DIR ${dataDir} cannot be created: ${cause.message}`, { cause })
    },
  )
  const notEmpty = () =>
    new StartError(`DATA_DIR ${dataDir} is not empty: restore into a new directory, and start the service with it`)
  if ((await readdir(dataDir)).length > 0) throw notEmpty()
  const marker = join(dataDir, RESTORING_NAME)
  await writeFile(marker, '', { mode: 0o600, flag: 'wx' }).catch((cause) => {
    throw cause.code === 'EEXIST' ? notEmpty() : cause
  })
  const lock = takeFileLock(join(dataDir, LOCK_NAME))
  if (lock !== null) return { lock, isCreated: created !== undefined }
  // A service that has looked for the marker before it was there.
  await rm(marker)
  throw notEmpty()
}

/** Signs with the key of the journal in the backup. @throws StartError when the backup has none */
export function signerOf(folder: string): Sign {
  const identity = Identity.read(join(folder, 'journal'))
  if (identity === undefined) throw new StartError('the backup is damaged: the key of its journal cannot be read')
  return (text) => identity.signatureOf('backup manifest', text)
}

/** ClickHouse was frozen first, so it may lack the last beat that the others know; rows that it lacks are in the journal. */
async function forgetColumnarBeat(dataDir: string): Promise<void> {
  const file = StoreMarkFile.read(join(dataDir, 'journal'))
  await file.set({ ...file.get(), columnarBeat: 0 })
}

/** @throws StartError when a store does not match the manifest */
async function checkStores(dataDir: string, manifest: Manifest, log: Log): Promise<void> {
  const { columnar, journal, close } = await openStores(dataDir, log)
  try {
    if (journal.endSeq !== manifest.end_seq)
      throw new StartError(
        `the backup is damaged: its journal ends at ${journal.endSeq} instead of ${manifest.end_seq}`,
      )
    const [{ broken }] = await columnar.query<{ broken: number }>('select count() as broken from system.detached_parts')
    const [{ rows }] = await columnar.query<{ rows: number }>(
      'select sum(rows) as rows from system.parts where active and database = currentDatabase()',
    )
    const isEmpty = rows === 0 && manifest.clickhouse.rows > 0
    if (broken > 0 || isEmpty || rows > manifest.clickhouse.rows)
      throw new StartError(
        `the backup is damaged: ClickHouse has ${rows} rows, and ${broken} parts that it cannot read`,
      )
  } finally {
    await close()
  }
}

function bytesOf(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0)
}
