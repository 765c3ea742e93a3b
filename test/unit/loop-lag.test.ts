import { expect, test } from 'bun:test'
import { watchLoopLag } from '../../src/service/ops/loop-lag.ts'
import { eventually } from '../support/eventually.ts'

const PAUSE_MS = 150

test('a blocked event loop counts once for each missed sample', async () => {
  const seen: number[] = []
  const stop = watchLoopLag((seconds) => seen.push(seconds))
  const endsAt = performance.now() + PAUSE_MS
  while (performance.now() < endsAt);
  await eventually(() => seen.length > 0)
  stop()
  // It samples every 20 ms.
  expect(seen[0]).toBeGreaterThan(0.12)
  expect(seen.filter((seconds) => seconds > 0.04).length).toBeGreaterThanOrEqual(4)
  expect(seen.filter((seconds) => seconds > 0.08).length).toBeGreaterThanOrEqual(2)
})

test('reports nothing after stop', async () => {
  const seen: number[] = []
  const stop = watchLoopLag((seconds) => seen.push(seconds))
  stop()
  let others = 0
  const stopOther = watchLoopLag(() => others++)
  await eventually(() => others >= 3)
  stopOther()
  expect(seen).toEqual([])
})
