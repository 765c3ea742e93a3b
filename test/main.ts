import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { runMain } from '../src/cli/main.ts'
import { suggest, unknownOption } from '../src/cli/options.ts'
import { script } from '../src/cli/script.ts'
import { useRealNode } from './support/node-path.ts'
import {
  createDataDirTemplate,
  SHARED_CLICKHOUSE,
  SHARED_DATA_DIR,
  SHARED_POSTGRES,
  startClickHouseTemplate,
  startPostgresTemplate,
} from './support/stores.ts'
import { endAll } from './support/teardown.ts'

const HELP = `Runs the tests on real stores, several files at a time.

  ${script('test')} [options] [files or parts of their names]

  --parallel <n>   test processes at a time   (${workersFor(availableParallelism())} here)
  --help           this text

Every other option goes to \`bun test\`, for example -t <name>, --only-failures or --bail.
DATABASE_URL and CLICKHOUSE_URL name servers to test on instead of the embedded ones; SEED=<n> repeats a random test.
`

const ROOT = join(import.meta.dir, '..')
/** The duration of each file, so that the slowest start first. `bun run test --update-timings` rewrites it. */
const TIMINGS = join(import.meta.dir, 'timings.json')
const TEST_TIMEOUT_MS = 240_000

/** Tests wait more than they compute. */
function workersFor(cores: number): number {
  return Math.max(3, cores)
}

/** Starts the stores that all test processes share, runs `bun test`, and returns its exit code. */
async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(HELP)
    return 0
  }
  refuseUnknown(args)
  useRealNode()
  const parallel = args.some((arg) => arg.startsWith('--parallel'))
    ? []
    : [`--parallel=${workersFor(availableParallelism())}`]
  const [postgres, clickhouse, dataDir] = await Promise.all([
    startPostgresTemplate(),
    startClickHouseTemplate(),
    createDataDirTemplate(),
  ])
  const shared = { [SHARED_POSTGRES]: postgres, [SHARED_CLICKHOUSE]: clickhouse, [SHARED_DATA_DIR]: dataDir }
  const command = ['test', `--timeout=${TEST_TIMEOUT_MS}`, ...parallel, '--no-isolate', `--timings=${TIMINGS}`, ...args]
  const tests = Bun.spawn([process.execPath, ...command], {
    cwd: ROOT,
    env: { ...process.env, ...shared },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tests.kill(signal))
  return await tests.exited
}

/** The stores are not started for an option that `bun test` does not have. @throws CliError (exit code 2) */
function refuseUnknown(args: readonly string[]): void {
  const given = args.flatMap((arg) => /^--[\w-]+/.exec(arg)?.[0] ?? [])
  if (given.length === 0) return
  const help = Bun.spawnSync([process.execPath, 'test', '--help']).stdout.toString()
  const known = [...Bun.stripANSI(help).matchAll(/^ +(?:-\w, +)?(--[\w-]+)/gm)].map(([, name = '']) => name)
  const unknown = given.find((name) => !known.includes(name))
  if (unknown === undefined) return
  const near = suggest(
    unknown.slice(2),
    known.map((name) => name.slice(2)),
  )
  throw unknownOption(unknown, near && ` --${near}?`)
}

await runMain(() => main(process.argv.slice(2)).finally(endAll))
