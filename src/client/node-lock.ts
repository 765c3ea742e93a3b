import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/** Paths that this process has locked. */
const held = new Set<string>()

/**
 * Locks a path for this process with a file beside it. A lock whose process has died is taken over.
 *
 * @returns a function that unlocks it
 * @throws Error when another process, or another client of this one, holds it
 */
export function lock(path: string): () => void {
  const file = `${path}.lock`
  const own = `${file}.${process.pid}`
  writeFileSync(own, `${process.pid} ${startOf(process.pid)}`, { mode: 0o600 })
  try {
    if (!tryLink(own, file)) takeOver(path, file, own)
  } finally {
    rmSync(own, { force: true })
  }
  held.add(path)
  return () => {
    held.delete(path)
    rmSync(file, { force: true })
  }
}

/** Of several processes that link at the same time, one succeeds. */
function tryLink(own: string, file: string): boolean {
  try {
    linkSync(own, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

function takeOver(path: string, file: string, own: string): void {
  const found = readLock(file)
  if (isAlive(found, path)) throw inUse(path, found)
  // Another process may do the same at this moment, so what was moved away is read again.
  const moved = `${own}.stale`
  try {
    renameSync(file, moved)
  } catch {
    throw inUse(path, readLock(file))
  }
  const stale = readLock(moved)
  if (isAlive(stale, path)) {
    tryLink(moved, file)
    rmSync(moved)
    throw inUse(path, stale)
  }
  rmSync(moved)
  if (!tryLink(own, file)) throw inUse(path, readLock(file))
}

interface Holder {
  readonly pid: number
  readonly start: string
}

function readLock(file: string): Holder {
  try {
    const [pid, start = ''] = readFileSync(file, 'utf8').split(' ')
    return { pid: Number(pid), start }
  } catch {
    return { pid: 0, start: '' }
  }
}

function isAlive({ pid, start }: Holder, path: string): boolean {
  if (!(pid > 0)) return false
  if (pid === process.pid) return held.has(path)
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  // The number may have been given to another process since.
  return start === startOf(pid)
}

/** When a process began, as Linux counts it; empty on other systems. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  } catch {
    return ''
  }
}

function inUse(path: string, { pid }: Holder): Error {
  return new Error(`the spool ${path} is in use by process ${pid}`)
}
