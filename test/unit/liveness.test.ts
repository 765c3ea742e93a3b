import { expect, test } from 'bun:test'
import { Liveness } from '../../src/stores/postgres/liveness.ts'

const LEASE_MS = 1_000

function watch(leaseMs: number | null = LEASE_MS) {
  let nowMs = 0
  const liveness = new Liveness(() => nowMs)
  const instanceId = crypto.randomUUID()
  const look = (afterMs: number, beats: number) => {
    nowMs += afterMs
    liveness.look([{ instanceId, beats, leaseMs }])
    return liveness.isGone(instanceId)
  }
  return { liveness, look, instanceId }
}

test('a process is gone when its sign has not changed for its lease, from when it was first seen', () => {
  const { liveness, look, instanceId } = watch()
  expect([look(50_000, 7), look(400, 7), look(400, 7), look(200, 7)]).toEqual([false, false, false, false])
  expect(look(200, 7)).toBe(true)
  expect(liveness.gone()).toEqual([expect.objectContaining({ instanceId, beats: 7 })])
  expect(liveness.gone(1_000)).toEqual([])
  expect([look(100, 8), liveness.gone()]).toEqual([false, []])
  liveness.look([])
  expect(look(5_000, 8)).toBe(false)
})

test('while nobody looks, at most half of a lease passes: after an outage the others have time to return', () => {
  const { look } = watch()
  expect([look(0, 1), look(3_600_000, 1), look(100, 1), look(100, 2)]).toEqual([false, false, false, false])
})

test('a lease without an end is over when its row is deleted, one that was never renewed soon', () => {
  const endless = watch(null)
  expect(Array.from({ length: 9 }, () => endless.look(3_600_000, 1))).not.toContain(true)
  const never = watch(0)
  expect([never.look(0, 1), never.look(90, 1), never.look(90, 1)]).toEqual([false, false, true])
})
