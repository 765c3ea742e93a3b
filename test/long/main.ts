import { script } from '../../src/base/script.ts'
import { CliError } from '../../src/cli/shared/error.ts'
import { runMain } from '../../src/cli/shared/main.ts'
import { parseOptions, readNames } from '../../src/cli/shared/options.ts'
import { seededRandom } from '../support/random.ts'
import { endAll } from '../support/teardown.ts'
import { answers } from './answers.ts'
import type { Campaign, CampaignOptions, CampaignResult } from './campaign.ts'
import { cluster } from './cluster.ts'
import { corruption } from './corruption.ts'
import { dashboard } from './dashboard.ts'
import { kills } from './kills.ts'
import { loop } from './loop.ts'
import { requests } from './requests.ts'
import { sim } from './sim.ts'
import { slow } from './slow.ts'
import { soak } from './soak.ts'

const CAMPAIGNS: Record<string, Campaign> = {
  kills,
  answers,
  cluster,
  corruption,
  requests,
  loop,
  soak,
  dashboard,
  sim,
  slow,
}

const OPTIONS = {
  rounds: { type: 'string', value: '<n>', help: "repetitions, instead of each campaign's own number" },
  minutes: { type: 'string', value: '<n>', help: 'how long soak, sim, and the tail of dashboard, last' },
  seed: { type: 'string', value: '<n>', help: 'repeats the same random choices' },
  only: {
    type: 'string',
    value: '<text>',
    help: 'only the cases of loop whose route or name contains the text, and worlds of sim',
  },
  short: { type: 'boolean', help: 'the short form that the gate runs' },
} as const

const LONG = {
  summary: 'Long campaigns against the whole service, with their own stores.',
  usage: [
    script('test:long [options] [campaigns]'),
    '',
    ...Object.entries(CAMPAIGNS).map(([name, { describe }]) => `${name.padEnd(12)} ${describe}`),
  ],
  options: OPTIONS,
  notes: 'Fails if anything was lost, doubled, swapped, rejected without cause, or left behind.',
}

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseOptions(args, LONG, { allowPositionals: true })
  const write = (text: string) => void process.stdout.write(text)
  readNames('campaign', positionals, Object.keys(CAMPAIGNS))
  const numbers = [values.rounds, values.minutes, values.seed].filter((value) => value !== undefined).map(Number)
  if (numbers.some((number) => !(number >= 0)))
    throw new CliError('--rounds, --minutes and --seed must be numbers that are not negative', 2)
  const names = positionals.length > 0 ? positionals : Object.keys(CAMPAIGNS)
  if (names.length > 1)
    return runEach(
      names,
      args.filter((arg) => !positionals.includes(arg)),
    )
  const [name] = names as [string]
  const campaign = CAMPAIGNS[name]!
  const startedAt = performance.now()
  const options: CampaignOptions = {
    random: seededRandom(name, values.seed === undefined ? undefined : Number(values.seed)),
    rounds: Number(values.rounds ?? (values.short ? campaign.shortRounds : campaign.rounds)),
    minutes: Number(values.minutes ?? (values.short ? campaign.shortMinutes : campaign.minutes) ?? 0),
    isShort: values.short === true,
    ...(values.only !== undefined && { only: values.only }),
    progress: (text) => write(`${name}: ${text}\n`),
  }
  const { figures, failures } = await campaign
    .run(options)
    .catch((error: Error): CampaignResult => ({ figures: {}, failures: [`broke off: ${error.stack ?? error}`] }))
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  write(`\n${name}: ${failures.length === 0 ? 'passed' : 'FAILED'} in ${seconds} s\n`)
  for (const [figure, value] of Object.entries(figures)) write(`  ${figure}: ${value.toLocaleString('en')}\n`)
  for (const failure of failures) write(`  ! ${failure}\n`)
  write('\n')
  return failures.length > 0 ? 1 : 0
}

/** Each campaign has a process of its own: one that breaks off leaves no service and no load behind for the next. */
async function runEach(names: readonly string[], options: readonly string[]): Promise<number> {
  let failed = 0
  let live: Bun.Subprocess | undefined
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      live?.kill(signal)
      process.exit(1)
    })
  for (const name of names) {
    const command = [process.execPath, import.meta.path, ...options, name]
    live = Bun.spawn(command, { stdio: ['ignore', 'inherit', 'inherit'] })
    if ((await live.exited) !== 0) failed++
  }
  process.stdout.write(`${names.length - failed} campaigns passed, ${failed} failed\n`)
  return failed > 0 ? 1 : 0
}

await runMain(() => main(process.argv.slice(2)).finally(endAll))
