import { expect, test } from 'bun:test'
import { Watermark } from '../../src/client/watermark.ts'
import { seededRandom } from '../support/random.ts'

test('everything up to the watermark is settled, and what follows it is not', () => {
  const random = seededRandom('watermark')
  const watermark = new Watermark()
  const open = new Set<number>()
  for (let step = 0; step < 20_000; step++) {
    if (open.size === 0 || (open.size < 5_000 && random.int(0, 9) < 6)) open.add(watermark.next())
    else {
      const marks = [...open].slice(0, 3)
      const mark = marks[random.int(0, marks.length - 1)]!
      open.delete(mark)
      watermark.settle(mark)
    }
    expect(watermark.through).toBe((open.values().next().value ?? watermark.end + 1) - 1)
  }
})
