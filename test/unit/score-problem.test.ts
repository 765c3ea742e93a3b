import { expect, test } from 'bun:test'
import { scoreProblems } from '../../src/activity/scores/problem.ts'
import {
  AddScores,
  NewRunScore,
  SCORE_LENGTHS,
  ScoreOfFeed,
  ScorePage,
  ScoreRecord,
} from '../../src/activity/scores/schema.ts'
import { messageOf } from '../../src/base/errors.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import { SCORE_SOURCES } from '../../src/stores/journal/scores.ts'

/** The first problem in one sentence. */
const scoreProblem = (score: unknown) => scoreProblems(score).map(messageOf)[0]

const RUN = { run_id: '0198A2B4-0000-7000-8000-000000000001', name: 'correctness' }

test('a score needs a value, a label or a text, and may have all of them', () => {
  expect(scoreProblem(RUN)).toBe('value: required: one of value, label, text')
  expect(scoreProblem({ ...RUN, value: 0 })).toBeUndefined()
  expect(scoreProblem({ ...RUN, value: false })).toBeUndefined()
  expect(scoreProblem({ ...RUN, label: 'refund' })).toBeUndefined()
  expect(scoreProblem({ ...RUN, value: 1, label: 'a', text: 'b', metadata: RawJson.of({ a: 1 }) })).toBeUndefined()
})

test('a score has at most one subject besides its run', () => {
  expect(scoreProblem({ ...RUN, value: 1, event_id: 'e' })).toBeUndefined()
  expect(scoreProblem({ ...RUN, value: 1, event_id: 'e', session_id: 's' })).toContain('at most one of task_id')
})

test.each([
  [{ ...RUN, value: Number.NaN }, 'value'],
  [{ ...RUN, value: '1' }, 'value'],
  [{ ...RUN, value: 1, name: '' }, 'name'],
  [{ ...RUN, value: 1, source: 'human' }, 'source'],
  [{ ...RUN, value: 1, task_id: 'x' }, 'task_id: expected a UUID'],
  [{ ...RUN, value: 1, comment: 'c'.repeat(SCORE_LENGTHS.comment + 1) }, 'comment: expected at most'],
  [{ ...RUN, value: 1, coment: 'c' }, 'coment: unknown field; did you mean "comment"?'],
  [{ name: 'n', value: 1 }, 'run_id: required'],
])('%o is refused: %s', (score, problem) => {
  expect(scoreProblem(score)).toContain(problem)
})

test('the schemas describe the same members', () => {
  const sent = Object.keys(NewRunScore.properties)
  expect(Object.keys(AddScores.properties.scores.items.properties)).toEqual(['run_id', ...sent])
  expect(Object.keys(ScoreOfFeed.properties).sort()).toEqual([...sent].sort())
  expect(Object.keys(ScoreRecord.properties)).toEqual(expect.arrayContaining(sent))
  expect(ScorePage.properties.items.items.properties.source.enum).toEqual(SCORE_SOURCES as never)
})
