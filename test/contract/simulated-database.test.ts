import { expect, test } from 'bun:test'
import { faultsIn, find, simulate } from '../sim/simulate.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)

test(`processes on one Postgres lose and double nothing in simulated worlds, from SEED=${SEED}`, async () => {
  const options = ['--world', 'database', '--from', String(SEED), '--seeds', '8']
  const { stdout, stderr, code } = await simulate(...options)
  const failed = stdout.split('\n').filter((line) => /^(seed| {2}SEED)/.test(line))
  expect({ code, stderr, failed }).toEqual({ code: 0, stderr: '', failed: [] })
  expect(Object.entries(faultsIn(stdout)).filter(([, count]) => count === 0)).toEqual([])
}, 120_000)

test('one seed takes the same way each time on Postgres, too', async () => {
  const { stdout, code } = await simulate('--world', 'database', '--seeds', '6', '--twice')
  expect([code, stdout]).toEqual([0, expect.stringMatching(/\n6 worlds from seed 1: 0 failed\n$/)])
}, 120_000)

test('the simulation finds a planted bug: database-run-ends-twice', async () => {
  expect(await find('database-run-ends-twice')).toEqual([true, expect.any(String)])
}, 60_000)
