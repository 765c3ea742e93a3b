import { CliError } from '../../src/cli/shared/error.ts'
import { runMain } from '../../src/cli/shared/main.ts'
import { parseOptions } from '../../src/cli/shared/options.ts'
import { PLANTED, plant } from './planted.ts'
import { time } from './virtual-time.ts'
import type { WorldName } from './world.ts'

const OPTIONS = {
  world: {
    type: 'string',
    value: '<name>',
    help: 'what takes part: log (default), or feeds, which is the log and its subscribers',
  },
  seeds: { type: 'string', value: '<n>', help: 'how many worlds (default: 1000)' },
  from: { type: 'string', value: '<n>', help: 'the seed of the first one (default: 1)' },
  steps: { type: 'string', value: '<n>', help: 'how much happens in each (default: 60)' },
  twice: { type: 'boolean', help: 'runs each seed twice: both runs must take the same steps' },
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
every subscriber of a feed gets the matching rows after its cursor once, in order, whatever is cut, paused or killed.

Planted bugs: ${Object.keys(PLANTED).join(', ')}.`,
}

const DEFAULTS = { seeds: '1000', from: '1', steps: '60' }
/** After how many seeds a line of progress is printed. */
const PROGRESS_EVERY = 10_000
/** The failing seeds that are shown. */
const SHOWN_MAX = 10

async function main(): Promise<number> {
  const { values } = parseOptions(process.argv.slice(2), SIMULATION)
  const [seeds, from, steps] = [values.seeds, values.from, values.steps].map((value, index) =>
    numberOf(value ?? Object.values(DEFAULTS)[index]!),
  ) as [number, number, number]
  if (values.plant !== undefined) plant(bugOf(values.plant))
  time.install()
  // Imported only now: the modules read the clock when they are loaded, and it must be the virtual one by then.
  const { runWorld, WORLDS } = await import('./world.ts')
  const world = WORLDS.find((each) => each === (values.world ?? 'log'))
  if (world === undefined) throw new CliError(`no world ${values.world}: there are ${WORLDS.join(', ')}`, 2)
  const { SEED } = process.env
  if (SEED !== undefined) return replay(world, numberOf(SEED))
  let failed = 0
  for (let seed = from; seed < from + seeds; seed++) {
    const { problems, fingerprint } = await runWorld(world, seed, steps, () => {})
    const found = [...problems]
    if (values.twice && (await runWorld(world, seed, steps, () => {})).fingerprint !== fingerprint)
      found.push('the second run took other steps')
    const done = seed - from + 1
    if (found.length > 0 && ++failed <= SHOWN_MAX) write(`seed ${seed}: ${found.join('; ')}\n  ${replayOf(seed)}`)
    if (done % PROGRESS_EVERY === 0) write(`${done} worlds, to seed ${seed}: ${failed} failed`)
    if (failed > 0 && values.plant !== undefined) break
  }
  write(`${seeds} worlds from seed ${from}: ${failed} failed`)
  return failed > 0 ? 1 : 0

  async function replay(world: WorldName, seed: number): Promise<number> {
    const { problems } = await runWorld(world, seed, steps, write)
    for (const problem of problems) write(problem)
    write(problems.length > 0 ? `seed ${seed} fails` : `seed ${seed} holds`)
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

await runMain(main)
