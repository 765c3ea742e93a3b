import { expect, test } from 'bun:test'
import { EventIdIndex, type EventIdSource } from '../../src/events/id-index.ts'
import type { RunRef } from '../../src/events/schema.ts'
import { runRef } from '../support/events.ts'

const DONE = Promise.resolve()
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
  const first = await index.claim(run, ['a', undefined, 'a', 'b'])
  expect(first).toMatchObject({ fresh: [true, true, false, true], duplicates: 1 })
  first.appended(DONE)
  expect(await index.claim(run, ['b', 'c'])).toMatchObject({ fresh: [false, true], duplicates: 1 })
  expect(asked).toEqual({ all: 0, among: 0 })
})

test('runs of two workspaces with the same run_id are independent', async () => {
  const run = runRef()
  const other = { ...runRef(), runId: run.runId }
  for (const bounds of [undefined, SMALL]) {
    const index = new EventIdIndex(storeOf(new Map()).source, bounds)
    index.runStarted(run)
    ;(await index.claim(run, ['a', 'b', 'c', 'd', 'e'])).appended(DONE)
    index.runStarted(other)
    expect(await index.claim(other, ['a', 'b'])).toMatchObject({ duplicates: 0, settled: undefined })
    await Bun.sleep(0)
  }
})

test('a duplicate settles with the append it repeats, and fails with it', async () => {
  const index = new EventIdIndex(storeOf(new Map()).source)
  const run = runRef()
  index.runStarted(run)
  const append = Promise.withResolvers<void>()
  ;(await index.claim(run, ['a'])).appended(append.promise)
  const repeat = await index.claim(run, ['a'])
  expect(repeat.duplicates).toBe(1)
  repeat.appended(DONE)
  append.reject(new Error('disk'))
  await expect(repeat.settled).rejects.toThrow('disk')
  expect(await index.claim(run, ['a'])).toMatchObject({ duplicates: 0 })
})

test('concurrent calls load an unknown run once', async () => {
  const run = runRef()
  const { source, asked } = storeOf(new Map([[run.runId, new Set(['a'])]]))
  const index = new EventIdIndex(source)
  const claims = await Promise.all(['a', 'b', 'c'].map((id) => index.claim(run, [id])))
  expect(claims.map(({ duplicates }) => duplicates)).toEqual([1, 0, 0])
  expect(asked).toEqual({ all: 1, among: 0 })
})

test('a run too large for memory is queried on every call, one call at a time', async () => {
  const run = runRef()
  const stored = new Set(['a', 'b', 'c', 'd', 'e'])
  const { source, asked } = storeOf(new Map([[run.runId, stored]]))
  const index = new EventIdIndex(source, SMALL)
  const store = async (ids: string[]) => {
    const claim = await index.claim(run, ids)
    const append = (async () => {
      await Bun.sleep(1)
      for (const [i, id] of ids.entries()) if (claim.fresh[i]) stored.add(id)
    })()
    claim.appended(append)
    await append
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
    ;(await index.claim(run, ['a', 'b'])).appended(i === 0 ? pending.promise : DONE)
    await Bun.sleep(0)
  }
  expect(await index.claim(runs[0], ['a'])).toMatchObject({ duplicates: 1 })
  expect(asked.all).toBe(0)
  expect(await index.claim(runs[1], ['a', 'z'])).toMatchObject({ fresh: [false, true] })
  expect(asked.all).toBe(1)
  pending.resolve()
})
