import { describe, expect, test } from 'bun:test'
import { Places } from '../../src/hosted/scheduler/slots.ts'
import { seededRandom } from '../support/random.ts'

/** Who is driven next: so many at once, so many of each workspace, and everybody's turn comes. */

const shares = (places: Places, ...line: string[]) => Object.fromEntries(places.share(line))

describe('a place', () => {
  test('is taken until there are none, of the process or of the workspace', () => {
    const places = new Places(3, 2)
    expect(['a', 'a', 'a', 'b', 'b'].map((workspace) => places.take(workspace))).toEqual([
      true,
      true,
      false,
      true,
      false,
    ])
    places.give('a')
    expect(places.take('b')).toBe(true)
  })

  test('is not taken past those that wait in line', () => {
    const places = new Places(10, 10)
    places.inLine('a')
    expect([places.take('a'), places.take('b'), places.isAnyInLine]).toEqual([false, true, true])
    places.line([])
    expect([places.take('a'), places.isAnyInLine]).toEqual([true, false])
  })

  test('is counted for a run that is driven in any case, and given back like any other', () => {
    const places = new Places(1, 1)
    places.force('a')
    places.force('a')
    expect([places.take('b'), shares(places, 'b')]).toEqual([false, {}])
    places.give('a')
    expect(places.take('b')).toBe(false)
    places.give('a')
    expect(places.take('b')).toBe(true)
  })
})

describe('free places', () => {
  test('go to the workspaces in line one by one', () => {
    expect(shares(new Places(5, 9), 'c', 'a', 'b')).toEqual({ a: 2, b: 2, c: 1 })
    expect(shares(new Places(9, 2), 'a', 'b')).toEqual({ a: 2, b: 2 })
  })

  test('go on after the workspace that had the last one', () => {
    const places = new Places(1, 9)
    const turns = Array.from({ length: 6 }, () => {
      const [turn] = Object.keys(shares(places, 'a', 'b', 'c'))
      places.give(turn!)
      return turn
    })
    expect(turns).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  })

  test('leave out a workspace that has as many as it may', () => {
    const places = new Places(4, 2)
    places.force('a')
    places.force('a')
    expect(shares(places, 'a', 'b')).toEqual({ b: 2 })
  })

  test('are taken by that: nobody else gets them meanwhile', () => {
    const places = new Places(2, 2)
    expect(shares(places, 'a')).toEqual({ a: 2 })
    expect([places.take('b'), shares(places, 'b')]).toEqual([false, {}])
    places.give('a')
    expect(places.take('b')).toBe(true)
  })

  test('are none when all are taken', () => {
    const places = new Places(1, 1)
    places.force('a')
    expect(shares(places, 'a', 'b')).toEqual({})
  })
})

test('no workspace in line waits for more than one round of the others, whatever they do', () => {
  const random = seededRandom('places')
  const names = [...'abcdefgh']
  for (let round = 0; round < 200; round++) {
    const [total, each] = [random.int(1, 6), random.int(1, 4)]
    const places = new Places(total, each)
    const driven: string[] = []
    const waited = new Map(names.map((name) => [name, 0]))
    for (let step = 0; step < 100; step++) {
      const free = total - driven.length
      for (const [workspace, count] of places.share(names)) {
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
      places.give(over)
    }
  }
})
