import { script } from '../src/base/script.ts'
import { runMain } from '../src/cli/shared/main.ts'
import { suggest, unknownOption } from '../src/cli/shared/options.ts'
import { PARALLEL, runTests, SLOW } from './support/run-tests.ts'
import { endAll } from './support/teardown.ts'

const HELP = `Runs the tests on real stores, several files at a time.

  ${script('test')} [options] [files or parts of their names]

  --parallel <n>   test processes at a time   (${PARALLEL} here)
  --help           this text

Without names, it leaves out the tests that wait in real time, start programs, restart or kill stores, or drive a browser (*${SLOW}):
\`${script('test:long slow')}\` runs those.

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
  refuseUnknown(args)
  const names = args.filter((arg, i) => !arg.startsWith('-') && !WITH_VALUE.has(args[i - 1] ?? ''))
  return runTests(names.length > 0 ? args : [`--path-ignore-patterns=**/*${SLOW}`, ...args])
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
