import { expect, test } from 'bun:test'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { ByteBudget } from '../../src/doors/langfuse/byte-budget.ts'

test('no workspace has more than half, those that wait take turns, and what is larger than a share gets all of it', async () => {
  const budget = new ByteBudget(100)
  const order: string[] = []
  const releases = new Map<string, () => void>()
  const take = async (workspace: string, name: string, bytes: number) => {
    releases.set(name, await budget.take(workspace, bytes))
    order.push(name)
  }
  const taken = async () => {
    await nextIteration()
    return order.splice(0)
  }
  void take('a', 'a1', 50)
  for (let n = 2; n <= 4; n++) void take('a', `a${n}`, 20)
  void take('b', 'b1', 30)
  void take('c', 'c1', 40)
  void take('d', 'd1', 10)
  // Of a, the rest waits for its own share. c waits for what is not free, and d behind it.
  expect(await taken()).toEqual(['a1', 'b1'])
  releases.get('a1')!()
  expect(await taken()).toEqual(['a2', 'c1', 'd1'])
  releases.get('c1')!()
  expect(await taken()).toEqual(['a3'])
  releases.get('b1')!()
  // 40 + 20 would be more than half.
  expect(await taken()).toEqual([])
  void take('e', 'e1', 1_000)
  releases.get('d1')!()
  expect(await taken()).toEqual(['e1'])
  for (const name of ['a2', 'a3', 'e1']) releases.get(name)!()
  expect(await taken()).toEqual(['a4'])
  releases.get('a4')!()
  void take('b', 'b2', 50)
  void take('c', 'c2', 50)
  expect(await taken()).toEqual(['b2', 'c2'])
})
