import { lstat, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parsedJson } from '../../base/json-object.ts'
import { StartError } from '../../base/start-error.ts'

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

/** A manifest with its signature by the journal's key; see docs/backup.md for what it proves. */
export interface SignedManifest extends Manifest {
  readonly signature: string
}

export const FORMAT = 1
const NAME = 'manifest.json'

/** What a backup contains. Nothing else may be named, so that no file is read or written outside of the folders. */
const PATH = /^(?:(?:journal|clickhouse|postgres)(?:\/[\w.%-]+)+|journal-id|secrets\.key)$/
const MIGRATION = /^\w[\w.-]*\.sql$/
const IDENTIFIER = /^[a-z_][a-z0-9_]*$/

/** The path of the rows of a table. */
export function dumpOf(table: string): string {
  return `postgres/${table}.copy.zst`
}

/** Signs a text with the key of the journal in the backup. */
export type Sign = (text: string) => string

/**
 * Reads a manifest and checks every name in it, and that the folder has exactly these as regular files, not links.
 * @throws StartError when the folder is not a backup, has an unknown format, or names anything that a backup cannot contain
 */
export async function readManifest(folder: string): Promise<SignedManifest> {
  const text = await readFile(join(folder, NAME), 'utf8').catch(() => undefined)
  if (text === undefined) throw new StartError(`${folder} is not a complete backup: it has no ${NAME}`)
  const manifest = parsedJson(text) as SignedManifest | undefined
  if (manifest?.format !== FORMAT)
    throw new StartError(`${join(folder, NAME)} cannot be read by this version of the service`)
  refuseNames(manifest)
  await refuseLinks(folder, manifest.files)
  return manifest
}

/** @throws StartError when the manifest is not what the service wrote, or not the backup that the operator expects */
export function checkSignature({ signature, ...manifest }: SignedManifest, sign: Sign, expected?: string): void {
  if (signature !== sign(textOf(manifest)))
    throw new StartError(`the backup is damaged or has been tampered with: ${NAME} does not match its signature`)
  if (expected !== undefined && expected !== signature)
    throw new StartError(`this is another backup: its signature is ${signature}`)
}

/** @returns the manifest with its signature */
export async function writeManifest(folder: string, manifest: Manifest, sign: Sign): Promise<SignedManifest> {
  const path = join(folder, NAME)
  const signed = { ...manifest, signature: sign(textOf(manifest)) }
  await writeFile(`${path}.new`, `${JSON.stringify(signed, null, 1)}\n`, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
  return signed
}

function textOf(manifest: Manifest): string {
  return JSON.stringify(manifest)
}

/** @throws StartError also when a part is missing or of another type */
function refuseNames(manifest: Manifest): void {
  let bad: string | undefined
  try {
    bad = badNameIn(manifest)
  } catch {
    throw tampered('it is incomplete')
  }
  if (bad !== undefined) throw tampered(`it names ${JSON.stringify(bad)}`)
}

function badNameIn({ files, postgres }: Manifest): string | undefined {
  const seen = new Set<unknown>()
  const isSound = ({ path, bytes, sha256 }: BackupFile) =>
    isName(path, PATH) &&
    !path.split('/').includes('..') &&
    !path.split('/').includes('.') &&
    !seen.has(path) &&
    seen.add(path) &&
    Number.isSafeInteger(bytes) &&
    bytes >= 0 &&
    isName(sha256, /^[\da-f]{64}$/)
  return (
    files.find((file) => !isSound(file))?.path ??
    postgres.migrations.find((name) => !isName(name, MIGRATION)) ??
    postgres.tables.find(({ name, columns }) => ![name, ...columns].every((each) => isName(each, IDENTIFIER)))?.name ??
    // What is loaded is what was checked.
    postgres.tables.find(({ name }) => !seen.has(dumpOf(name)))?.name ??
    Object.keys(postgres.sequences).find((name) => !isName(name, IDENTIFIER))
  )
}

function isName(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}

function tampered(why: string): StartError {
  return new StartError(`the backup is damaged or has been tampered with: ${NAME} does not describe a backup: ${why}`)
}

async function refuseLinks(folder: string, files: readonly BackupFile[]): Promise<void> {
  const checked = new Set<string>()
  for (const { path } of files) {
    const names = path.split('/')
    for (let depth = 1; depth <= names.length; depth++) {
      const part = names.slice(0, depth).join('/')
      if (checked.has(part)) continue
      checked.add(part)
      const found = await lstat(join(folder, part)).catch(() => undefined)
      if (found === undefined) throw new StartError(`the backup is damaged: ${path} is missing`)
      const isRight = depth === names.length ? found.isFile() : found.isDirectory()
      if (!isRight) throw new StartError(`the backup has been tampered with: ${part} is a link or a special file`)
    }
  }
}
