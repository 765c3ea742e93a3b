import { describe, expect, test } from 'bun:test'
import { type BatcherLimits, createBatcher } from '../../src/stores/postgres/batcher.ts'
import { eventually } from '../support/eventually.ts'
import { seededRandom } from '../support/random.ts'

interface Item {
  readonly key: string
  readonly owner?: string
  readonly value: number
  readonly bytes?: number
}

/** A batcher whose statements the test answers by hand. */
function manual(limits: Partial<BatcherLimits> = {}) {
  const statements: { items: readonly Item[]; answer: PromiseWithResolvers<readonly (number | Error)[]> }[] = []
  const batcher = createBatcher<Item, number>({
    run(items) {
      const answer = Promise.withResolvers<readonly (number | Error)[]>()
      statements.push({ items, answer })
      return answer.promise
    },
    keyOf: (item) => item.key,
    ownerOf: (item) => item.owner ?? '',
    bytesOf: (item) => item.bytes ?? 1,
    limits,
  })
  return {
    statements,
    submit: (key: string, value = 0, bytes = 1, owner = '') => batcher.submit({ key, value, bytes, owner }),
    /** Waits for the statement and answers each item with its value. */
    async answer(index: number) {
      await eventually(() => statements.length > index)
      statements[index].answer.resolve(statements[index].items.map((item) => item.value))
    },
  }
}

describe('a batcher', () => {
  test('combines items that arrive together, or during a statement, into one statement', async () => {
    const { statements, submit, answer } = manual({ batchesInFlight: 1 })
    const first = [submit('a', 1), submit('b', 2)]
    await eventually(() => statements.length === 1)
    const second = [submit('c', 3), submit('d', 4), submit('e', 5)]
    await answer(0)
    await answer(1)
    expect(await Promise.all([...first, ...second])).toEqual([1, 2, 3, 4, 5])
    expect(statements.map(({ items }) => items.map((item) => item.key))).toEqual([
      ['a', 'b'],
      ['c', 'd', 'e'],
    ])
  })

  test('limits a statement by items and by bytes; an oversized item gets its own statement', async () => {
    const { statements, submit, answer } = manual({ itemsPerBatch: 3, bytesPerBatch: 10, batchesInFlight: 1 })
    const all = [
      submit('a'),
      submit('b'),
      submit('c'),
      submit('d'),
      submit('e', 0, 50),
      submit('f', 0, 8),
      submit('g', 0, 8),
    ]
    for (let index = 0; index < 5; index++) await answer(index)
    await Promise.all(all)
    expect(statements.map(({ items }) => items.map((item) => item.key).join(''))).toEqual(['abc', 'd', 'e', 'f', 'g'])
  })

  test('serves owners in turn: what one has queued delays no other', async () => {
    const { statements, submit, answer } = manual({ itemsPerBatch: 4, bytesPerBatch: 10, batchesInFlight: 1 })
    const first = submit('x1', 0, 1, 'x')
    await eventually(() => statements.length === 1)
    const many = [1, 2, 3, 4, 5, 6, 7].map((n) => submit(`a${n}`, n, 1, 'a'))
    const large = [submit('b1', 0, 9, 'b'), submit('b2', 0, 9, 'b')]
    const few = [submit('c1', 0, 1, 'c'), submit('x2', 0, 1, 'x')]
    for (let index = 0; index < 5; index++) await answer(index)
    await Promise.all([first, ...many, ...large, ...few])
    // What does not fit is first in the next statement.
    expect(statements.map(({ items }) => items.map((item) => item.key).join(' '))).toEqual([
      'x1',
      'a1 b1',
      'c1 x2 a2 a3',
      'b2 a4',
      'a5 a6 a7',
    ])
  })

  test('has room for one owner while another has filled its own', async () => {
    const { statements, submit, answer } = manual({ batchesInFlight: 1, itemsQueued: 3, bytesQueued: 100 })
    const all = [submit('first', 0, 1, 'a')]
    await eventually(() => statements.length === 1)
    all.push(submit('a1', 0, 1, 'a'), submit('a2', 0, 98, 'a'))
    await expect(submit('a3', 0, 2, 'a')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    all.push(submit('a3', 0, 1, 'a'))
    await expect(submit('a4', 0, 0, 'a')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    all.push(submit('b1', 0, 90, 'b'), submit('c1', 0, 5, 'c'), submit('d1', 0, 5, 'd'))
    // All together are bounded as well.
    await expect(submit('e1', 0, 0, 'e')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await answer(0)
    await answer(1)
    await Promise.all(all)
  })

  test('rejects items that do not fit the queue and serves the rest', async () => {
    const { statements, submit, answer } = manual({ batchesInFlight: 1, itemsQueued: 3, bytesQueued: 100 })
    const first = submit('a')
    await eventually(() => statements.length === 1)
    const queued = [submit('b'), submit('c', 0, 90)]
    await expect(submit('d', 0, 50)).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
    const third = submit('e')
    await expect(submit('f')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await answer(0)
    await answer(1)
    await Promise.all([first, ...queued, third])
    const again = submit('f')
    await answer(2)
    await again
  })

  test('gives each item its own outcome', async () => {
    const { statements, submit } = manual()
    const all = [submit('a'), submit('b'), submit('c')]
    await eventually(() => statements.length === 1)
    statements[0].answer.resolve([1, new Error('b alone'), 3])
    expect((await Promise.allSettled(all)).map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
  })

  test('one item that the database rejects does not fail the rest of its batch', async () => {
    const batcher = createBatcher<Item, number>({
      run: async (items) => {
        if (items.some((item) => item.value < 0)) throw Object.assign(new Error('bad data'), { code: '22P02' })
        return items.map((item) => item.value)
      },
      keyOf: (item) => item.key,
      bytesOf: () => 1,
    })
    const outcomes = await Promise.allSettled([1, -2, 3].map((value) => batcher.submit({ key: `${value}`, value })))
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('does not repeat a statement whose outcome is unknown', async () => {
    const { statements, submit, answer } = manual()
    const all = [submit('a'), submit('b')]
    await eventually(() => statements.length === 1)
    statements[0].answer.reject(Object.assign(new Error('gone'), { code: 'CONNECTION_CLOSED' }))
    const outcomes = await Promise.allSettled(all)
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
    expect(statements).toHaveLength(1)
    const next = submit('a', 7)
    await answer(1)
    expect(await next).toBe(7)
  })

  test('serves every key in order of arrival, never twice at once, for random input', async () => {
    const random = seededRandom('batcher')
    const running = new Set<string>()
    const served = new Map<string, number[]>()
    const batcher = createBatcher<Item, number>({
      async run(items) {
        for (const { key } of items) {
          expect(running.has(key)).toBe(false)
          running.add(key)
        }
        for (let turns = random.int(0, 3); turns > 0; turns--) await new Promise(setImmediate)
        for (const { key, value } of items) {
          running.delete(key)
          served.set(key, [...(served.get(key) ?? []), value])
        }
        return items.map((item) => item.value)
      },
      keyOf: (item) => item.key,
      ownerOf: ({ key }) => String(Number(key) % 3),
      bytesOf: (item) => item.bytes ?? 1,
      limits: { itemsPerBatch: 5, bytesPerBatch: 20, batchesInFlight: 3 },
    })
    const sent = new Map<string, number[]>()
    const calls: Promise<number>[] = []
    for (let value = 0; value < 2_000; value++) {
      const key = `${random.int(0, 9)}`
      sent.set(key, [...(sent.get(key) ?? []), value])
      calls.push(batcher.submit({ key, value, bytes: random.int(1, 12) }))
      if (random.bool(0.2)) await new Promise(setImmediate)
    }
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 2_000 }, (_, index) => index))
    expect(served).toEqual(sent)
  })
})
