import { faultsIn, simulate } from '../sim/simulate.ts'
import type { Campaign, CampaignResult } from './campaign.ts'
import { Failures } from './campaign.ts'

/** How many seeds of each world run between two lines of progress. */
const SEEDS = { log: 100, feeds: 20, outbox: 20, database: 20, disk: 40 }
/** Seeds of the simulation are 32-bit numbers. */
const SEED_END = 2 ** 32

/** The simulation of `test/sim`, on new seeds, for as long as it is told. */
export const sim: Campaign = {
  describe:
    'simulated worlds of the log, its files, the sink, feeds and other consumers, and of processes on one Postgres, with new seeds for --minutes (10); --seed names the first, --only a world',
  rounds: 1,
  shortRounds: 1,
  minutes: 10,
  shortMinutes: 0.5,
  async run({ random, minutes, only = '', progress }): Promise<CampaignResult> {
    const failures = new Failures()
    const startedMs = performance.now()
    const seconds = () => (performance.now() - startedMs) / 1000
    const done = new Map<string, number>()
    const faults = new Map<string, number>()
    for (let from = random.seed % SEED_END; seconds() < minutes * 60; from += Math.max(...Object.values(SEEDS))) {
      for (const world of Object.keys(SEEDS) as (keyof typeof SEEDS)[]) {
        if (!world.includes(only)) continue
        const { stdout, stderr, code } = await simulate(
          '--world',
          world,
          '--from',
          `${from}`,
          '--seeds',
          `${SEEDS[world]}`,
        )
        done.set(world, (done.get(world) ?? 0) + SEEDS[world])
        for (const [kind, count] of Object.entries(faultsIn(stdout))) faults.set(kind, (faults.get(kind) ?? 0) + count)
        const found = [...stdout.matchAll(/^(seed .*)\n +(SEED=.*)$/gm)].map(([, what, again]) => `${what} (${again})`)
        for (const line of found) failures.add(`world ${world}: ${line}`)
        if (code !== 0 && found.length === 0) failures.add(`world ${world}: exit code ${code}: ${stderr}`)
      }
      const rate = (done.values().reduce((sum, count) => sum + count, 0) / seconds()).toFixed(1)
      progress(
        `to seed ${from}: worlds: ${[...done].flat().join(' ')}, ${rate}/s, ${failures.count} failures; faults: ${[...faults].flat().join(' ')}`,
      )
    }
    for (const [kind, count] of faults) if (count === 0) failures.add(`no seed reached this fault: ${kind}`)
    const worlds = [...done].map(([world, count]) => [`worlds of ${world}`, count] as const)
    const figures = Object.fromEntries([...worlds, ...faults])
    return { figures, failures: failures.result }
  },
}
