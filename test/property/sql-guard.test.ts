import { beforeAll, expect, test } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { type CheckedQuery, createGuard, type SqlGuard } from '../../src/sql/analytics/guard.ts'
import { explainFailure } from '../../src/sql/analytics/problems.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { inParallel } from '../support/in-parallel.ts'
import { type Random, seededRandom } from '../support/random.ts'

const QUERIES = 80
const random = seededRandom('sql-guard')
let guard: SqlGuard

beforeAll(async () => {
  const { client } = await freshColumnarDatabase()
  guard = createGuard(client, (error) => explainFailure(error, DEFAULT_QUERY_CAPS))
})

/** Each is forbidden wherever an expression may stand. */
const FORBIDDEN = [
  "file('/proc/self/environ')",
  'FILE(a)',
  "getSetting('readonly')",
  '(select 1 from system.one)',
  '(select a from other.events)',
  "(select any(a) from file('x'))",
  '(1 in system.one)',
  '(a not in other.runs)',
  "dictGet('d', 'a', 1)",
  "joinGet('other.t', 'a', 1)",
  'hostName()',
  'arrayMap(x -> currentUser(), [1])',
  "(select 1 from url('http://127.0.0.1:1/'))",
  '(select a from events settings max_threads = 1)',
  '(select * apply(file) from events)',
  'sumState(a)',
  "(select 1 from merge('.*'))",
]

test('accepts queries of allowed parts in any shape, and their normal form unchanged', async () => {
  const queries = Array.from({ length: QUERIES }, () => select(random, 2))
  await inParallel(queries, async (query) => {
    // Which paths are numbers is known before they have types.
    const { numberPaths: _, ...normal } = await guard
      .check(query)
      .catch((error): Partial<CheckedQuery> & { text: string } => ({ text: `${error}: ${query}` }))
    expect(normal.text).toStartWith('SELECT')
    // The conversions of a number's path cannot fail, but the guard does not know that when it reads them.
    const { isInfallible: _isInfallible, ...rest } = normal
    expect(await guard.check(normal.text)).toMatchObject(normal.text.includes('dynamicElement') ? rest : normal)
  })
})

test('finds one forbidden part, wherever it stands', async () => {
  const queries = Array.from({ length: QUERIES }, () => select(random, 2, random.pick(FORBIDDEN)))
  await inParallel(queries, async (query) => {
    const error = await guard.check(query).catch((refusal) => refusal)
    expect(error, query).toBeInstanceOf(ApiError)
    expect((error as ApiError).message, query).not.toContain('Syntax error')
  })
})

/** A SELECT with subqueries up to `depth` deep; `part` stands in one of its clauses. */
function select(r: Random, depth: number, part?: string): string {
  const clauseNames = ['list', 'from', 'where', 'group', 'order', 'having', 'union'] as const
  const at = part === undefined ? undefined : r.pick(clauseNames)
  const here = (clause: string) => (clause === at ? part : undefined)
  const inner = depth > 0 && (at === 'from' || r.bool(0.4))
  const from = inner
    ? `(${select(r, depth - 1, here('from'))}) as t${r.int(1, 9)}`
    : r.pick(['events', 'runs as r', 'numbers(5)', 'tasks'])
  // Too deep for a subquery: the part goes into the list instead.
  const list = [expression(r, depth, here('list') ?? (inner ? undefined : here('from'))), expression(r, depth)]
  const clauses = [
    `select ${r.bool(0.2) ? 'distinct ' : ''}${list.join(', ')} from ${from}`,
    optional(r, 'where', here('where'), depth),
    optional(r, 'group by', here('group'), depth),
    optional(r, 'having', here('having'), depth),
    optional(r, 'order by', here('order'), depth),
    r.bool(0.3) ? `limit ${r.int(0, 9)}` : '',
  ]
  const whole = clauses.filter((clause) => clause !== '').join(r.pick([' ', '\n', ' /* c */ ']))
  if (at !== 'union' && !r.bool(0.15)) return whole
  return `${whole} union all ${depth > 0 ? select(r, depth - 1, here('union')) : `select ${here('union') ?? '1'}`}`
}

function optional(r: Random, clause: string, part: string | undefined, depth: number): string {
  return part !== undefined || r.bool(0.4) ? `${clause} ${expression(r, depth, part)}` : ''
}

function expression(r: Random, depth: number, part?: string): string {
  if (depth <= 0)
    return part ?? r.pick(['a', 'payload.a.b', '1', "'x''y'", '`odd name`', 't.b', "'-- ) ; file('", 'NULL'])
  const [left, right] = r.bool() ? [part, undefined] : [undefined, part]
  const a = expression(r, depth - 1, left)
  const b = expression(r, depth - 1, right)
  return r.pick([
    `(${a} + ${b})`,
    `if(${a}, ${b}, 0)`,
    `[${a}, ${b}]`,
    `arrayMap(x -> ${a}, [${b}])`,
    `case when ${a} then ${b} end`,
    `countIf(${a} > ${b})`,
    `(${a} in (${b}, 1))`,
    `concat(toString(${a}), ${b})`,
    `max(${a}) over (partition by ${b})`,
    `(${a}::Float64 between 1 and ${b})`,
    `(select ${a} from events where ${b})`,
    `tuple(${a}, ${b}).1`,
  ])
}
