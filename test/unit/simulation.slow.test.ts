import { expect, test } from 'bun:test'
import { PLANTED } from '../sim/planted.ts'
import { find } from '../sim/simulate.ts'

test.each(Object.keys(PLANTED))('the simulation finds a planted bug: %s', async (bug) => {
  expect(await find(bug)).toEqual([true, expect.any(String)])
})
