import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ColumnsOfRuns, columnsOf } from '../../src/activity/scores/columns.ts'
import { scoreProblems } from '../../src/activity/scores/problem.ts'
import { ScoreScan } from '../../src/activity/scores/scan.ts'
import { ScanMemory } from '../../src/activity/scores/scan-memory.ts'
import { type NewScore, SCORE_LENGTHS } from '../../src/activity/scores/schema.ts'
import { ApiError } from '../../src/base/errors.ts'
import { parseText } from '../../src/base/http/json-reader.ts'
import { SCORE_CELLS as CELLS } from '../../src/stores/journal/rows.ts'
import { SCORE_SOURCES } from '../../src/stores/journal/scores.ts'
import { LIMITS } from '../support/events.ts'

/** Scores of a bulk call are read by `scan.ts`, all others by `problem.ts`: what one takes, the other takes, too. */

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)

/** What is read of a score, or why it is refused: a member; undefined where the text is not read as JSON of a score. */
type Verdict = { readonly score: object } | { readonly wrong: readonly string[] } | undefined

const scoreOf = (verdict: Verdict) => (verdict !== undefined && 'score' in verdict ? verdict.score : 'refused')

/** As the call of many scores reads one. */
function scanned(text: string): Verdict {
  const body = Buffer.from(`{"scores":[${text}]}`)
  const scan = new ScoreScan(body, new ScanMemory(body.length + 1), LIMITS, false)
  try {
    for (const _ of scan.steps());
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'VALIDATION_ERROR') throw error
    if (error.param === 'body') return undefined
    // The name of a member that it does not know, it shows as it is written.
    const nameOf = (param: string): string => JSON.parse(`"${param.replace(/^scores\[0\]\.?/, '')}"`)
    return { wrong: (error.problems ?? [error]).map(({ param = '' }) => nameOf(param)) }
  }
  return { score: contentOf(scan) }
}

/** As every other call reads one. */
function checked(text: string): Verdict {
  let score: unknown
  try {
    // Within the body and its list, there are two levels less.
    score = parseText(text, LIMITS.json_depth - 2)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'VALIDATION_ERROR') return undefined
    throw error
  }
  const problems = scoreProblems(score)
  if (problems.length > 0) return { wrong: problems.map(({ param }) => (param === 'score' ? '' : param)) }
  return { score: contentOf(columnsOf([score as NewScore])) }
}

const TEXTS = ['id', 'name', 'taskId', 'eventId', 'sessionId', 'label', 'text', 'comment', 'metadata'] as const

/** The only score of some columns, as plain values. */
function contentOf({ count, cells, text, value, createdAt, runIds, hasIds }: ColumnsOfRuns): object {
  expect([count, cells[CELLS.run]]).toEqual([1, 0])
  const texts = TEXTS.map((name) => [name, text.toString('utf8', cells[CELLS[name]], cells[CELLS[name] + 1])] as const)
  const given = texts.filter(([name]) => cells[CELLS[name]] >= 0)
  const fixed = { dataType: cells[CELLS.dataType], source: cells[CELLS.source], value: value[0], at: createdAt[0] }
  return { runIds, hasIds, ...fixed, ...Object.fromEntries(given) }
}

/** JSON of a string, also with escapes where it needs none. */
const spelt = (strings: fc.Arbitrary<string>) =>
  fc.tuple(strings, fc.boolean()).map(([text, isEscaped]) => (isEscaped ? withEscapes(text) : JSON.stringify(text)))

function withEscapes(text: string): string {
  const escaped = text.replace(/[^g-z]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `"${escaped}"`
}

/** Texts around both ends of a length, in characters of one or two units. */
const texts = (max: number) =>
  fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.string({ unit: 'binary', maxLength: 5 }),
    fc
      .tuple(fc.constantFrom('a', 'é', '😀'), fc.constantFrom(0, 1, max - 1, max, max + 1))
      .map(([char, n]) => char.repeat(n)),
    fc.constantFrom('\ud800', 'a\0'),
  )

const uuids = fc.oneof(
  fc.uuid(),
  fc.uuid().map((id) => id.toUpperCase()),
  fc.constantFrom('', 'x', '00000000-0000-0000-0000-000000000000', '0198a2b4-0000-7000-8000-00000000000g'),
)
const times = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom('2026-01-31T09:30:00Z', '2026-01-31t09:30:00.1234+02:00', '2026-02-30T00:00:00.000Z', 'now', ''),
)
const numbers = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    'true',
    'false',
    '-0',
    '0.10',
    '1e5',
    '1E+400',
    '-1e-400',
    '123456789012345678',
    '01',
    '.5',
    '1.',
    '-',
  ),
)
/** What stands in the place of any value. */
const others = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.constantFrom('null', '{}', '{"a":"\\ud800","__proto__":1,"a":2}', `${'['.repeat(200)}${']'.repeat(200)}`),
)

const VALUES = {
  run_id: spelt(uuids),
  name: spelt(texts(SCORE_LENGTHS.name)),
  value: numbers,
  label: spelt(texts(SCORE_LENGTHS.label)),
  id: spelt(texts(SCORE_LENGTHS.id)),
  event_id: spelt(texts(SCORE_LENGTHS.event_id)),
  session_id: spelt(texts(SCORE_LENGTHS.session_id)),
  task_id: spelt(uuids),
  text: spelt(texts(40)),
  comment: spelt(texts(40)),
  source: spelt(fc.constantFrom(...SCORE_SOURCES, 'human', '')),
  metadata: fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value, null, 1)),
  created_at: spelt(times),
  Name: others,
  extra: others,
  constructor: others,
}
type Member = readonly [name: string, value: string]

const ID = '"0198a2b4-0000-7000-8000-000000000001"'
/** What a score must have. */
const NEEDED: readonly Member[] = [
  ['run_id', ID],
  ['name', '"n"'],
]
/** Of these, a score may have one. */
const SUBJECTS: readonly Member[] = [
  ['task_id', ID],
  ['event_id', '"e"'],
  ['session_id', '"s"'],
]
const members = Object.entries(VALUES).map(([name, values]) =>
  fc
    .tuple(spelt(fc.constant(name)), fc.oneof({ weight: 9, arbitrary: values }, { weight: 1, arbitrary: others }))
    .map(([key, value]) => [key, value] as const),
)
/** Mostly few members beside what a score must have, so that many are valid; in any order, and now and then one twice. */
const scores = fc
  .record({
    needed: fc.oneof({ weight: 5, arbitrary: fc.constant(NEEDED) }, { weight: 1, arbitrary: fc.constant([]) }),
    subjects: fc.oneof(fc.constant([]), fc.subarray([...SUBJECTS])),
    others: fc.array(fc.oneof(...members), { maxLength: 4 }),
    isReversed: fc.boolean(),
    colon: fc.constantFrom(':', ' : '),
  })
  .map(({ needed, subjects, others, isReversed, colon }) => {
    const usual = [...needed, ...subjects].map(([name, value]): Member => [JSON.stringify(name), value])
    const all = [...usual.filter(([name]) => others.every(([other]) => other !== name)), ...others]
    return `{${(isReversed ? all.toReversed() : all).map((member) => member.join(colon)).join(',')}}`
  })

test(`many scores are read like one, and refused for the same member (SEED=${SEED})`, () => {
  const seen = { taken: 0, refused: 0, unread: 0 }
  const check = (text: string) => {
    const [bulk, one] = [scanned(text), checked(text)]
    seen[one === undefined ? 'unread' : 'score' in one ? 'taken' : 'refused']++
    // The scan stops at the first problem; what it has not read by then may not even be JSON.
    if (one !== undefined && bulk !== undefined && 'wrong' in one && 'wrong' in bulk)
      // Where two members exclude each other, it names none.
      expect(one.wrong).toContain(bulk.wrong[0] === '' ? one.wrong[0] : bulk.wrong[0])
    else expect(scoreOf(bulk)).toEqual(scoreOf(one))
  }
  fc.assert(fc.property(scores, check), { seed: SEED, numRuns: 1_000 })
  // What is generated covers all three.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20)
})
