import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from './start-error.ts'

/** A data directory that is locked by this process until it is released or the process ends. */
export interface DataDir {
  readonly path: string
  /** Unique among all processes that ever held the directory. */
  readonly instanceId: string
  /** The previous holder, which has ended. */
  readonly previousInstanceId: string | undefined
  release(): void
}

/** The contents of the file `holder`: the process that has the lock, or had it last. */
interface Holder {
  readonly pid?: number
  readonly instance_id?: string
}

/** A file that exists while a backup is being restored into the directory. */
export const RESTORING_NAME = 'restoring'

/** The lock of the process that uses the directory. */
export const LOCK_NAME = 'lock'

/** The version of everything in the directory except the databases, which count their migrations. It is in this file. */
const FORMAT = 1
const FORMAT_NAME = 'format'
/** Entries that show that a service has used the directory. */
const CONTENTS = ['holder', 'journal', 'postgres', 'clickhouse']

/** A file that exists once several processes have shared the directory. */
const PARTITIONED_NAME = 'partitioned'

/** With less free space the service could not run for long. */
const FREE_BYTES_MIN = 64 * 1024 * 1024

/**
 * Creates the directory if it is missing and takes its lock, because two processes would corrupt the journal.
 *
 * @throws StartError when it cannot be written, its disk is full, or another process holds it (the message has its pid)
 */
export function openDataDir(path: string): DataDir {
  const dataDir = tryDataDir(path)
  if (dataDir !== null) return dataDir
  const { pid } = readHolder(join(path, 'holder'))
  throw new StartError(`DATA_DIR ${path} is in use by process ${pid ?? '(unknown)'}: stop it, or set another DATA_DIR`)
}

/** Like {@link openDataDir}, but returns null when another process holds it. @throws StartError */
export function tryDataDir(path: string): DataDir | null {
  const file = join(path, 'holder')
  try {
    // Others may enter root's directory, because its database runs as another user, but they cannot read its contents.
    mkdirSync(path, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
    const { bavail, bsize } = statfsSync(path)
    if (bavail * bsize < FREE_BYTES_MIN) throw new StartError(`the disk of DATA_DIR ${path} is full`)
    if (existsSync(join(path, RESTORING_NAME)))
      throw new StartError(`DATA_DIR ${path} contains an incomplete restore: empty it and restore again`)
    const isNew = refuseOtherFormat(path)
    const lock = takeFileLock(join(path, LOCK_NAME))
    if (lock === null) return null
    try {
      if (isNew) writeFormat(path)
      const { instance_id } = readHolder(file)
      const instanceId = crypto.randomUUID()
      writeFileSync(file, JSON.stringify({ pid: process.pid, instance_id: instanceId } satisfies Holder))
      return { path, instanceId, previousInstanceId: instance_id, release: () => lock.close() }
    } catch (error) {
      lock.close()
      throw error
    }
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`DATA_DIR ${path} cannot be used: ${reason(error)}`, { cause: error })
  }
}

/** Marks a directory as one that this version can open. */
export function writeFormat(path: string): void {
  const file = join(path, FORMAT_NAME)
  writeFileSync(`${file}.new`, `${FORMAT}\n`, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
}

/** @returns whether the directory has no format yet. @throws StartError, before anything in the directory is changed */
function refuseOtherFormat(path: string): boolean {
  // Read before the format: a process that starts at the same time writes the format first.
  const isUsed = CONTENTS.some((name) => existsSync(join(path, name)))
  const file = join(path, FORMAT_NAME)
  if (!existsSync(file)) {
    if (!isUsed) return true
    throw new StartError(
      `DATA_DIR ${path} was written by an earlier, unreleased version: move it away or start with an empty directory. Nothing was changed.`,
    )
  }
  const format = readFileSync(file, 'utf8').trim()
  if (format !== String(FORMAT))
    throw new StartError(`DATA_DIR ${path} has format ${format}, of a newer version: start that version or a later one`)
  return false
}

/** Whether the journal in a data directory has partitions, which only workers can write (`WORKERS`). */
export function isPartitioned(path: string): boolean {
  return existsSync(join(path, PARTITIONED_NAME))
}

/** Records that the journal in this directory has partitions. */
export function markPartitioned(path: string): void {
  if (!isPartitioned(path)) writeFileSync(join(path, PARTITIONED_NAME), '', { mode: 0o600, flush: true })
}

/** A lock that its process holds until it closes it or ends. */
export interface FileLock {
  close(): void
}

/**
 * Takes a lock; null when another process holds it. It is a transaction that is never finished, in a SQLite file that stays
 * empty. SQLite uses the operating system's file locks, which end with the process and are not inherited by its children.
 */
export function takeFileLock(path: string): FileLock | null {
  const lock = new Database(path)
  try {
    lock.run('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if ((error as { code?: unknown }).code === 'SQLITE_BUSY') return null
    throw error
  }
}

function readHolder(file: string): Holder {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return {}
  }
}

function reason(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EACCES' || code === 'EPERM' || code === 'SQLITE_CANTOPEN') return 'it is not writable by this user'
  if (code === 'EROFS' || code === 'SQLITE_READONLY') return 'it is on a read-only file system'
  if (code === 'ENOTDIR' || code === 'EEXIST') return 'it, or a part of its path, is a file'
  if (code === 'ENOSPC' || code === 'SQLITE_FULL') return 'its disk is full'
  return String(message)
}
