import { expect, test } from 'bun:test'
import { basename } from 'node:path'
import { faultsIn, find, STORIES, simulate } from '../sim/simulate.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
/** Some seconds of each world; the campaign `sim` has half a minute. */
const SEEDS = { log: 400, feeds: 100, disk: 150, outbox: 100 }

test.each(Object.entries(SEEDS))(
  `simulated worlds lose and double nothing: %s, %p seeds from SEED=${SEED}`,
  async (world, seeds) => {
    const { stdout, stderr, code } = await simulate('--world', world, '--from', String(SEED), '--seeds', String(seeds))
    // A failing world is named with how to repeat it.
    const failed = stdout.split('\n').filter((line) => /^(seed| {2}SEED)/.test(line))
    expect({ code, stderr, failed }).toEqual({ code: 0, stderr: '', failed: [] })
    const faults = Object.entries(faultsIn(stdout))
    expect(faults.length).toBeGreaterThan(10)
    expect(faults.filter(([, count]) => count === 0)).toEqual([])
  },
  60_000,
)

test.each(STORIES.map((file) => [basename(file), file]))(
  'what has failed once holds: %s',
  async (_, file) => {
    const { stdout, code } = await simulate('--story', file, '--mended')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\nseed \d+ holds\n$/)])
  },
  60_000,
)

test.each(['refused-after-silence', 'empty-read-is-a-gap', 'feed-joins-at-the-end', 'outbox-deleted-first'])(
  'the simulation finds a planted bug: %s',
  async (bug) => {
    expect(await find(bug)).toEqual([true, expect.any(String)])
  },
  60_000,
)

test.each(Object.keys(SEEDS))(
  'one seed takes the same way each time: %s',
  async (world) => {
    const { stdout, code } = await simulate('--world', world, '--seeds', '30', '--twice')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^faults: .*\n30 worlds from seed 1: 0 failed\n$/)])
  },
  60_000,
)
