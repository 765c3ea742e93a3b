import { beforeAll, expect, test } from 'bun:test'
import { createGuard, type SqlGuard } from '../../src/analytics/guard.ts'
import { scopeDatabase, scopedStatement } from '../../src/analytics/views.ts'
import type { ColumnarClient } from '../../src/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { seededRandom } from '../support/random.ts'

/** Paths are read from the text of a payload; the result must equal that of ClickHouse's own JSON type. */

const WORKSPACE = Bun.randomUUIDv7()
const PAYLOADS = 400
const KEYS = ['a', 'b', 'c', 'a.b', 'b.c', 'a.b.c', 'it’s', 'x y']
const PATHS = ['a', 'b', 'a.b', 'b.c', 'a.b.c', 'c.a', 'c.b.c', '`x y`.a', 'a.`x y`', '`it’s`', 'c.c.c.c']
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

/** The settings of tenant sessions. */
const TEXT_IS_TEXT = { input_format_try_infer_dates: 0, input_format_try_infer_datetimes: 0 }

const random = seededRandom('json paths')
let client: ColumnarClient
let guard: SqlGuard

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  guard = createGuard(client, (error) => new Error(error.message) as never)
  const rows = Array.from({ length: PAYLOADS }, (_, seq) => `(${seq + 1}, ${quote(payload(2))})`)
  const columns = 'workspace_id, agent_id, run_id, event_id, type, level, occurred_at, received_at, epoch'
  await client.command(`
    insert into events (seq, payload, ${columns})
    select seq, payload, toUUID('${WORKSPACE}'), generateUUIDv4(), generateUUIDv4(), '', '', 'info', now(), now(), ''
    from values('seq UInt64, payload String', ${rows.join(', ')})`)
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
  const statement = scopedStatement(await guard.check(query), client.database, WORKSPACE, PAYLOADS)
  return client.query<Row>(statement, { database: scopeDatabase(client.database), settings: TEXT_IS_TEXT })
}

/** A JSON object without ambiguous paths: none occurs both as nested members and as a key that contains a dot. */
function payload(depth: number): string {
  const members: string[] = []
  const keys = KEYS.filter(() => random.bool(0.4))
  for (const key of keys) {
    if (keys.some((other) => other !== key && (other.startsWith(`${key}.`) || key.startsWith(`${other}.`)))) continue
    members.push(`${JSON.stringify(key)}:${depth > 0 && random.bool(0.4) ? payload(depth - 1) : random.pick(SCALARS)}`)
  }
  return `{${members.join(random.bool() ? ',' : ' ,\n')}}`
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
