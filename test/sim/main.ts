import { CliError } from '../../src/cli/shared/error.ts'
import { runMain } from '../../src/cli/shared/main.ts'
import { parseOptions } from '../../src/cli/shared/options.ts'
import { endAll } from '../support/teardown.ts'
import { openDatabase } from './database/open.ts'
import { FAULT_KINDS, kindsOf, type WorldName } from './faults.ts'
import { DISK_MODULES, PLANTED, plant } from './planted.ts'
import { type Case, type Story, shrink } from './story.ts'
import { time } from './virtual-time.ts'

const OPTIONS = {
  world: {
    type: 'string',
    value: '<name>',
    help: 'log (default); what else takes part: feeds, or outbox, with the counts of runs; disk, the log in files; or database, without the log',
  },
  seeds: { type: 'string', value: '<n>', help: 'how many worlds (default: 1000)' },
  from: { type: 'string', value: '<n>', help: 'the seed of the first one (default: 1)' },
  steps: { type: 'string', value: '<n>', help: 'how much happens in each (default: 60)' },
  twice: { type: 'boolean', help: 'runs each seed twice: both runs must take the same steps' },
  shrink: { type: 'string', value: '<file>', help: 'reduces the first failing seed, and writes it as a story' },
  story: { type: 'string', value: '<file>', help: 'replays a story, and shows it as a table' },
  mended: { type: 'boolean', help: 'replays it without the bug that is planted in it' },
  plant: { type: 'string', value: '<bug>', help: 'plants one of the known bugs, and stops once it is found' },
} as const

const SIMULATION = {
  summary: 'Simulates the journal in NATS, the sink and feeds, with their servers in memory, on a virtual clock.',
  usage: [
    'bun test/sim/main.ts [options]',
    'SEED=<n> bun test/sim/main.ts   runs one world, and shows what happens in it',
  ],
  options: OPTIONS,
  notes: `One seed decides everything: delays, lost and late answers, full servers, leaders that lag, owners that are
paused, owners that take over from live and dead ones, failing loads, forgotten tokens. In each world every acknowledged row must be in the log and in ClickHouse once, and
every subscriber of a feed gets the matching rows after its cursor once, in order, whatever is cut, paused or killed. The log in
files also meets power failures, torn and failing writes, and disks that are full, slow or read only. On a real Postgres (database), callers of two processes are told what is stored, and nobody anything else.

Planted bugs: ${Object.keys(PLANTED).join(', ')}.`,
}

const DEFAULTS = { seeds: '1000', from: '1', steps: '60' }
/** After how many seeds a line of progress is printed. */
const PROGRESS_EVERY = 10_000
/** The failing seeds that are shown. */
const SHOWN_MAX = 10

const WORLDS = Object.keys(FAULT_KINDS) as readonly WorldName[]
let makeTimeReal = () => {}

async function main(): Promise<number> {
  const { values } = parseOptions(process.argv.slice(2), SIMULATION)
  const story: Story | undefined = values.story === undefined ? undefined : await Bun.file(values.story).json()
  const [seeds, from, steps] = [values.seeds, values.from, values.steps].map((value, index) =>
    numberOf(value ?? Object.values(DEFAULTS)[index]!),
  ) as [number, number, number]
  const bug = values.mended ? undefined : (story?.plant ?? values.plant)
  const name = story?.world ?? values.world ?? 'log'
  const world = WORLDS.find((each) => each === name)
  if (world === undefined) throw new CliError(`no world ${name}: there are ${WORLDS.join(', ')}`, 2)
  plant([...(world === 'disk' ? DISK_MODULES : []), ...(bug === undefined ? [] : bugOf(bug))])
  const database = world === 'database' ? await openDatabase() : undefined
  makeTimeReal = time.install()
  // Imported only now: the modules read the clock when they are loaded, and it must be the virtual one by then.
  const { runWorld } = database ?? (await import('./world.ts'))
  if (story !== undefined) return replay(story)
  const { SEED } = process.env
  if (SEED !== undefined) return replay({ world, seed: numberOf(SEED), steps, without: [] })
  const faults = new Map(kindsOf(world).map((kind) => [kind, 0]))
  let failed = 0
  let done = 0
  let isTold = false
  while (done < seeds) {
    const tried: Case = { world, seed: from + done++, steps, without: [] }
    const outcome = await runWorld(tried, () => {})
    const found = [...outcome.problems]
    for (const { kind } of outcome.happened) if (kind !== undefined) faults.set(kind, faults.get(kind)! + 1)
    if (values.twice && (await runWorld(tried, () => {})).fingerprint !== outcome.fingerprint)
      found.push('the second run took other steps')
    if (found.length > 0 && ++failed <= SHOWN_MAX)
      write(`seed ${tried.seed}: ${found.join('; ')}\n  ${replayOf(tried.seed)}`)
    if (done % PROGRESS_EVERY === 0) report()
    if (outcome.problems.length > 0 && values.shrink !== undefined) {
      await tell(tried, values.shrink)
      isTold = true
      break
    }
    if (failed > 0 && bug !== undefined && values.shrink === undefined) break
  }
  report()
  if (values.shrink !== undefined && !isTold) write('no story: no seed broke a promise')
  return failed > 0 ? 1 : 0

  function report(): void {
    write(`faults: ${[...faults].map(([kind, count]) => `${kind} ${count}`).join(', ')}`)
    write(`${done} worlds from seed ${from}: ${failed} failed`)
  }

  /** Reduces a case that fails, and writes it as a story. */
  async function tell(failing: Case, file: string): Promise<void> {
    const [smallest, { problems, happened }] = await shrink(failing, (tried) => runWorld(tried, () => {}))
    const told: Story = { ...smallest, ...(bug !== undefined && { plant: bug }), failed: problems }
    await Bun.write(file, `${JSON.stringify(told, null, 2)}\n`)
    write(`${file}: ${happened.map(({ name }) => name).join('; ')}`)
  }

  async function replay(told: Case): Promise<number> {
    const row = (at: string, who: string, what: string, answer = '') =>
      write(`${at.padStart(9)}  ${who.padEnd(12)}  ${what.padEnd(44)}  ${answer}`.trimEnd())
    row('ms', 'process', 'what', 'answer')
    const { problems } = await runWorld(told, (...step) => row(time.nowMs.toFixed(1), ...step))
    for (const problem of problems) write(problem)
    write(problems.length > 0 ? `seed ${told.seed} fails` : `seed ${told.seed} holds`)
    return problems.length > 0 ? 1 : 0
  }

  function replayOf(seed: number): string {
    const options = ['world', 'steps', 'plant'] as const
    const given = options.flatMap((name) => (values[name] === undefined ? [] : [` --${name} ${values[name]}`]))
    return `SEED=${seed} bun test/sim/main.ts${given.join('')}`
  }
}

function write(text: string): void {
  process.stdout.write(`${text}\n`)
}

function numberOf(text: string): number {
  if (!/^\d+$/.test(text)) throw new CliError(`${text} is not a whole number`, 2)
  return Number(text)
}

function bugOf(name: string) {
  const edits = Object.hasOwn(PLANTED, name) ? PLANTED[name] : undefined
  if (edits === undefined) throw new CliError(`no planted bug ${name}: there are ${Object.keys(PLANTED).join(', ')}`, 2)
  return edits
}

await runMain(() =>
  main().finally(() => {
    makeTimeReal()
    return endAll()
  }),
)
