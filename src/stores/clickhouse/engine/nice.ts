import { readdirSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Priority of threads that run tenants' queries or bulk loads. Ingest responses and small loads come first: on a busy
 * machine queries may take longer, but acknowledgements and the visibility of new events in SQL must not.
 */
export const LOW_NICE = 8

/** On Linux each thread has its own nice value, inherited from the thread that started it. */
const HAS_THREAD_PRIORITIES = process.platform === 'linux'

/** Names of the pool threads, which run tenants' statements, as Bun sets them. */
const POOL_THREAD = /^Bun Pool/

/** Lowers the priority of the whole process where threads have no individual priorities. */
export function setProcessNice(): void {
  if (!HAS_THREAD_PRIORITIES) setPriority(LOW_NICE)
}

/** Sets the priority of the calling thread and of threads that it starts later. */
export function setThreadNice(nice: number): void {
  if (HAS_THREAD_PRIORITIES && nice > 0) setPriority(nice)
}

/**
 * Returns a function that lowers the priority of the pool's threads. Call it periodically: the pool starts threads on
 * demand, without notification.
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

/** @returns whether it is a pool thread whose priority is now low */
function lower(thread: string): boolean {
  try {
    if (!POOL_THREAD.test(readFileSync(`/proc/self/task/${thread}/comm`, 'utf8'))) return false
    setPriority(Number(thread), LOW_NICE)
    return true
  } catch {
    // The thread has ended meanwhile.
    return false
  }
}
