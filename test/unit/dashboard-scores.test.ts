import { beforeEach, describe, expect, test } from 'bun:test'
import { address, hrefOf, parseAddress } from '../../src/dashboard/page/context/router.ts'
import type { Queries } from '../../src/dashboard/page/data/api.ts'
import type { Score, SignedIn } from '../../src/dashboard/page/data/records.ts'
import { readScores } from '../../src/dashboard/page/overview/score-charts.tsx'
import { chosenColumns, shownColumns } from '../../src/dashboard/page/runs/columns.ts'
import { queryOfView, savedQuery } from '../../src/dashboard/page/runs/saved-views.ts'
import { columnOf, figureText, scoreColumnOf } from '../../src/dashboard/page/runs/score-columns.tsx'
import {
  isTakenBack,
  scorerOf,
  sorted,
  stepOfScore,
  thumbCounts,
  thumbId,
  thumbOf,
  thumbScore,
  valueText,
} from '../../src/dashboard/page/scores/score.ts'

/** Scores in the page, without a browser. */

const SCORE: Score = {
  ...{ id: 'a', task_id: null, event_id: null, session_id: null, name: 'correct', value: 0.5, label: null, text: null },
  ...{ comment: null, source: 'api', metadata: {}, created_at: '2026-01-31T00:00:00.000Z' },
}
const score = (more: Partial<Score>): Score => ({ ...SCORE, ...more })
const ada = { person_id: '0198c2f0-0000-7000-8000-000000000001', name: 'Ada', email: null } as SignedIn

describe('a score', () => {
  test('shows its value, its label or both, with the digits that count', () => {
    const shown = [
      { value: 2 / 3 },
      { value: 0 },
      { value: 123_456 },
      { value: true },
      { value: false, label: 'wrong' },
      { value: null, label: 'refund' },
      { value: null },
    ].map((each) => valueText(score(each)))
    expect(shown).toEqual(['0.6667', '0', '123500', 'true', 'false · wrong', 'refund', ''])
  })

  test('names who gave it if its metadata does', () => {
    expect(scorerOf(score({ metadata: { by: 'Ada' } }))).toBe('Ada')
    expect(scorerOf(score({ metadata: { by: { name: 'Ada' } } }))).toBeNull()
    expect(scorerOf(SCORE)).toBeNull()
  })

  test('belongs to the step of its task, or to the one that its event is part of', () => {
    const bars = [
      { id: 't1', events: [] },
      { id: 'e1', events: [{ id: 'e1' }, { id: 'e2' }] },
    ]
    expect(stepOfScore(score({ task_id: 't1' }), bars)?.id).toBe('t1')
    expect(stepOfScore(score({ event_id: 'e2' }), bars)?.id).toBe('e1')
    expect(stepOfScore(score({ event_id: 'e3' }), bars)).toBeUndefined()
    expect(stepOfScore(SCORE, bars)).toBeUndefined()
  })

  test('the latest stand first', () => {
    const at = (id: string, created_at: string) => score({ id, created_at })
    const ids = sorted([
      at('b', '2026-01-31T00:00:01Z'),
      at('a', '2026-01-31T00:00:00Z'),
      at('c', '2026-01-31T00:00:02Z'),
    ])
    expect(ids.map(({ id }) => id)).toEqual(['c', 'b', 'a'])
  })
})

describe('a thumb', () => {
  test('is one score of a person for each thing, which changes and can be taken back', () => {
    const ids = [
      thumbId(ada, 'run'),
      thumbId(ada, { event: 'e1' }),
      thumbId(null, 'run'),
      thumbId(null, { event: 'e1' }),
    ]
    expect(new Set(ids).size).toBe(4)
    const up = thumbScore(ada, { event: 'e1' }, { isUp: true, comment: 'Good.' })
    expect(up).toEqual({
      ...{ id: ids[1], event_id: 'e1', name: 'feedback', value: true, comment: 'Good.', source: 'person' },
      metadata: { by: 'Ada' },
    })
    const stored = score(up)
    expect(thumbOf(stored)).toEqual({ isUp: true, comment: 'Good.' })
    const gone = score({ ...thumbScore(ada, { event: 'e1' }, { isUp: null, comment: 'Good.' }), value: null })
    expect([gone.id, gone.comment, isTakenBack(gone), isTakenBack(stored)]).toEqual([stored.id, null, true, false])
    expect(thumbOf(gone)).toEqual({ isUp: null, comment: '' })
    expect(thumbOf(undefined)).toEqual({ isUp: null, comment: '' })
    expect(thumbScore(null, 'run', { isUp: false, comment: '' })).toEqual({
      ...{ id: ids[2], name: 'feedback', value: false, source: 'person' },
    })
  })

  test('counts with those of others about the same thing, also if they come from elsewhere', () => {
    const scores = [
      score({ name: 'feedback', value: true }),
      score({ name: 'feedback', value: 1 }),
      score({ name: 'feedback', value: false }),
      score({ name: 'feedback', value: 0.5 }),
      score({ name: 'feedback', value: null, label: 'withdrawn' }),
      score({ name: 'feedback', value: true, event_id: 'e1' }),
      score({ name: 'feedback', value: true, session_id: 's' }),
      score({ name: 'correct', value: true }),
    ]
    expect(thumbCounts(scores, 'run')).toEqual({ up: 2, down: 1 })
    expect(thumbCounts(scores, { event: 'e1' })).toEqual({ up: 1, down: 0 })
  })
})

describe('columns with scores', () => {
  const open = (query: Readonly<Record<string, string>>) => {
    address.value = parseAddress(hrefOf('runs', [], query))
  }
  beforeEach(() => open({}))

  test('stand in the address behind the others, with any name', () => {
    const odd = columnOf({ how: 'latest', name: 'a,b: "ö" %' })
    expect(scoreColumnOf(odd)).toEqual({ how: 'latest', name: 'a,b: "ö" %' })
    open({ cols: `${odd},score:mean:correct,cost,score:other:x,score:mean:%,score:mean:correct` })
    expect(chosenColumns()).toEqual(['cost', odd, 'score:mean:correct'])
    expect(shownColumns('').map(({ title }) => title)).toEqual(['Cost', 'a,b: "ö" % (latest)', 'correct'])
    const saved = queryOfView({ name: 'v', query: savedQuery(address.value.query) })
    open(saved)
    expect(chosenColumns()).toEqual(['cost', odd, 'score:mean:correct'])
    open({ cols: Array.from({ length: 20 }, (_, n) => `score:mean:n${n}`).join() })
    expect(chosenColumns()).toHaveLength(8)
  })

  test('show the average or the latest score; labels have no average', () => {
    const figures = { mean: 2 / 3, latestValue: 1, latestLabel: null }
    expect([figureText(figures, 'mean'), figureText(figures, 'latest')]).toEqual(['0.6667', '1'])
    const labels = { mean: null, latestValue: null, latestLabel: 'refund' }
    expect([figureText(labels, 'mean'), figureText(labels, 'latest')]).toEqual(['refund', 'refund'])
    expect(figureText(undefined, 'mean')).toBe('')
  })
})

test('scores over time are averages by bucket, of the names with the most scores first', async () => {
  const rows = [
    { name: 'b', bucket: 60, scores: '1', total: 0.5 },
    { name: 'a', bucket: 0, scores: '2', total: 1 },
    { name: 'a', bucket: 120, scores: '2', total: 2 },
  ]
  const queries = { run: async () => ({ rows }) } as unknown as Queries
  const range = { fromMs: 0, toMs: 180_000, bucketSeconds: 60, isMoving: false }
  expect(await readScores(queries, range, new AbortController().signal)).toEqual([
    { name: 'a', scores: 4, mean: 0.75, values: [0.5, null, 1] },
    { name: 'b', scores: 1, mean: 0.5, values: [null, 0.5, null] },
  ])
})
