import { beforeAll, expect, test } from 'bun:test'
import { type CheckedQuery, createGuard, type SqlGuard } from '../../src/sql/analytics/guard.ts'
import { scopeDatabase, scopedStatement } from '../../src/sql/analytics/views.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { seededRandom } from '../support/random.ts'

/** Paths are read from the text of a payload; the result must equal that of ClickHouse's own JSON type. */

const WORKSPACE = Bun.randomUUIDv7()
const NUMERIC = Bun.randomUUIDv7()
const MIXED = Bun.randomUUIDv7()
const PAYLOADS = 400
const KEYS = ['a', 'b', 'c', 'a.b', 'b.c', 'a.b.c', 'it’s', 'x y', 'in/out']
const PATHS = [
  'a',
  'b',
  'a.b',
  'b.c',
  'a.b.c',
  'c.a',
  'c.b.c',
  '`x y`.a',
  'a.`x y`',
  '`it’s`',
  'c.c.c.c',
  '`in/out`',
  'c.`in/out`.a',
]
const SCALARS = [
  '1',
  '-5',
  '2.5',
  '1.0',
  '18446744073709551615',
  '"text"',
  '"2026-01-31"',
  'true',
  'null',
  '[1,2]',
  '[]',
  '"a\\"b"',
  '"–"',
]

/** Values of which an engine could make another number: by their size, their form, or because they are none. */
const NUMBERS = [
  ...['0', '-0', '5', '1.0', '2.5', '-1.5e3', '0.1', '1e-7', '123456789.123456789', '1E400', '1e-400'],
  ...['9007199254740993', '9223372036854775807', '-9223372036854775808', '18446744073709551615'],
  ...['18446744073709551616', '"5"', '"-1.5e3"', 'true', 'false', 'null'],
]
const NOT_NUMBERS = ['"text"', '""', '"5 "', '[]', '[1]', '{}', '{"x":1}']
/** The path `a.b` in different forms, or none. */
const AROUND = [
  '{"a":{"b":V}}',
  '{"a":{"c":1,"b":V},"b":2}',
  '{"a.b":V}',
  '{"a.b":V,"a":{"b":3}}',
  '{"a":{"b":V,"b":4}}',
  '{ "a" : { "b" : V } }',
  '{"a":{"\\u0062":V}}',
  '{"a":[{"b":V}]}',
  '{"b":V}',
  '{"a":V,"note":"\\"b\\":1"}',
]

/** The settings of tenant sessions. */
const TEXT_IS_TEXT = { input_format_try_infer_dates: 0, input_format_try_infer_datetimes: 0 }

const random = seededRandom('json paths')
let client: ColumnarClient
let guard: SqlGuard

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  guard = createGuard(client, (error) => new Error(error.message) as never)
  await insert(WORKSPACE, () => payload(2))
  await insert(NUMERIC, () => random.pick(AROUND).replace('V', random.pick(NUMBERS)))
  await insert(MIXED, () => random.pick(AROUND).replace('V', random.pick([...NUMBERS, ...NOT_NUMBERS])))
})

test('a path has the same value and type, read from the text or from a JSON value', async () => {
  for (const path of PATHS) {
    const select = `select seq, toString(payload.${path}) as v, dynamicType(payload.${path}) as t from events`
    const fromText = await ask(`${select} order by seq`)
    // Used as a whole as well, the payload becomes a JSON value. For an object JSON has no value at its path, the text has.
    const fromJson = await ask(`${select} where payload is not null order by seq`)
    const values = fromText.map((row) => (row.t === 'JSON' ? { ...row, v: '', t: 'None' } : row))
    expect(fromText.length).toBe(PAYLOADS)
    expect(values.map(normal), path).toEqual(fromJson.map(normal))
  }
})

test('a path that is only used as a number has the same value as one that is used in other ways, too', async () => {
  const forAny = ['abs(payload.a.b)', 'payload.a.b + 1', 'payload.a.b is null', 'payload.a.b is not null']
  const forNumbers = ['payload.a.b::Float64', "cast(payload.a.b, 'Nullable(Float64)')", 'payload.b / 3']
  for (const expression of [...forAny, ...forNumbers])
    for (const workspace of forAny.includes(expression) ? [NUMERIC, MIXED] : [NUMERIC]) {
      const checked = await guard.check(
        `select seq, toString(${expression}) as v, '' as t from events where seq > 0 order by seq`,
      )
      expect(checked.numberPaths, expression).toEqual(checked.jsonPaths ?? [])
      // `b` is an object in one form, which has no value as a number.
      const asNumbers = await rowsOf(checked, workspace)
      expect(asNumbers.length).toBe(PAYLOADS)
      expect(asNumbers, expression).toEqual(await rowsOf({ ...checked, numberPaths: [] }, workspace))
    }
})

test('knows which paths are only used as numbers', async () => {
  const found = async (query: string) => (await guard.check(query)).numberPaths
  for (const query of [
    'select sum(payload.a) from events',
    'select sum(payload.a::Float64) from events where payload.a is not null',
    'select avg(if(payload.a > 5, payload.a, 0)) from events group by type',
    'select quantile(0.5)(e.payload.a) from events e join runs r on r.run_id = e.run_id',
  ])
    expect(await found(query), query).toEqual(['payload.a'])
  expect(await found('select sum(payload.a), max(payload.b), any(payload.b) from events')).toEqual(['payload.a'])
  for (const query of [
    'select payload.a from events',
    'select payload.a::Int64 from events',
    'select payload.a::String from events',
    'select payload.a as x, sum(x) from events group by x',
    'select sum(payload.a) from events group by payload.a',
    "select count() from events where payload.a = 'x'",
    'select dynamicType(payload.a) from events where payload.a > 1',
    'select sum(payload.a) over (order by payload.a) from events',
    'select sum(payload.a) from (select payload.a from events)',
    'select payload.a.:Int64 from events',
  ])
    expect(await found(query), query).toEqual([])
})

test('finds paths where they are allowed, and only there', async () => {
  const found = async (query: string) => (await guard.check(query)).jsonPaths
  expect(await found('select payload.a.b::Float64 from events where payload.c = 1')).toEqual([
    'payload.a.b',
    'payload.c',
  ])
  expect(await found('select e.payload.a, r.output.x from events e join runs r on r.run_id = e.run_id')).toEqual([
    'payload.a',
    'output.x',
  ])
  expect(await found('select count(*) from events where payload.a = 1')).toEqual(['payload.a'])
  expect(await found('select seq from events')).toEqual([])
  for (const query of [
    'select * from events',
    'select e.* from events e',
    "select columns('pay') from events",
    'select payload, payload.a from events',
    'select payload.a.:Int64 from events',
    'select payload.^a from events',
    'select payload.a[].b from events',
    'select payload.a.b.c.d.e from events',
    'select payload.a from (select payload from events)',
    'select type as payload, payload.a from events',
    'select payload.a from events as input',
    'select arrayMap(payload -> payload.a, [1]) from events',
  ])
    expect(await found(query), query).toBeNull()
})

/** The items of an array take their type from other rows: an empty array that of a full one, integers that of fractions. */
function normal({ seq, v, t }: Row): Row {
  return { seq, v, t: t.replace(/^Array\(.*/, 'Array') }
}

interface Row {
  readonly seq: number
  readonly v: string | null
  readonly t: string
}

async function ask(query: string): Promise<Row[]> {
  return rowsOf(await guard.check(query), WORKSPACE)
}

function rowsOf(checked: CheckedQuery, workspace: string): Promise<Row[]> {
  const statement = scopedStatement(checked, client.database, workspace, { rows: PAYLOADS })
  return client.query<Row>(statement, { database: scopeDatabase(client.database), settings: TEXT_IS_TEXT })
}

/** Inserts events in a random order. */
async function insert(workspace: string, mintPayload: () => string): Promise<void> {
  const rows = Array.from({ length: PAYLOADS }, (_, seq) => `(${seq + 1}, ${quote(mintPayload())})`)
  const columns = 'workspace_id, agent_id, run_id, event_id, type, level, occurred_at, received_at, epoch'
  await client.command(`
    insert into events (seq, payload, ${columns})
    select seq, payload, toUUID('${workspace}'), generateUUIDv4(), generateUUIDv4(), '', '', 'info', now(), now(), ''
    from values('seq UInt64, payload String', ${rows.join(', ')})`)
}

/** A JSON object without ambiguous paths: none occurs both as nested members and as a key that contains a dot. */
function payload(depth: number): string {
  const members: string[] = []
  const keys = KEYS.filter(() => random.bool(0.4))
  for (const key of keys) {
    if (keys.some((other) => other !== key && (other.startsWith(`${key}.`) || key.startsWith(`${other}.`)))) continue
    members.push(`${keyText(key)}:${depth > 0 && random.bool(0.4) ? payload(depth - 1) : random.pick(SCALARS)}`)
  }
  return `{${members.join(random.bool() ? ',' : ' ,\n')}}`
}

/** JSON may escape any character, and slashes in a way of their own. */
function keyText(key: string): string {
  const text = JSON.stringify(key)
  const escaped = text.replace('/', '\\/').replace(/[a-z]/, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
  return random.bool(0.8) ? text : random.bool() ? text.replace('/', '\\/') : escaped
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
