import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '../ops/start-error.ts'

/** A file of a backup, by its path in the folder. */
export interface BackupFile {
  readonly path: string
  readonly bytes: number
  /** Hexadecimal. */
  readonly sha256: string
}

/** A table of Postgres as it was dumped. */
export interface DumpedTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: number
}

/** What a backup consists of. It is written last: a folder without one is no backup. */
export interface Manifest {
  readonly format: 1
  /** Of the service that was backed up. */
  readonly version: string
  readonly taken_at: string
  readonly epoch: string
  /** Everything that was acknowledged up to here is in the backup. */
  readonly end_seq: number
  /** Rows after it are in the journal, and not in ClickHouse yet. */
  readonly loaded_seq: number
  /** How long reporting was held up, milliseconds. */
  readonly held_ms: number
  readonly postgres: {
    readonly migrations: readonly string[]
    readonly tables: readonly DumpedTable[]
    readonly sequences: Readonly<Record<string, number>>
  }
  /** Rows in the parts of ClickHouse; merging them may make it fewer. */
  readonly clickhouse: { readonly rows: number }
  readonly files: readonly BackupFile[]
}

export const FORMAT = 1
const NAME = 'manifest.json'

/** @throws StartError when the folder is no backup, or one of another kind */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, NAME), 'utf8').catch(() => undefined)
  if (text === undefined) throw new StartError(`${folder} is no complete backup: it has no ${NAME}`)
  const manifest = parse(text)
  if (manifest?.format === FORMAT) return manifest
  throw new StartError(`${join(folder, NAME)} cannot be read by this version of the service`)
}

export async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const path = join(folder, NAME)
  await writeFile(`${path}.new`, `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

function parse(text: string): Manifest | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
