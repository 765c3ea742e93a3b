import { join } from 'node:path'
import { runProgram } from '../support/processes.ts'

/** Runs the simulation in a process of its own, because it replaces the clock. */
export function simulate(...args: readonly string[]) {
  return runProgram([process.execPath, join(import.meta.dir, 'main.ts'), ...args])
}

/** @returns how many faults of each kind there were, from what the simulation has printed */
export function faultsIn(stdout: string): Record<string, number> {
  // The last report: earlier ones are of a part.
  const list = [...stdout.matchAll(/^faults: (.*)$/gm)].at(-1)?.[1] ?? ''
  return Object.fromEntries(
    [...list.matchAll(/([a-z ]+?) (\d+)(?:, |$)/gi)].map(([, kind, count]) => [kind!, Number(count)]),
  )
}

/** Cases that have failed once. */
export const STORIES = [...new Bun.Glob('*.json').scanSync({ cwd: join(import.meta.dir, 'stories'), absolute: true })]

/** Within how many worlds a planted bug must be found. */
const FOUND_WITHIN = 10_000
const FOUND_WITHIN_DATABASE = 500
/** Where those worlds begin for bugs that few worlds show: shortly before one that did. */
const FROM: Readonly<Record<string, number>> = { 'end-search-jumps': 20_800, 'refused-rows-stay': 5_250 }

/** The worlds that find planted bugs, by the first words of their names; the others are found in `log`. */
const WORLD_OF: Readonly<Record<string, string>> = {
  feed: 'feeds',
  outbox: 'outbox',
  count: 'outbox',
  database: 'database',
  disk: 'disk',
}

/** @returns whether the simulation has found the bug, and what it has printed */
export async function find(bug: string): Promise<[boolean, string]> {
  const from = String(FROM[bug] ?? 1)
  const world = WORLD_OF[bug.split('-')[0]!] ?? 'log'
  const options = ['--world', world, '--plant', bug]
  const seeds = String(world === 'database' ? FOUND_WITHIN_DATABASE : FOUND_WITHIN)
  const { stdout, code } = await simulate(...options, '--from', from, '--seeds', seeds)
  return [code === 1 && stdout.includes(`bun test/sim/main.ts ${options.join(' ')}`), stdout]
}
