import { expect, test } from 'bun:test'
import { ClaimIndex, type ClaimSource, SCORE_BOUNDS, type StoredId } from '../../src/activity/claims/claim-index.ts'
import type { RunRef } from '../../src/base/ids.ts'
import { runRef } from '../support/events.ts'
import { eventually } from '../support/eventually.ts'

/** Which scores of a call repeat the latest one with their id (docs/scores.md). */

/** More scores are not read together with those of other runs. */
const FEW = 2
const SMALL = { ids: 20, idsPerRun: 4, runs: 3 }
type Score = readonly [run: RunRef, id: string | undefined, hash: number]

/** A stand-in for ClickHouse that counts its queries. */
function storeOf() {
  const stored = new Map<string, Map<string, number>>()
  const asked = { few: 0, all: 0, among: 0 }
  const of = ({ runId }: RunRef) => stored.get(runId) ?? new Map<string, number>()
  const source: ClaimSource = {
    hasContents: true,
    endSeq: () => 0,
    ready: async () => {},
    async few(runs) {
      asked.few++
      return runs.map((run) => (of(run).size <= FEW ? [...of(run)] : of(run).size))
    },
    async all(run) {
      asked.all++
      return [...of(run)].map(([id, hash]): StoredId => [id, hash])
    },
    async among(wanted, visit) {
      asked.among++
      for (const { run, id } of wanted) if (of(run).has(id)) visit(run.runId, id, of(run).get(id)!)
    },
  }
  /** Stores what is appended. */
  const store = (scores: readonly Score[]) => async (rows: readonly number[]) => {
    for (const row of rows) {
      const [run, id = '', hash] = scores[row]
      stored.set(run.runId, of(run).set(id, hash))
    }
    return rows
  }
  return { source, asked, store }
}

async function claim<Result>(
  index: ClaimIndex,
  scores: readonly Score[],
  append: (rows: readonly number[]) => Promise<Result>,
) {
  const runs = [...new Set(scores.map(([run]) => run))]
  const [runOf, idOf, contentOf] = [
    (row: number) => runs.indexOf(scores[row][0]),
    (row: number) => scores[row][1],
    (row: number) => scores[row][2],
  ]
  return index.claim({ runs, rows: scores.map((_, row) => row), runOf, idOf, contentOf }, append)
}

test('runs known from their start need no queries; the latest content of an id counts', async () => {
  const { source, asked } = storeOf()
  const index = new ClaimIndex(source, SCORE_BOUNDS)
  const [one, two] = [runRef(), runRef()]
  for (const run of [one, two]) index.runStarted(run)
  const rowsOf = async (...scores: Score[]) => {
    const { duplicates, durable } = await claim(index, scores, async (rows) => rows)
    return [duplicates, await durable]
  }
  expect(await rowsOf([one, 'a', 1], [two, 'a', 1], [one, 'a', 1], [one, undefined, 1])).toEqual([1, [0, 1, 3]])
  expect(await rowsOf([one, 'a', 2], [two, 'a', 1], [one, 'a', 1], [one, 'a', 1])).toEqual([2, [0, 2]])
  expect(asked).toEqual({ few: 0, all: 0, among: 0 })
})

test('in bounded memory, whatever is evicted, too large or appended at once', async () => {
  const { source, asked, store } = storeOf()
  const index = new ClaimIndex(source, SMALL)
  const runs = Array.from({ length: 6 }, () => runRef())
  const latest = new Map<string, number>()
  for (let round = 0; round < 300; round++) {
    const scores = Array.from({ length: 1 + (round % 5) }, (_, n): Score => {
      const random = (round * 7 + n * 13) % 97
      return [runs[random % 6], `${random % 11}`, 1 + (random % 3)]
    })
    const expected = scores.map(([run, id, hash]) => {
      const isNew = latest.get(run.runId + id) !== hash
      latest.set(run.runId + id, hash)
      return isNew
    })
    const { duplicates, durable } = await claim(index, scores, store(scores))
    expect([round, duplicates]).toEqual([round, expected.filter((isNew) => !isNew).length])
    await durable
  }
  expect(asked.among).toBeGreaterThan(0)
  expect(asked.all).toBeGreaterThan(0)
})

test('a repeat waits for its original, and what a failed append claimed is free again', async () => {
  const { source } = storeOf()
  const index = new ClaimIndex(source, SCORE_BOUNDS)
  const run = runRef()
  index.runStarted(run)
  const writing = Promise.withResolvers<string>()
  const original = await claim(index, [[run, 'a', 1]], () => writing.promise)
  const repeat = await claim(index, [[run, 'a', 1]], async () => 'nothing')
  let isAnswered = false
  repeat.durable.then(
    () => (isAnswered = true),
    () => {},
  )
  await Bun.sleep(5)
  expect([repeat.duplicates, isAnswered]).toEqual([1, false])
  writing.reject(new Error('full'))
  await expect(original.durable).rejects.toThrow('full')
  await expect(repeat.durable).rejects.toThrow('full')
  expect((await claim(index, [[run, 'a', 1]], async () => 'stored')).duplicates).toBe(0)
})

test('concurrent calls for a run that is not known load it once, and see each other', async () => {
  const { source, asked, store } = storeOf()
  const scores: Score[] = [[runRef(), 'a', 1]]
  const calls = await Promise.all(
    Array.from({ length: 5 }, () => claim(new ClaimIndex(source, SCORE_BOUNDS), scores, store(scores))),
  )
  expect(calls.map(({ duplicates }) => duplicates)).toContain(0)
  const index = new ClaimIndex(source, SCORE_BOUNDS)
  const before = asked.few
  const run = runRef()
  const other: Score[] = [[run, 'b', 1]]
  const claimed = await Promise.all(Array.from({ length: 5 }, () => claim(index, other, store(other))))
  expect(claimed.map(({ duplicates }) => duplicates).sort()).toEqual([0, 1, 1, 1, 1])
  expect(asked.few - before).toBe(1)
  await eventually(() => claimed.every(({ durable }) => durable instanceof Promise))
})

test('what could not be looked up is refused, and looked up again by the next call', async () => {
  const { source } = storeOf()
  let isDown = true
  const few: ClaimSource['few'] = (runs) => (isDown ? Promise.reject(new Error('down')) : source.few(runs))
  const index = new ClaimIndex({ ...source, few }, SCORE_BOUNDS)
  const scores: Score[] = [[runRef(), 'a', 1]]
  await expect(claim(index, scores, async () => 1)).rejects.toThrow('down')
  isDown = false
  expect((await claim(index, scores, async () => 1)).duplicates).toBe(0)
})

test('the scores of many large runs are looked up in one query', async () => {
  const { source, asked, store } = storeOf()
  const runs = Array.from({ length: 20 }, () => runRef())
  const scores = runs.flatMap((run) => ['a', 'b', 'c', 'd', 'e'].map((id): Score => [run, id, 1]))
  await store(scores)(scores.map((_, row) => row))
  const { duplicates } = await claim(new ClaimIndex(source, SMALL), scores, async () => 1)
  expect([duplicates, asked.among]).toEqual([100, 1])
})

test('once a call that has claimed scores fails, calls that came after it claim anew', async () => {
  const { source, store } = storeOf()
  const index = new ClaimIndex(source, SCORE_BOUNDS)
  const run = runRef()
  index.runStarted(run)
  const [failing, slow] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()]
  const first = await claim(index, [[run, 'a', 1]], () => failing.promise)
  const second = await claim(index, [[run, 'b', 1]], () => slow.promise)
  failing.reject(new Error('full'))
  await expect(first.durable).rejects.toThrow('full')
  const third = claim(index, [[run, 'a', 1]], store([[run, 'a', 1]]))
  slow.resolve(1)
  expect((await third).duplicates).toBe(0)
  await second.durable
})
