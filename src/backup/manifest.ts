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

/** A dumped Postgres table. */
export interface DumpedTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: number
}

/** The contents of a backup. It is written last: a folder without a manifest is not a complete backup. */
export interface Manifest {
  readonly format: 1
  /** Version of the service that was backed up. */
  readonly version: string
  readonly taken_at: string
  readonly epoch: string
  /** Everything that was acknowledged up to here is in the backup. */
  readonly end_seq: number
  /** Rows after this position are in the journal, but not yet in ClickHouse. */
  readonly loaded_seq: number
  /** How long appends were paused, milliseconds. */
  readonly held_ms: number
  readonly postgres: {
    readonly migrations: readonly string[]
    readonly tables: readonly DumpedTable[]
    readonly sequences: Readonly<Record<string, number>>
  }
  /** Rows in ClickHouse's parts; merges may reduce the number. */
  readonly clickhouse: { readonly rows: number }
  readonly files: readonly BackupFile[]
}

export const FORMAT = 1
const NAME = 'manifest.json'

/** @throws StartError when the folder is not a backup, or has an unknown format */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, NAME), 'utf8').catch(() => undefined)
  if (text === undefined) throw new StartError(`${folder} is not a complete backup: it has no ${NAME}`)
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
