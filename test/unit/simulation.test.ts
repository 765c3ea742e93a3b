import { expect, test } from 'bun:test'
import { find, simulate } from '../sim/simulate.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)
/** Some seconds. */
const SEEDS = 1_000

test(`${SEEDS} simulated worlds lose and double nothing (SEED=${SEED})`, async () => {
  const { stdout, stderr, code } = await simulate('--from', String(SEED), '--seeds', String(SEEDS))
  // A failing world is named with how to repeat it.
  const failed = stdout.split('\n').filter((line) => /^(seed| {2}SEED)/.test(line))
  expect({ code, stderr, failed }).toEqual({ code: 0, stderr: '', failed: [] })
}, 60_000)

test.each(['refused-after-silence', 'empty-read-is-a-gap'])(
  'the simulation finds a planted bug: %s',
  async (bug) => {
    expect(await find(bug)).toEqual([true, expect.any(String)])
  },
  60_000,
)

test('one seed takes the same way each time', async () => {
  const { stdout, code } = await simulate('--seeds', '30', '--twice')
  expect([code, stdout]).toEqual([0, '30 worlds from seed 1: 0 failed\n'])
})
