import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { FeedLimits } from '../config.ts'
import type { Log } from '../log.ts'

/** Kept for files of the journal, connections to the stores, and calls that are no feeds. */
const RESERVE_MAX = 1_000

/**
 * The limits of feeds, so that feeds alone cannot use up the descriptors of this process: without one left, it could
 * neither take a call nor write its journal. The log has it, as a warning when `FEED_CONNECTIONS` asks for more.
 *
 * @param openFiles how many descriptors the process may have; undefined when that cannot be told
 */
export function withinOpenFiles(limits: FeedLimits, openFiles: number | undefined, log: Log): FeedLimits {
  if (openFiles === undefined) return limits
  const room = Math.max(1, openFiles - Math.min(RESERVE_MAX, Math.ceil(openFiles / 4)))
  if (limits.connections <= room) return limits
  const figures = { feed_connections: limits.connections, open_files: openFiles, capped_to: room }
  if (limits.connectionsGiven)
    log.warn(
      'FEED_CONNECTIONS is higher than the limit of open files and was reduced; raise the limit with ulimit -n',
      figures,
    )
  else log.info('open feeds are capped below the limit of open files (ulimit -n)', figures)
  return { ...limits, connections: room }
}

/** RLIMIT_NOFILE of this process; undefined when it is unlimited or cannot be told. */
export function readOpenFilesLimit(): number | undefined {
  try {
    const text =
      process.platform === 'linux'
        ? (/^Max open files +(\w+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? '')
        : spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout.trim()
    return /^\d+$/.test(text) ? Number(text) : undefined
  } catch {
    return undefined
  }
}
