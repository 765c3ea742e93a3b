import { expect, test } from 'bun:test'
import { EventIdIndex, type EventIdSource } from '../../src/activity/events/id-index.ts'
import { IdSet } from '../../src/activity/events/id-set.ts'
import type { RunRef } from '../../src/base/ids.ts'
import type { Claim } from '../../src/tenants/partitions/partition.ts'
import { runRef } from '../support/events.ts'

const done = async () => {}
/** More ids are not read together with those of other runs. */
const FEW = 3
const SMALL = { ids: 10, idsPerRun: 4, runs: 3 }

/** A stand-in for the ClickHouse store that counts its queries. */
function storeOf(stored: Map<string, Set<string>>) {
  const asked = { few: 0, all: 0, among: 0 }
  const of = (run: RunRef) => stored.get(run.runId) ?? new Set<string>()
  const source: EventIdSource = {
    few: async (runs) => {
      asked.few++
      return runs.map((run) => (of(run).size <= FEW ? [...of(run)] : null))
    },
    all: async (run, limit) => {
      asked.all++
      return [...of(run)].slice(0, limit)
    },
    among: async (run, ids) => {
      asked.among++
      return ids.filter((id) => of(run).has(id))
    },
  }
  return { source, asked }
}

test('a run indexed from its start needs no queries; ids are deduplicated within and across calls', async () => {
  const { source, asked } = storeOf(new Map())
  const index = new EventIdIndex(source)
  const run = runRef()
  index.runStarted(run)
  const seen: Claim[] = []
  const append = async (claim: Claim) => seen.push(claim)
  const first = await index.claim(run, ['a', undefined, 'a', 'b'], append)
  expect(first).toMatchObject({ fresh: [true, true, false, true], duplicates: 1 })
  expect([seen.map(({ fresh }) => fresh), await first.durable]).toEqual([[[true, true, false, true]], 1])
  expect(await index.claim(run, ['b', 'c'], done)).toMatchObject({ fresh: [false, true], duplicates: 1 })
  expect(asked).toEqual({ few: 0, all: 0, among: 0 })
})

test('runs of two workspaces with the same run_id are independent', async () => {
  const run = runRef()
  const other = { ...runRef(), runId: run.runId }
  for (const bounds of [undefined, SMALL]) {
    const index = new EventIdIndex(storeOf(new Map()).source, bounds)
    index.runStarted(run)
    await index.claim(run, ['a', 'b', 'c', 'd', 'e'], done)
    index.runStarted(other)
    expect(await index.claim(other, ['a', 'b'], done)).toMatchObject({ duplicates: 0 })
    await Bun.sleep(0)
  }
})

/** What a promise has come to by now. */
const stateOf = (promise: Promise<unknown>) =>
  Promise.race([
    promise.then(
      () => 'durable',
      () => 'failed',
    ),
    Bun.sleep(0).then(() => 'waiting'),
  ])

test.each(['in memory', 'not in memory'])(
  'a repeat that comes at the same time waits for the first append of a run that is %s',
  async (where) => {
    for (const outcome of ['durable', 'failed'] as const) {
      const index = new EventIdIndex(storeOf(new Map()).source)
      const run = runRef()
      if (where === 'in memory') index.runStarted(run)
      const append = Promise.withResolvers<void>()
      // Both come before either goes on.
      const calls = [index.claim(run, ['a'], () => append.promise), index.claim(run, ['a'], done)]
      const [first, repeat] = await Promise.all(calls)
      expect([first.duplicates, repeat.duplicates]).toEqual([0, 1])
      expect(await stateOf(repeat.durable)).toBe('waiting')
      if (outcome === 'durable') append.resolve()
      else append.reject(new Error('disk'))
      expect([await stateOf(first.durable), await stateOf(repeat.durable)]).toEqual([outcome, outcome])
      expect(await index.claim(run, ['a'], done)).toMatchObject({ duplicates: outcome === 'durable' ? 1 : 0 })
    }
  },
)

test('concurrent calls load an unknown run once', async () => {
  const run = runRef()
  const { source, asked } = storeOf(new Map([[run.runId, new Set(['a'])]]))
  const index = new EventIdIndex(source)
  const claims = await Promise.all(['a', 'b', 'c'].map((id) => index.claim(run, [id], done)))
  expect(claims.map(({ duplicates }) => duplicates)).toEqual([1, 0, 0])
  expect(asked).toEqual({ few: 1, all: 0, among: 0 })
})

test('a run too large for memory is queried on every call, one call at a time', async () => {
  const run = runRef()
  const stored = new Set(['a', 'b', 'c', 'd', 'e'])
  const { source, asked } = storeOf(new Map([[run.runId, stored]]))
  const index = new EventIdIndex(source, SMALL)
  const store = async (ids: string[]) => {
    const claim = await index.claim(run, ids, async ({ fresh }) => {
      await Bun.sleep(1)
      for (const [i, id] of ids.entries()) if (fresh[i]) stored.add(id)
    })
    await claim.durable
    return claim.duplicates
  }
  expect(await Promise.all([store(['e', 'f']), store(['f', 'g']), store(['g', 'g'])])).toEqual([1, 1, 2])
  expect(asked.among).toBe(3)
})

test('bounds memory: evicts the least recently used runs and reloads them, but keeps those with appends in flight', async () => {
  const stored = new Map<string, Set<string>>()
  const { source, asked } = storeOf(stored)
  const index = new EventIdIndex(source, SMALL)
  const runs = Array.from({ length: 6 }, () => runRef())
  const pending = Promise.withResolvers<void>()
  for (const [i, run] of runs.entries()) {
    index.runStarted(run)
    stored.set(run.runId, new Set(['a', 'b']))
    await index.claim(run, ['a', 'b'], () => (i === 0 ? pending.promise : done()))
    await Bun.sleep(0)
  }
  expect(await index.claim(runs[0], ['a'], done)).toMatchObject({ duplicates: 1 })
  expect(asked.few).toBe(0)
  expect(await index.claim(runs[1], ['a', 'z'], done)).toMatchObject({ fresh: [false, true] })
  expect(asked.few).toBe(1)
  pending.resolve()
})

test('the start of a run that has reported already, or is being looked up, forgets nothing', async () => {
  const stored = new Map<string, Set<string>>()
  const { source } = storeOf(stored)
  const index = new EventIdIndex(source)
  const [early, looked] = [runRef(), runRef()]
  await index.claim(early, ['a'], done)
  index.runStarted(early)
  expect(await index.claim(early, ['a'], done)).toMatchObject({ duplicates: 1 })
  stored.set(looked.runId, new Set(['a']))
  const claim = index.claim(looked, ['a'], done)
  index.runStarted(looked)
  expect(await claim).toMatchObject({ duplicates: 1 })
})

test('runs that are asked for while a query is under way are fetched together by the next', async () => {
  const runs = Array.from({ length: 300 }, () => runRef())
  const { source, asked } = storeOf(new Map(runs.map((run) => [run.runId, new Set(['a'])])))
  const index = new EventIdIndex(source)
  const claims = await Promise.all(runs.map((run) => index.claim(run, ['a', 'b'], done)))
  expect(claims.every(({ duplicates }) => duplicates === 1)).toBe(true)
  // The first alone, then as many as a query takes.
  expect(asked).toEqual({ few: 3, all: 0, among: 0 })
})

test('a query that fails refuses the runs that it was for, which are looked up again', async () => {
  const run = runRef()
  const { source } = storeOf(new Map([[run.runId, new Set(['a'])]]))
  let isDown = true
  const few: EventIdSource['few'] = (runs) => (isDown ? Promise.reject(new Error('down')) : source.few!(runs))
  const index = new EventIdIndex({ ...source, few })
  expect(index.claim(run, ['a'], done)).rejects.toThrow('down')
  await Bun.sleep(0)
  isDown = false
  expect(await index.claim(run, ['a'], done)).toMatchObject({ duplicates: 1 })
})

test('a run is looked up once its own rows can be read, without those that came later', async () => {
  const { source } = storeOf(new Map())
  const waited: number[] = []
  let end = 100
  const positions = { endSeq: () => end, ready: async (seq: number) => void waited.push(seq) }
  const index = new EventIdIndex({ ...source, positions }, { ...SMALL, runs: 1 })
  const [first, second] = [runRef(), runRef()]
  const lookUp = async (run: RunRef) => (await index.claim(run, ['x'], done)).durable
  // Before this process began.
  await lookUp(first)
  end = 200
  // Evicts the first.
  await lookUp(second)
  await Bun.sleep(0)
  end = 5_000
  await lookUp(first)
  expect(waited).toEqual([100, 100, 200])
  // Where its rows are after a failed append is not known.
  await (await index.claim(first, ['y'], () => Promise.reject(new Error('disk')))).durable.catch(() => {})
  await lookUp(second)
  await Bun.sleep(0)
  end = 9_000
  await lookUp(first)
  expect(waited.at(-1)).toBe(9_000)
})

test('a set of ids equals a set of texts', () => {
  const set = new IdSet()
  const model = new Set<string>()
  let seed = 7
  const random = (max: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % max
  }
  for (let step = 0; step < 60_000; step++) {
    const id = `id ${random(5_000)}`
    if (random(3) === 0) expect(set.delete(id)).toBe(model.delete(id))
    else {
      expect(set.add(id)).toBe(!model.has(id))
      model.add(id)
    }
    expect(set.size).toBe(model.size)
  }
  for (let n = 0; n < 5_000; n++) expect(set.add(`id ${n}`)).toBe(!model.has(`id ${n}`))
})
