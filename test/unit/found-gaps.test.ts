import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { FoundGaps } from '../../src/service/store-marks/found-gaps.ts'
import type { Gap } from '../../src/stores/journal/journal.ts'
import { eventually } from '../support/eventually.ts'

const gap = (afterSeq: number): Gap => ({ afterSeq, throughSeq: afterSeq + 1, loadedSeq: 0 }) as Gap

test('a gap that cannot be stored is stored later, with those that were found meanwhile', async () => {
  let failures = 3
  const stored: [gap: Gap, known: number][] = []
  const store = async (found: Gap, all: readonly Gap[]) => {
    if (failures-- > 0) throw new Error('the database is away')
    stored.push([found, all.length])
  }
  const gaps = new FoundGaps({ store, partition: 0, log: createLog('silent'), retryMs: 1 })
  gaps.add(gap(1), [gap(1)])
  gaps.add(gap(5), [gap(1), gap(5)])
  await eventually(() => stored.length === 2)
  expect(stored).toEqual([
    [gap(1), 2],
    [gap(5), 2],
  ])
  gaps.add(gap(9), [gap(1), gap(5), gap(9)])
  await eventually(() => stored.length === 3)
})

test('after a stop nothing is tried again', async () => {
  let tries = 0
  const store = async () => {
    if (++tries === 1) gaps.stop()
    throw new Error('the database is away')
  }
  const gaps = new FoundGaps({ store, partition: 0, log: createLog('silent'), retryMs: 1 })
  gaps.add(gap(1), [gap(1)])
  await Bun.sleep(20)
  expect(tries).toBe(1)
})
