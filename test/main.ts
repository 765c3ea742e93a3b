import { PARALLEL, runTests, SLOW } from './support/run-tests.ts'
import { endAll } from './support/teardown.ts'

const HELP = `Runs the tests on real stores, several files at a time.

  bun run test [options] [files or parts of their names]

  --parallel <n>   test processes at a time   (${PARALLEL} here)
  --help           this text

Without names, it leaves out the tests that wait in real time, restart or kill stores, or drive a browser (*${SLOW}):
\`bun run test:long slow\` runs those.

Every other option goes to \`bun test\`, for example -t <name>, --only-failures or --bail.
DATABASE_URL and CLICKHOUSE_URL name servers to test on instead of the embedded ones; SEED=<n> repeats a random test.
`

/** Options of `bun test` that are followed by their value. */
const WITH_VALUE = new Set(['-t', '--test-name-pattern', '--parallel', '--timeout', '--seed', '--reporter-outfile'])

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(HELP)
    return 0
  }
  const names = args.filter((arg, i) => !arg.startsWith('-') && !WITH_VALUE.has(args[i - 1] ?? ''))
  return runTests(names.length > 0 ? args : [`--path-ignore-patterns=**/*${SLOW}`, ...args])
}

const exitCode = await main(process.argv.slice(2)).finally(endAll)
process.exit(exitCode)
