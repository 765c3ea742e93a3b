import { expect, test } from 'bun:test'
import { ClaimIndex, type ClaimSource, EVENT_BOUNDS, type StoredId } from '../../src/activity/claims/claim-index.ts'
import { IdMap } from '../../src/activity/claims/id-map.ts'
import type { RunRef } from '../../src/base/ids.ts'
import { eventsToClaim } from '../../src/tenants/partitions/partition.ts'
import { runRef } from '../support/events.ts'

/** Which events of a call repeat an earlier one with their id (docs/events.md). */

const done = async () => {}
/** More ids are not read together with those of other runs. */
const FEW = 3
const SMALL = { ids: 10, idsPerRun: 4, runs: 3 }

/** A stand-in for the ClickHouse store that counts its queries. */
function storeOf(stored: Map<string, Set<string>>) {
  const asked = { few: 0, all: 0, among: 0 }
  const of = (run: RunRef) => stored.get(run.runId) ?? new Set<string>()
  const idsOf = (run: RunRef) => [...of(run)].map((id): StoredId => [id, 1])
  const source: ClaimSource = {
    hasContents: false,
    endSeq: () => 0,
    ready: done,
    few: async (runs) => {
      asked.few++
      return runs.map((run) => (of(run).size <= FEW ? idsOf(run) : of(run).size))
    },
    all: async (run) => {
      asked.all++
      return idsOf(run)
    },
    among: async (wanted, visit) => {
      asked.among++
      for (const { run, id } of wanted) if (of(run).has(id)) visit(run.runId, id, 1)
    },
  }
  return { source, asked }
}

/** An index whose claims are of one run, and say of each event whether it is new. */
function indexOf(source: ClaimSource, bounds = EVENT_BOUNDS) {
  const index = new ClaimIndex(source, bounds)
  return {
    runStarted: (run: RunRef) => index.runStarted(run),
    async claim<Result>(
      run: RunRef,
      ids: readonly (string | undefined)[],
      append: (fresh: readonly boolean[]) => Promise<Result>,
    ) {
      let fresh: boolean[] = []
      const claimed = await index.claim(eventsToClaim(run, ids), (rows) => {
        fresh = ids.map((_, row) => rows.includes(row))
        return append(fresh)
      })
      return { ...claimed, fresh }
    },
  }
}

test('a run indexed from its start needs no queries; ids are deduplicated within and across calls', async () => {
  const { source, asked } = storeOf(new Map())
  const index = indexOf(source)
  const run = runRef()
  index.runStarted(run)
  const seen: (readonly boolean[])[] = []
  const append = async (fresh: readonly boolean[]) => seen.push(fresh)
  const first = await index.claim(run, ['a', undefined, 'a', 'b'], append)
  expect(first).toMatchObject({ fresh: [true, true, false, true], duplicates: 1 })
  expect([seen, await first.durable]).toEqual([[[true, true, false, true]], 1])
  expect(await index.claim(run, ['b', 'c'], done)).toMatchObject({ fresh: [false, true], duplicates: 1 })
  expect(asked).toEqual({ few: 0, all: 0, among: 0 })
})

test('runs of two workspaces with the same run_id are independent', async () => {
  const run = runRef()
  const other = { ...runRef(), runId: run.runId }
  for (const bounds of [undefined, SMALL]) {
    const index = indexOf(storeOf(new Map()).source, bounds)
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
      const index = indexOf(storeOf(new Map()).source)
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
  const index = indexOf(source)
  const claims = await Promise.all(['a', 'b', 'c'].map((id) => index.claim(run, [id], done)))
  expect(claims.map(({ duplicates }) => duplicates)).toEqual([1, 0, 0])
  expect(asked).toEqual({ few: 1, all: 0, among: 0 })
})

test('of a run too large for memory, each call looks up its own ids', async () => {
  const run = runRef()
  const stored = new Set(['a', 'b', 'c', 'd', 'e'])
  const { source, asked } = storeOf(new Map([[run.runId, stored]]))
  const index = indexOf(source, SMALL)
  const store = async (ids: string[]) => {
    const claim = await index.claim(run, ids, async (fresh) => {
      await Bun.sleep(1)
      for (const [i, id] of ids.entries()) if (fresh[i]) stored.add(id)
    })
    await claim.durable
    return claim.duplicates
  }
  expect(await Promise.all([store(['e', 'f']), store(['f', 'g']), store(['g', 'g'])])).toEqual([1, 1, 2])
  expect(asked.among).toBe(3)
})

/** A run that is too large for memory, whose first queries for ids are answered late: with what was stored when they came. */
function largeRun(late: number) {
  const run = runRef()
  const stored = new Set(['a', 'b', 'c', 'd', 'e'])
  const { source } = storeOf(new Map([[run.runId, stored]]))
  const answers = Promise.withResolvers<void>()
  const among: ClaimSource['among'] = async (wanted, visit) => {
    const found: string[] = []
    await source.among(wanted, (_, id) => found.push(id))
    if (late-- > 0) await answers.promise
    for (const id of found) visit(run.runId, id, 1)
  }
  const index = indexOf({ ...source, among }, SMALL)
  const claim = async (ids: string[], until?: Promise<void>) => {
    const { duplicates, durable } = await index.claim(run, ids, async (fresh) => {
      await until
      for (const [i, id] of ids.entries()) if (fresh[i]) stored.add(id)
    })
    await durable
    return duplicates
  }
  return { claim, answers }
}

test('an answer about a large run does not count once what was claimed meanwhile is no longer in memory', async () => {
  const { claim, answers } = largeRun(1)
  const late = claim(['x'])
  await Bun.sleep(0)
  expect(await claim(['x', 'f', 'g', 'h', 'i'])).toBe(0)
  answers.resolve()
  expect(await late).toBe(1)
})

test('nor does it count after a wait for the appends of a large run', async () => {
  const { claim, answers } = largeRun(2)
  const late = [claim(['x', 'k', 'l', 'm', 'n']), claim(['x'])]
  await Bun.sleep(0)
  const written = Promise.withResolvers<void>()
  const first = claim(['f', 'g', 'h', 'i', 'j'], written.promise)
  await Bun.sleep(0)
  answers.resolve()
  await Bun.sleep(0)
  written.resolve()
  expect(await first).toBe(0)
  expect((await Promise.all(late)).sort()).toEqual([0, 1])
})

test('bounds memory: evicts the least recently used runs and reloads them, but keeps those with appends in flight', async () => {
  const stored = new Map<string, Set<string>>()
  const { source, asked } = storeOf(stored)
  const index = indexOf(source, SMALL)
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
  const index = indexOf(source)
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
  const index = indexOf(source)
  const claims = await Promise.all(runs.map((run) => index.claim(run, ['a', 'b'], done)))
  expect(claims.every(({ duplicates }) => duplicates === 1)).toBe(true)
  // The first alone, then as many as a query takes.
  expect(asked).toEqual({ few: 3, all: 0, among: 0 })
})

test('a query that fails refuses the runs that it was for, which are looked up again', async () => {
  const run = runRef()
  const { source } = storeOf(new Map([[run.runId, new Set(['a'])]]))
  let isDown = true
  const few: ClaimSource['few'] = (runs) => (isDown ? Promise.reject(new Error('down')) : source.few(runs))
  const index = indexOf({ ...source, few })
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
  const index = indexOf({ ...source, ...positions }, { ...SMALL, runs: 1 })
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

test.each([true, false])('a map of ids equals a map of texts (with contents: %p)', (hasContents) => {
  const map = new IdMap(hasContents)
  const model = new Map<string, number>()
  let seed = 7
  const random = (max: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % max
  }
  for (let step = 0; step < 60_000; step++) {
    const id = `id ${random(5_000)}`
    const content = hasContents ? 2 ** (50 * random(2)) + random(3) : 1
    expect(map.has(id)).toBe(model.has(id))
    expect(map.put(id, content)).toBe(model.get(id) !== content)
    model.set(id, content)
    expect(map.size).toBe(model.size)
  }
  for (let n = 0; n < 5_000; n++) expect(map.has(`id ${n}`)).toBe(model.has(`id ${n}`))
})
