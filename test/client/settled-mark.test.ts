import { expect, test } from 'bun:test'
import { SettledMark } from '../../src/client/settled-mark.ts'
import { seededRandom } from '../support/random.ts'

test('everything up to the mark is settled, and what follows it is not', () => {
  const random = seededRandom('settled mark')
  const settled = new SettledMark()
  const open = new Set<number>()
  for (let step = 0; step < 20_000; step++) {
    if (open.size === 0 || (open.size < 5_000 && random.int(0, 9) < 6)) open.add(settled.next())
    else {
      const marks = [...open].slice(0, 3)
      const mark = marks[random.int(0, marks.length - 1)]!
      open.delete(mark)
      settled.settle(mark)
    }
    expect(settled.through).toBe((open.values().next().value ?? settled.end + 1) - 1)
  }
})
