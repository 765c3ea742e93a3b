import { readdirSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Priority of the threads that work for tenants, and of those that load very much. Answers to ingest calls and the loading of
 * a few events come first: a query may take longer on a busy machine, an acknowledgement may not, nor may fresh events be
 * long in coming to SQL.
 */
export const LOW_NICE = 8

/** On Linux each thread has a nice value of its own, and starts with that of the thread that started it. */
const HAS_THREAD_PRIORITIES = process.platform === 'linux'

/** What statements of tenants run on: the pool's threads, by the name that Bun gives them. */
const POOL_THREAD = /^Bun Pool/

/** Where threads have no priorities of their own, the engine yields as a whole. */
export function setProcessNice(): void {
  if (!HAS_THREAD_PRIORITIES) setPriority(LOW_NICE)
}

/** Of the calling thread, and of those that it starts from now on. */
export function setThreadNice(nice: number): void {
  if (HAS_THREAD_PRIORITIES && nice > 0) setPriority(nice)
}

/**
 * Lowers the priority of the pool's threads. Call it again and again: the pool starts them as they are needed, and nothing
 * tells when.
 */
export function createPoolLowering(): () => void {
  const known = new Set<string>()
  return () => {
    if (!HAS_THREAD_PRIORITIES) return
    const present = new Set(readdirSync('/proc/self/task'))
    for (const thread of known) if (!present.has(thread)) known.delete(thread)
    for (const thread of present) if (!known.has(thread) && lower(thread)) known.add(thread)
  }
}

/** @returns whether it is one of the pool's, and low by now */
function lower(thread: string): boolean {
  try {
    if (!POOL_THREAD.test(readFileSync(`/proc/self/task/${thread}/comm`, 'utf8'))) return false
    setPriority(Number(thread), LOW_NICE)
    return true
  } catch {
    // It has ended meanwhile.
    return false
  }
}
