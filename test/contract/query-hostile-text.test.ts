import { beforeAll, expect, test } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { refusalOf } from '../../src/sql/analytics/clickhouse-errors.ts'
import { createGuard, refuseValues, type SqlGuard } from '../../src/sql/analytics/guard.ts'
import { withJsonTail } from '../../src/sql/analytics/json-tail.ts'
import { explainFailure } from '../../src/sql/analytics/problems.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import { QUERY_LENGTH_MAX } from '../../src/sql/analytics/schema.ts'
import { type ColumnarClient, ColumnarError } from '../../src/stores/clickhouse/client.ts'
import { outputFormat } from '../../src/stores/clickhouse/protocol.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'

/** The text of a query is read on the event loop, which serves everybody: no text may take long. */

const LONG = QUERY_LENGTH_MAX - 1_000
/** Of processor time, which a busy machine does not prolong: each of these texts took more, or would never have ended. */
const BUSY_MS_MAX = 3_000
const TIMEOUT_MS = 120_000

let client: ColumnarClient
let guard: SqlGuard

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  guard = createGuard(client, (error) => explainFailure(error, DEFAULT_QUERY_CAPS))
})

const doubled = Array.from({ length: 60 }, (_, i) => `a${i} + a${i} AS a${i + 1}`)
const QUERIES: Readonly<Record<string, string>> = {
  'brackets in a structure': `SELECT a FROM values('a ${'('.repeat(LONG / 2)}${')'.repeat(LONG / 2)}', 1)`,
  'a literal that looks like aliases': `SELECT '${repeated('(alias ')}'`,
  'aliases of aliases': `SELECT 1 AS a0, ${doubled.join(', ')}, payload.x = a60 FROM events`,
  'combinators of a name': `SELECT count${repeated('If')}(1) FROM events`,
}

for (const [name, query] of Object.entries(QUERIES))
  test(`a query with ${name} does not hold the event loop`, () => expectShort(() => guard.check(query)), TIMEOUT_MS)

test(
  'an integer of millions of digits does not hold the event loop',
  async () => {
    const query = { text: 'SELECT {a:Int8}', typeParameters: [] }
    await expectShort(async () => refuseValues(query, { params: { a: '9'.repeat(8_000_000) } }))
    expect(() => refuseValues(query, { params: { a: '9'.repeat(200) } })).toThrow(
      'params.a: expected Int8, -128 to 127; got 200 digits',
    )
  },
  TIMEOUT_MS,
)

test(
  'an error that quotes the beginnings of suggestions does not hold the event loop',
  async () => {
    // Several times as long as a query, so that it would fail: the engine may quote one more than once.
    const quoted = `Unknown expression identifier \`x\` in scope SELECT x, '${repeated('Maybe you meant: [').repeat(4)}'`
    await expectShort(async () =>
      explainFailure(new ColumnarError(47, 'UNKNOWN_IDENTIFIER', quoted), DEFAULT_QUERY_CAPS),
    )
  },
  TIMEOUT_MS,
)

const SPACES = ' '.repeat(LONG)
const unknown = new ColumnarError(
  47,
  'UNKNOWN_IDENTIFIER',
  `Unknown expression identifier \`${SPACES}x\` in scope SELECT \`${SPACES}x\`. Maybe you meant: ['seq']`,
)

test(
  'an error that quotes white space does not hold the event loop',
  async () => {
    await expectShort(async () => explainFailure(unknown, DEFAULT_QUERY_CAPS))
    await expectShort(async () => refusalOf(explainFailure(unknown, DEFAULT_QUERY_CAPS), `SELECT \`${SPACES}x\``))
  },
  TIMEOUT_MS,
)

test('an error in ClickHouse’s format names the scope, if it is in the query', () => {
  const error = new ColumnarError(
    47,
    'UNKNOWN_IDENTIFIER',
    "Unknown identifier `a` in scope SELECT a. Maybe you meant: ['b'].",
  )
  const { failure } = refusalOf(explainFailure(error, DEFAULT_QUERY_CAPS), 'SELECT a')
  expect(failure.message).toContain('Unknown identifier `a` in scope SELECT a')
})

test(
  'a document’s end does not hold the event loop',
  async () => {
    const query = `SELECT '${repeated(' LIMIT')}'`
    const body = new Response('{\n\t"rows": 1\n}\n').body as ReadableStream<Uint8Array>
    const tail = { format: 'JSON', query, settings: {} }
    await expectShort(() => new Response(withJsonTail(body, tail)).text())
  },
  TIMEOUT_MS,
)

test(
  'the engine answers an error that quotes white space',
  async () => {
    const query = `SELECT throwIf(1, '${SPACES}x')`
    const settings = { readonly: 1, max_query_size: 2 * LONG }
    const error = await client.queryText(query, 'JSON', { settings }).catch((failure) => failure)
    expect(error).toBeInstanceOf(ColumnarError)
  },
  TIMEOUT_MS,
)

test('the format of a statement is found in its last clause, whatever is in its texts', async () => {
  expect(outputFormat('SELECT 1 FORMAT CSV', 'JSON')).toBe('CSV')
  expect(outputFormat('SELECT 1 FORMAT CSV SETTINGS max_threads = 1 ; ', 'JSON')).toBe('CSV')
  expect(outputFormat("SELECT ';' FORMAT CSV", 'JSON')).toBe('CSV')
  expect(outputFormat('SELECT 1', 'JSON')).toBe('JSON')
  const statements = [`SELECT 'FORMAT a${SPACES}x'`, `SELECT '${repeated('FORMAT a SETTINGS ')};x'`]
  for (const statement of statements)
    await expectShort(async () => expect(outputFormat(statement, 'JSON')).toBe('JSON'))
})

function repeated(part: string): string {
  return part.repeat(Math.floor(LONG / part.length))
}

/** The work may fail with an error of the caller. */
async function expectShort(work: () => Promise<unknown>): Promise<void> {
  const before = process.cpuUsage()
  await work().catch((error) => expect(error).toBeInstanceOf(ApiError))
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(BUSY_MS_MAX)
}
