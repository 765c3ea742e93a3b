import { type AnyLoopCase, type LoopCase, type LoopContext, listOf, MIB, sending } from './loop-case.ts'

const QUERY_LENGTH = 99_000
const BODY_BYTES = 10 * MIB

/** SQL, saved queries and the ClickHouse interface (docs/sql.md). */
export async function sqlCases({ service }: LoopContext): Promise<AnyLoopCase[]> {
  const saved = await service.api('POST', '/api/v1/queries', {
    name: 'q',
    query: 'SELECT {x:UInt8} AS x, {a:Array(UInt8)} AS a',
  })
  const run = `/api/v1/queries/${saved.data.query_id}/run`
  const texts = Object.entries(hardTexts())
  return [
    ...texts.flatMap(([name, query]): LoopCase[] => [
      { name, status: 'any', request: () => sending('POST', '/api/v1/query', { query: query() }) },
      {
        name,
        status: 'any',
        request: () => sending('POST', '/clickhouse/', query(), { 'content-type': 'text/plain' }),
      },
    ]),
    ...['spaces', 'paths'].map(
      (name): LoopCase => ({
        name,
        status: 'any',
        request: () => sending('POST', '/api/v1/queries', { name: crypto.randomUUID(), query: hardTexts()[name]!() }),
      }),
    ),
    ...[
      ['POST', '/api/v1/query', { query: 'SELECT length({a:Array(UInt64)}) AS n' }] as const,
      ['POST', run, {}] as const,
    ].map(
      ([method, path, own]): LoopCase => ({
        name: 'a long list of a placeholder',
        status: 'any',
        request: () => sending(method, path, { ...own, params: { x: 1, a: Array(49_000).fill(1) } }),
      }),
    ),
    {
      name: 'a long text of a placeholder',
      status: 'any',
      request: () =>
        sending('POST', '/api/v1/query', {
          query: 'SELECT length({a:String}) AS n',
          params: { a: '\\'.repeat(BODY_BYTES / 2 - 100) },
        }),
    },
    {
      name: 'lists of placeholders',
      status: 400,
      request: () =>
        sending('POST', '/api/v1/query', `{"query":"SELECT 1","params":{"a":[${listOf('1', BODY_BYTES - 100)}]}}`),
    },
    {
      name: 'a long query',
      status: 'any',
      request: () => sending('POST', '/clickhouse/', '('.repeat(BODY_BYTES), { 'content-type': 'text/plain' }),
    },
    {
      name: 'many parameters',
      status: 'any',
      request: () =>
        sending('POST', `/clickhouse/?${listOf('param_a=1', 12_000).replaceAll(',', '&')}`, 'SELECT 1', {
          'content-type': 'text/plain',
        }),
    },
    ...answerCases(),
  ]
}

function hardTexts(): Readonly<Record<string, () => string>> {
  const list = (unit: (n: number) => string, separator = ', ') => {
    const parts: string[] = []
    for (let length = 0, n = 0; length < QUERY_LENGTH; n++) {
      parts.push(unit(n))
      length += parts.at(-1)!.length + separator.length
    }
    return parts.join(separator)
  }
  const around = (open: string, close: string, times: number) => `${open.repeat(times)}1${close.repeat(times)}`
  return {
    // First, because the short form sends the first: those that keep the engine busy until its limit are for the full one.
    spaces: () => `SELECT${' '.repeat(QUERY_LENGTH)}1`,
    numbers: () => `SELECT ${list(() => '1')} FROM events`,
    paths: () => `SELECT ${list((n) => `sum(payload.a${n})`)} FROM events`,
    'a path many times': () => `SELECT ${list(() => 'payload.a', ' + ')} FROM events`,
    'paths in subqueries': () => `SELECT ${list((n) => `(SELECT sum(payload.a) + ${n} FROM events)`)} FROM events`,
    'unnamed columns': () => `SELECT ${list(() => 'max(payload.a)')} FROM events`,
    aliases: () => `SELECT ${list((n) => `payload.a AS x${n}, sum(x${n})`)} FROM events`,
    'common tables': () => `WITH ${list((n) => `t${n} AS (SELECT 1 AS a FROM events)`)} SELECT 1`,
    'deep brackets': () => `SELECT ${around('(', ')', 49_000)}`,
    'deep calls': () => `SELECT ${around('abs(', ')', 300)}`,
    'very deep calls': () => `SELECT ${around('abs(', ')', 19_000)}`,
    'deep arrays': () => `SELECT ${around('[', ']', 900)}`,
    'deep queries': () => `${'SELECT * FROM ('.repeat(200)}SELECT 1${')'.repeat(200)}`,
    unions: () => list(() => 'SELECT 1', ' UNION ALL '),
    texts: () => `SELECT ${list(() => "'a'")}`,
    'a long text': () => `SELECT '${"\\'".repeat(QUERY_LENGTH / 2 - 20)}' FROM events`,
    'an open text': () => `SELECT '${'\\\\'.repeat(QUERY_LENGTH / 2 - 20)}`,
    quotes: () => `SELECT ${'`'.repeat(QUERY_LENGTH - 20)}`,
    placeholders: () => `SELECT ${list(() => '{a:UInt8}')}`,
    'long types': () => `SELECT {a:${'Array('.repeat(9_000)}UInt8${')'.repeat(9_000)}}`,
    structures: () => `SELECT * FROM values('a ${'Array('.repeat(9_000)}UInt8${')'.repeat(9_000)}', (1))`,
    comparisons: () => `SELECT 1 FROM events WHERE ${list((n) => `payload.a = '${n}'`, ' OR ')}`,
    'long lists': () => `SELECT 1 FROM events WHERE payload.a IN (${list((n) => `'${n}'`)})`,
    comments: () => `SELECT ${list(() => '/* * */ 1')}`,
    'system tables': () => `SELECT ${list(() => 'version()')}`,
  }
}

function answerCases(): LoopCase[] {
  const rows = (bytes: number, count: number) =>
    `SELECT number AS n, repeat('x"', ${Math.floor(bytes / count / 3)}) AS t FROM numbers(${count})`
  const tiny = `SELECT ${Array.from({ length: 100 }, (_, n) => `number AS c${n}`)} FROM numbers(10000)`
  const query = (name: string, text: string, format: string, headers = {}): LoopCase => ({
    name: `an answer of ${name}, ${format}`,
    status: 'any',
    request: () => sending('POST', '/api/v1/query', { query: text, format }, headers),
  })
  const clickhouse = (text: string, format: string, headers = {}): LoopCase => ({
    name: `an answer, ${format}`,
    status: 'any',
    request: () =>
      sending('POST', '/clickhouse/', `${text} FORMAT ${format}`, { 'content-type': 'text/plain', ...headers }),
  })
  const identity = { 'accept-encoding': 'identity' }
  return [
    ...['json', 'ndjson', 'csv', 'parquet', 'arrow'].map((format) =>
      query('28 MiB', rows(28 * MIB, 9_000), format, identity),
    ),
    query('28 MiB', rows(28 * MIB, 9_000), 'json', { 'accept-encoding': 'gzip' }),
    query('many cells', tiny, 'json', identity),
    query('a long text', `SELECT repeat('x"', ${6 * MIB}) AS t`, 'json', identity),
    query('100 MiB', rows(100 * MIB, 100_000), 'csv', identity),
    ...['JSON', 'JSONCompact', 'TSV', 'Native', 'Pretty', 'XML', 'Values'].map((format) =>
      clickhouse(rows(28 * MIB, 9_000), format, identity),
    ),
    clickhouse(rows(28 * MIB, 9_000), 'TSV', { 'accept-encoding': 'gzip' }),
  ]
}
