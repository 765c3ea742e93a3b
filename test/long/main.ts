import { parseArgs } from 'node:util'
import { seededRandom } from '../support/random.ts'
import { endAll } from '../support/teardown.ts'
import type { Campaign } from './campaign.ts'
import { cluster } from './cluster.ts'
import { corruption } from './corruption.ts'
import { dashboard } from './dashboard.ts'
import { kills } from './kills.ts'
import { loop } from './loop.ts'
import { requests } from './requests.ts'
import { soak } from './soak.ts'

const CAMPAIGNS: Record<string, Campaign> = { kills, cluster, corruption, requests, loop, soak, dashboard }

const HELP = `Long campaigns against the whole service, with their own stores.

  bun run test:long [options] [campaigns]

${Object.entries(CAMPAIGNS)
  .map(([name, { describe }]) => `  ${name.padEnd(12)} ${describe}`)
  .join('\n')}

  --rounds <n>     repetitions, instead of each campaign's own number
  --minutes <n>    how long soak, and the tail of dashboard, last
  --seed <n>       repeats the same random choices
  --only <text>    only the cases of loop whose route or name contains the text
  --short          the short form that the gate runs
  --help           this text

Exits with 1 if anything was lost, doubled, swapped, rejected without cause, or left behind.
`

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      minutes: { type: 'string' },
      seed: { type: 'string' },
      only: { type: 'string' },
      short: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const write = (text: string) => void process.stdout.write(text)
  const unknown = positionals.filter((name) => !(name in CAMPAIGNS))
  const numbers = [values.rounds, values.minutes, values.seed].filter((value) => value !== undefined).map(Number)
  if (values.help || unknown.length > 0 || numbers.some((number) => !(number >= 0))) {
    write(unknown.length > 0 ? `unknown campaign: ${unknown.join(', ')}\n\n${HELP}` : HELP)
    return values.help ? 0 : 2
  }
  const names = positionals.length > 0 ? positionals : Object.keys(CAMPAIGNS)
  let failed = 0
  for (const name of names) {
    const campaign = CAMPAIGNS[name]!
    const startedAt = performance.now()
    const { figures, failures } = await campaign.run({
      random: seededRandom(name, values.seed === undefined ? undefined : Number(values.seed)),
      rounds: Number(values.rounds ?? (values.short ? campaign.shortRounds : campaign.rounds)),
      minutes: Number(values.minutes ?? (values.short ? campaign.shortMinutes : campaign.minutes) ?? 0),
      isShort: values.short === true,
      ...(values.only !== undefined && { only: values.only }),
      progress: (text) => write(`${name}: ${text}\n`),
    })
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    write(`\n${name}: ${failures.length === 0 ? 'passed' : 'FAILED'} in ${seconds} s\n`)
    for (const [figure, value] of Object.entries(figures)) write(`  ${figure}: ${value.toLocaleString('en')}\n`)
    for (const failure of failures) write(`  ! ${failure}\n`)
    write('\n')
    if (failures.length > 0) failed++
  }
  write(`${names.length - failed} campaigns passed, ${failed} failed\n`)
  return failed > 0 ? 1 : 0
}

const exitCode = await main(process.argv.slice(2)).finally(endAll)
process.exit(exitCode)
