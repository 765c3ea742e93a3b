import { describe, expect, test } from 'bun:test'
import { Slots } from '../../src/hosted/scheduler/slots.ts'
import { seededRandom } from '../support/random.ts'

/** Which run is executed next: limits in total and per workspace, and round robin between workspaces. */

const shares = (slots: Slots, ...line: string[]) => Object.fromEntries(slots.share(line))

describe('a slot', () => {
  test('is taken until the process or the workspace has no free one', () => {
    const slots = new Slots(3, 2)
    expect(['a', 'a', 'a', 'b', 'b'].map((workspace) => slots.take(workspace))).toEqual([
      true,
      true,
      false,
      true,
      false,
    ])
    slots.release('a')
    expect(slots.take('b')).toBe(true)
  })

  test('is not taken ahead of queued runs', () => {
    const slots = new Slots(10, 10)
    slots.enqueued('a')
    expect([slots.take('a'), slots.take('b'), slots.isAnyQueued]).toEqual([false, true, true])
    slots.readingQueue()
    slots.setQueue([])
    expect([slots.take('a'), slots.isAnyQueued]).toEqual([true, false])
  })

  test('is not taken ahead of a run that was queued while the queue was read', () => {
    const slots = new Slots(10, 10)
    slots.readingQueue()
    slots.enqueued('a')
    slots.setQueue(['b'])
    expect(['a', 'b', 'c'].map((workspace) => slots.take(workspace))).toEqual([false, false, true])
    slots.readingQueue()
    slots.setQueue([])
    expect([slots.take('a'), slots.isAnyQueued]).toEqual([true, false])
  })

  test('is counted for a run that is executed in any case, and released like any other', () => {
    const slots = new Slots(1, 1)
    slots.force('a')
    slots.force('a')
    expect([slots.take('b'), shares(slots, 'b')]).toEqual([false, {}])
    slots.release('a')
    expect(slots.take('b')).toBe(false)
    slots.release('a')
    expect(slots.take('b')).toBe(true)
  })
})

describe('free slots', () => {
  test('go to the waiting workspaces round robin', () => {
    expect(shares(new Slots(5, 9), 'c', 'a', 'b')).toEqual({ a: 2, b: 2, c: 1 })
    expect(shares(new Slots(9, 2), 'a', 'b')).toEqual({ a: 2, b: 2 })
  })

  test('continue after the workspace that got the last one', () => {
    const slots = new Slots(1, 9)
    const served = Array.from({ length: 6 }, () => {
      const [workspace] = Object.keys(shares(slots, 'a', 'b', 'c'))
      slots.release(workspace!)
      return workspace
    })
    expect(served).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  })

  test('skip a workspace at its limit', () => {
    const slots = new Slots(4, 2)
    slots.force('a')
    slots.force('a')
    expect(shares(slots, 'a', 'b')).toEqual({ b: 2 })
  })

  test('are taken at once: no other workspace can get them', () => {
    const slots = new Slots(2, 2)
    expect(shares(slots, 'a')).toEqual({ a: 2 })
    expect([slots.take('b'), shares(slots, 'b')]).toEqual([false, {}])
    slots.release('a')
    expect(slots.take('b')).toBe(true)
  })

  test('do not exist when all slots are taken', () => {
    const slots = new Slots(1, 1)
    slots.force('a')
    expect(shares(slots, 'a', 'b')).toEqual({})
  })
})

test('no workspace with queued runs waits longer than one round of the others', () => {
  const random = seededRandom('slots')
  const names = [...'abcdefgh']
  for (let round = 0; round < 200; round++) {
    const [total, each] = [random.int(1, 6), random.int(1, 4)]
    const slots = new Slots(total, each)
    const driven: string[] = []
    const waited = new Map(names.map((name) => [name, 0]))
    for (let step = 0; step < 100; step++) {
      const free = total - driven.length
      for (const [workspace, count] of slots.share(names)) {
        for (let i = 0; i < count; i++) driven.push(workspace)
        waited.set(workspace, -1)
      }
      expect(driven.length).toBeLessThanOrEqual(total)
      for (const name of names) {
        expect(driven.filter((other) => other === name).length).toBeLessThanOrEqual(each)
        const isFull = driven.filter((other) => other === name).length >= each
        waited.set(name, isFull ? 0 : waited.get(name)! + (free > 0 ? 1 : 0))
        expect(waited.get(name)).toBeLessThanOrEqual(names.length)
      }
      const over = driven.splice(random.int(0, driven.length - 1), 1)[0]!
      slots.release(over)
    }
  }
})
