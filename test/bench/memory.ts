import { readFile } from 'node:fs/promises'
import { whole } from './report.ts'

/** How long after its last call a service is idle: it has closed unused connections and released unused memory. */
export const SETTLE_MS = 15_000

/** Memory of a process and its descendants. */
export interface Memory {
  /** The sum of their resident memory: pages that several of them share are counted in each. */
  readonly residentMiB: number
  /**
   * The same, but a page that n processes of the machine share is counted as 1/n in each: what these processes really
   * occupy, if no others run the same programs. Undefined where the system does not tell (other than Linux).
   */
  readonly proportionalMiB: number | undefined
  readonly processes: number
}

export async function memoryOf(pid: number): Promise<Memory> {
  const listing = await Bun.$`ps -A -o pid=,ppid=,rss=`.text()
  const rows = listing
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [pid: number, parent: number, rssKiB: number])
  const pids = new Set([pid])
  // A parent may be listed after its child, so repeat until nothing is added.
  for (let size = 0; size < pids.size; ) {
    size = pids.size
    for (const [child, parent] of rows) if (pids.has(parent)) pids.add(child)
  }
  const resident = rows.filter(([each]) => pids.has(each)).reduce((sum, [, , rssKiB]) => sum + rssKiB, 0)
  const shares = await Promise.all([...pids].map(proportionalKiB))
  const proportional = shares.reduce<number>((sum, share) => sum + (share ?? 0), 0)
  return {
    residentMiB: resident / 1024,
    proportionalMiB: shares.includes(undefined) ? undefined : proportional / 1024,
    processes: pids.size,
  }
}

/** For a report: both figures, and what they count. */
export function shownMemory({ residentMiB, proportionalMiB, processes }: Memory): string {
  const proportional =
    proportionalMiB === undefined ? '' : `, ${whole(proportionalMiB)} MiB with shared pages once (PSS)`
  return `${whole(residentMiB)} MiB resident in ${processes} processes, shared pages counted in each (RSS)${proportional}`
}

/** Undefined where it cannot be read; 0 if the process has ended meanwhile. */
async function proportionalKiB(pid: number): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => 'Pss: 0 kB')
  return Number(/^Pss: +(\d+) kB$/m.exec(text)?.[1] ?? 0)
}
