import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { useRealNode } from './node-path.ts'
import {
  createDataDirTemplate,
  SHARED_CLICKHOUSE,
  SHARED_DATA_DIR,
  SHARED_POSTGRES,
  startClickHouseTemplate,
  startPostgresTemplate,
} from './stores.ts'
import { missingTools } from './tools.ts'

const ROOT = join(import.meta.dir, '..', '..')
/** The duration of each file, so that the slowest start first. `bun run test --update-timings` rewrites it. */
const TIMINGS = join(ROOT, 'test', 'timings.json')
const TEST_TIMEOUT_MS = 240_000

/** How the files are named whose tests wait in real time, start programs, restart or kill stores, or drive a browser. */
export const SLOW = '.slow.test.ts'

/** The number of test processes at a time: tests wait more than they compute. */
export const PARALLEL = Math.max(3, availableParallelism())

/**
 * Starts the stores that all test processes share, and runs `bun test`, several files at a time.
 * @param args options of `bun test`, and files or parts of their names
 * @returns its exit code
 */
export async function runTests(args: readonly string[]): Promise<number> {
  useRealNode()
  const parallel = args.some((arg) => arg.startsWith('--parallel')) ? [] : [`--parallel=${PARALLEL}`]
  const [postgres, clickhouse, dataDir] = await Promise.all([
    startPostgresTemplate(),
    startClickHouseTemplate(),
    createDataDirTemplate(),
  ])
  const shared = { [SHARED_POSTGRES]: postgres, [SHARED_CLICKHOUSE]: clickhouse, [SHARED_DATA_DIR]: dataDir }
  const command = ['test', `--timeout=${TEST_TIMEOUT_MS}`, ...parallel, '--no-isolate', `--timings=${TIMINGS}`, ...args]
  const tests = Bun.spawn([process.execPath, ...command], {
    cwd: ROOT,
    // As for the service (`start`): returning memory at once and touching it again takes a tenth of all processor time.
    env: { MIMALLOC_PURGE_DELAY: '10000', ...process.env, ...shared },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tests.kill(signal))
  const exitCode = await tests.exited
  for (const { tests: skipped, packages } of missingTools())
    process.stderr.write(`skipped: tests of ${skipped} (apt-get install ${packages})\n`)
  return exitCode
}
