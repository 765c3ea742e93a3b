import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Log } from '../../base/log.ts'
import type { Config } from '../config/config.ts'

/** File descriptors reserved for the journal, connections to stores, and calls other than feeds. */
const RESERVE_MAX = 1_000

/**
 * Caps the number of feeds below the limit of open files: without a free file descriptor this process could neither accept
 * a call nor write its journal. Logs the cap, as a warning if `FEED_CONNECTIONS` is set to more.
 *
 * @param openFiles the limit of open files of this process; undefined if it is unlimited or unknown
 */
export function withinOpenFiles(limits: Config['feeds'], openFiles: number | undefined, log: Log): Config['feeds'] {
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

/** RLIMIT_NOFILE of this process; undefined if it is unlimited or unknown. */
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
