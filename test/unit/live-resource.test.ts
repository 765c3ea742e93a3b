import { expect, test } from 'bun:test'
import { ApiFailure } from '../../src/dashboard/page/data/api.ts'
import { LiveResource, type Source } from '../../src/dashboard/page/data/loading.ts'
import { eventually } from '../support/eventually.ts'

/** A list whose reads end when the test says so. */
function open(options: Partial<Source<readonly string[]>> = {}) {
  const reads: PromiseWithResolvers<readonly string[]>[] = []
  const closing = new AbortController()
  const load = () => {
    const read = Promise.withResolvers<readonly string[]>()
    reads.push(read)
    return read.promise
  }
  return { list: new LiveResource<readonly string[]>([], { load, ...options }, closing.signal), reads, closing }
}

const add = (item: string) => (items: readonly string[]) => (items.includes(item) ? items : [...items, item])

test('what the feed brings before or during a read is not undone by its result', async () => {
  const { list, reads } = open()
  list.update(add('early'))
  const loaded = list.load()
  list.update(add('meanwhile'))
  expect(list.value).toEqual(['early', 'meanwhile'])
  reads[0]?.resolve(['read'])
  await loaded
  expect(list.value).toEqual(['read', 'early', 'meanwhile'])
  const again = list.load()
  reads[1]?.resolve(['read'])
  await again
  expect(list.value).toEqual(['read'])
})

test('a later read drops an earlier one, whichever ends first', async () => {
  const { list, reads } = open()
  const both = [list.load(), list.load()]
  reads[1]?.resolve(['new'])
  reads[0]?.resolve(['old'])
  await Promise.all(both)
  expect([list.value, list.isLoading.value, list.isLoaded.value]).toEqual([['new'], false, true])
})

test('a part is shown while the rest is read', async () => {
  const { list } = open()
  const rest = Promise.withResolvers<readonly string[]>()
  const loaded = list.load((_signal, show) => {
    show(['part'])
    return rest.promise
  })
  list.update(add('new'))
  expect([list.value, list.isLoading.value]).toEqual([['part', 'new'], true])
  rest.resolve(['part', 'rest'])
  await loaded
  expect(list.value).toEqual(['part', 'rest', 'new'])
})

test('a failed read keeps the value, and says why it failed until one succeeds', async () => {
  const { list, reads } = open()
  list.update(add('kept'))
  const failed = list.load()
  reads[0]?.reject(new ApiFailure('INTERNAL', 'it broke', 0))
  await failed
  expect([list.value, list.problem.value?.message, list.isLoading.value]).toEqual([['kept'], 'it broke', false])
  const loaded = list.load()
  reads[1]?.resolve([])
  await loaded
  expect([list.value, list.problem.value]).toEqual([[], null])
})

test('the same key is read once; planned reads are joined, and left out while they are not wanted or once it is closed', async () => {
  let isWanted = false
  const { list, reads, closing } = open({ isWanted: () => isWanted })
  expect([list.open('a'), list.open('a'), list.open('b')]).toEqual([true, false, true])
  expect(reads.length).toBe(2)
  reads[1]?.resolve([])
  await eventually(() => list.isLoaded.value)
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  list.loadSoon(1)
  await eventually(() => ticks > 5)
  clearInterval(timer)
  expect(reads.length).toBe(2)
  isWanted = true
  for (const ms of [60_000, 2, 1, 60_000]) list.loadSoon(ms)
  await eventually(() => reads.length === 3)
  closing.abort()
  await list.load()
  list.loadSoon(0)
  expect(reads.length).toBe(3)
})
