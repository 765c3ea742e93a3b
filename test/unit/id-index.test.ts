import { expect, test } from 'bun:test'
import type { RunRef } from '../../src/base/ids.ts'
import { EventIdIndex, type EventIdSource } from '../../src/events/id-index.ts'
import type { Claim } from '../../src/partitions/partition.ts'
import { runRef } from '../support/events.ts'

const done = async () => {}
const SMALL = { ids: 10, idsPerRun: 4, runs: 3 }

/** A stand-in for the ClickHouse store that counts its queries. */
function storeOf(stored: Map<string, Set<string>>) {
  const asked = { all: 0, among: 0 }
  const of = (run: RunRef) => stored.get(run.runId) ?? new Set<string>()
  const source: EventIdSource = {
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
  expect(asked).toEqual({ all: 0, among: 0 })
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
  expect(asked).toEqual({ all: 1, among: 0 })
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
  expect(asked.all).toBe(0)
  expect(await index.claim(runs[1], ['a', 'z'], done)).toMatchObject({ fresh: [false, true] })
  expect(asked.all).toBe(1)
  pending.resolve()
})
