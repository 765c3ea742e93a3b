import { beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { join } from 'node:path'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase, runningStatements } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { errorOf } from '../support/http-app.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { countingProxy } from '../support/tcp-proxy.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/**
 * Formats, streaming and limits of `POST /api/v1/query` over HTTP (docs/sql.md#limits).
 */

let service: TestService
/** The same with a short query deadline. Only for tests that expect a timeout: on a busy machine any query may exceed it. */
let shortDeadline: TestService
/** The engine itself, to read results back and to see running queries. */
let engine: ColumnarClient

const MIB = 2 ** 20
/** Kernel and process buffers of the three connections between engine and client. */
const IN_TRANSIT_MAX = 64 * MIB

beforeAll(async () => {
  const caps = { memory_bytes: 256 * MIB, rows: 1000, result_bytes: 2 * MIB, stream_bytes: 400 * MIB, at_once: 2 }
  service = await startTestService({ QUERY_CAPS: JSON.stringify({ ...caps, seconds: 200 }) })
  shortDeadline = await startTestService({ QUERY_CAPS: JSON.stringify({ ...caps, seconds: 1 }) })
  engine = createColumnarClient(remoteClickHouse(service.clickhouseUrl))
})

/** One value of each type, with its CSV and NDJSON forms. */
const VALUES: readonly (readonly [name: string, sql: string, csv: string, ndjson: string])[] = [
  ['u64', 'toUInt64(18446744073709551615)', '18446744073709551615', '18446744073709551615'],
  ['i64', 'toInt64(-9223372036854775808)', '-9223372036854775808', '-9223372036854775808'],
  [
    'dec',
    "toDecimal128('12345678901234567890.123456', 6)",
    '12345678901234567890.123456',
    '12345678901234567890.123456',
  ],
  [
    'at',
    "toDateTime64('2026-01-31 09:30:00.123', 3, 'UTC')",
    '"2026-01-31T09:30:00.123Z"',
    '"2026-01-31T09:30:00.123Z"',
  ],
  [
    'uuid',
    "toUUID('a0000000-0000-7000-8000-000000000001')",
    '"a0000000-0000-7000-8000-000000000001"',
    '"a0000000-0000-7000-8000-000000000001"',
  ],
  ['yes', 'true', 'true', 'true'],
  ['tenth', '0.1', '0.1', '0.1'],
  ['nan', 'nan', 'nan', 'null'],
  ['inf', '-inf', '-inf', 'null'],
  ['text', '\'a,"b"\\né\'', '"a,""b""\né"', '"a,\\"b\\"\\né"'],
  ['empty', "''", '""', '""'],
  ['none', "CAST(NULL, 'Nullable(String)')", '', 'null'],
  ['list', '[1, NULL, 3]', '"[1,NULL,3]"', '[1,null,3]'],
  ['map', "map('k', 1)", `"{'k':1}"`, '{"k":1}'],
  ['json', `CAST('{"a":{"b":1},"l":[1,2]}', 'JSON')`, '"{""a"":{""b"":1},""l"":[1,2]}"', '{"a":{"b":1},"l":[1,2]}'],
]
const ONE_ROW = `select ${VALUES.map(([name, sql]) => `${sql} as ${name}`).join(', ')}`

describe('formats', () => {
  test.each([
    ['ndjson', 'application/x-ndjson'],
    ['csv', 'text/csv; charset=utf-8; header=present'],
    ['parquet', 'application/vnd.apache.parquet'],
    ['arrow', 'application/vnd.apache.arrow.stream'],
  ])('returns %s without an envelope, with X-Complete-Through', async (format, contentType) => {
    const response = await query('select 1 as a', format)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe(contentType)
    expect(response.headers.get('x-complete-through')).toMatch(/^\w+\.\d+$/)
    expect(response.headers.get('x-request-id')).toBeString()
    expect((await response.bytes()).length).toBeGreaterThan(0)
  })

  test('csv has a header line, and distinguishes null from an empty string', async () => {
    const text = await (await query(ONE_ROW, 'csv')).text()
    expect(text).toBe(`${VALUES.map(([name]) => `"${name}"`).join(',')}\n${VALUES.map(([, , csv]) => csv).join(',')}\n`)
    expect(await (await query('select 1 as a where 0', 'csv')).text()).toBe('"a"\n')
  })

  test('ndjson has one row per line, with the values of a JSON result', async () => {
    const text = await (await query(ONE_ROW, 'ndjson')).text()
    expect(text).toBe(`{${VALUES.map(([name, , , json]) => `"${name}":${json}`).join(',')}}\n`)
    const answer = await service.api('POST', '/api/v1/query', { query: ONE_ROW })
    expect(answer.data.rows).toEqual([JSON.parse(text)])
    expect(await (await query('select 1 as a where 0', 'ndjson')).text()).toBe('')
  })

  test.each([
    ['parquet', 'Parquet'],
    ['arrow', 'ArrowStream'],
  ])('%s holds values of every type exactly', async (format, name) => {
    const values = "toJSONString(map('all', toString(tuple(*)))) as v"
    // Arrow has no JSON type and gets its text.
    const expected = format === 'arrow' ? ONE_ROW.replace(/(CAST\('\{.*'JSON'\))/, 'toString($1)') : ONE_ROW
    expect(await readBack(await query(ONE_ROW, format), name, values)).toEqual(
      await engine.query(`select ${values} from (${expected})`),
    )
  })

  test.each([
    ['ndjson', 'JSONEachRow'],
    ['csv', 'CSVWithNames'],
    ['parquet', 'Parquet'],
    ['arrow', 'ArrowStream'],
  ])('%s has all rows in order, where JSON would be truncated', async (format, name) => {
    const sql = "select number as n, concat('row ', toString(number)) as s from numbers(150000) order by n desc"
    const sums = 'count() as rows, sum(n) as n, sum(cityHash64(s)) as s'
    const response = await query(sql, format)
    expect(await readBack(response, name, sums)).toEqual(await engine.query(`select ${sums} from (${sql})`))
  })

  test('rejects an unknown format, and a type that the format cannot hold', async () => {
    expect(await errorOf(await query('select 1', 'xml'))).toMatchObject({
      status: 400,
      message: 'format: expected one of json, ndjson, csv, parquet, arrow; got "xml"',
    })
    const untyped = await errorOf(await query("select CAST(1, 'Dynamic') as d", 'parquet'))
    expect(untyped).toMatchObject({ status: 400, message: expect.stringContaining('give it a type') })
  })
})

describe('errors', () => {
  test('before the first row use the envelope', async () => {
    expect(await errorOf(await query('select nope', 'csv'))).toMatchObject({ status: 400, code: 'VALIDATION_ERROR' })
    expect(await errorOf(await query('select * from system.one', 'arrow'))).toMatchObject({ status: 400 })
    expect(await errorOf(await query('select 1', 'csv', { wait_for: 'x.1' }))).toMatchObject({ status: 400 })
  })

  test.each([
    [{}, 'query'],
    [{ query: '' }, 'query'],
    [{ query: 5 }, 'query'],
    [{ query: 'select 1', limit: 5 }, 'limit'],
    [{ query: 'select 1', params: { 'a b': 1 } }, 'params'],
    [{ query: 'select 1', params: { a: { b: 1 } } }, 'params'],
    [{ query: 'select 1', wait_for: -1 }, 'wait_for'],
    [{ query: 'select 1', wait_for: 'other.3' }, 'wait_for'],
    [{ query: 'drop table events' }, 'only SELECT'],
  ])('%j is a VALIDATION_ERROR, naming the problem', async (body, problem) => {
    const { status, error } = await service.api('POST', '/api/v1/query', body)
    expect(status).toBe(400)
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', message: expect.stringContaining(problem) })
  })

  test.each(['csv', 'ndjson', 'parquet', 'arrow'])('after the first row abort the %s response', async (format) => {
    const response = await query('select throwIf(number = 900000) as x, number from numbers(1000000)', format)
    expect(response.status).toBe(200)
    expect(await response.bytes().catch((error) => error)).toBeInstanceOf(Error)
  })

  test.each([
    ['select 1 +', 'position 11 (end of query)'],
    ["select 'é' fromm events x", 'position 18 (events)'],
    ["select 'é',\n  2 fromm events x", '(line 2, col 11)'],
  ])('a syntax error in %j names its position', async (sql, position) => {
    expect((await errorOf(await query(sql, 'csv'))).message).toContain(position)
    expect((await errorOf(await query(sql, 'json'))).message).toContain(position)
  })
})

describe('limits', () => {
  test('on rows and bytes apply to JSON, on bytes to other formats', async () => {
    const { data } = await service.api('POST', '/api/v1/query', { query: 'select number from numbers(5000)' })
    expect(data).toMatchObject({ row_count: 1000, truncated: true })
    expect((await errorOf(await query("select repeat('x', 10000) from numbers(500)", 'json'))).message).toBe(
      'query: its result is too large, more than 2 MiB: select fewer columns or rows',
    )
    // Small enough to be reached before the query deadline on any machine.
    const small = await startTestService({}, { bounds: { queries: { streamBytes: 32 * MIB } } })
    const { bytes, hasEnd } = await takeFromSocket(small, "select repeat('x', 1000) from numbers(1000000)")
    expect(hasEnd).toBe(false)
    expect(bytes).toBeGreaterThan(16 * MIB)
    expect(bytes).toBeLessThanOrEqual(33 * MIB)
  })

  test.each(['json', 'csv', 'parquet'])(
    'on time and memory are named in the error with advice, in %s',
    async (format) => {
      const slow = await errorOf(
        await ask(shortDeadline, 'select sum(sipHash64(number)) from numbers(100000000000)', format),
      )
      expect(slow).toMatchObject({ status: 400, code: 'VALIDATION_ERROR' })
      expect(slow.message).toBe(
        'query: it took longer than 1 s: narrow it by occurred_at, agent_id or run_id, or select fewer columns',
      )
      const large = await errorOf(await query('select length(range(100000000))', format))
      expect(large).toMatchObject({ status: 400, message: expect.stringContaining('more than 256 MiB of memory') })
    },
    15_000,
  )

  test('on time apply between rows, and not to a slow reader', async () => {
    const rare = await ask(
      shortDeadline,
      'select number from numbers(100000000000) where sipHash64(number) % 1000000 = 0',
      'csv',
    )
    expect(rare.status).toBe(200)
    expect(await takeUntilCut(rare)).toBeGreaterThan(0)
    const response = await ask(shortDeadline, "select number, repeat('x', 100) from numbers(200000)", 'csv')
    let bytes = 0
    for await (const piece of response.body!) {
      bytes += piece.length
      await Bun.sleep(bytes < 5 * MIB ? 100 : 0)
    }
    expect(bytes).toBeGreaterThan(20 * MIB)
  })

  test('on concurrency apply to streams until they end or are aborted', async () => {
    const streams = [await endless(), await endless()]
    expect(await errorOf(await query('select 1', 'json'))).toMatchObject({ status: 429, code: 'RATE_LIMITED' })
    expect(await errorOf(await query('select 1', 'csv'))).toMatchObject({ status: 429, code: 'RATE_LIMITED' })
    streams[0].leave()
    await eventually(async () => (await query('select 1', 'json')).status === 200)
    streams[1].leave()
    await eventually(async () => (await runningOnEngine()) === 0)
  })
})

describe('a client that disconnects', () => {
  test.each(['json', 'csv', 'ndjson', 'parquet', 'arrow'])('stops its query, in %s', async (format) => {
    const gone = new AbortController()
    const sql =
      format === 'json'
        ? 'select count() as of_formats from numbers(100000000000) where sipHash64(number) = 1'
        : 'select number as of_formats from numbers(100000000000)'
    const answer = query(sql, format, {}, gone.signal)
      .then((response) => response.body!.getReader().read())
      .catch(() => {})
    if (format === 'json') await eventually(async () => (await runningOnEngine()) > 0)
    else await answer
    expect(await runningOnEngine()).toBeGreaterThan(0)
    gone.abort()
    await eventually(async () => (await runningOnEngine()) === 0)
  })
})

test('a slow reader of a large result causes backpressure: no more is fetched than fits in transit', async () => {
  const { url, client } = await freshColumnarDatabase()
  const proxy = await countingProxy(url)
  const slow = await startTestService({ CLICKHOUSE_URL: proxy.url, QUERY_CAPS: '{"seconds": 200}' })
  const reader = slowReader(slow, "select number, repeat('x', 100) as of_formats from numbers(3500000)")
  for (let i = 0; i < 5; i++) {
    if (i > 0) reader.take(10 * MIB)
    await eventually(() => reader.taken() > (20 + i * 10) * MIB)
    expect(proxy.passed() - reader.taken()).toBeLessThan(IN_TRANSIT_MAX)
  }
  // Nothing more is fetched while the client does not read.
  await eventually(async () => {
    const passed = proxy.passed()
    await query('select 1', 'json')
    return proxy.passed() === passed
  })
  expect(proxy.passed() - reader.taken()).toBeLessThan(IN_TRANSIT_MAX)
  expect(await runningOnEngine(client)).toBe(1)
  reader.leave()
  await eventually(async () => (await runningOnEngine(client)) === 0)
})

function query(sql: string, format: string, more: object = {}, signal?: AbortSignal): Promise<Response> {
  return ask(service, sql, format, more, signal)
}

function ask(from: TestService, sql: string, format: string, more: object = {}, signal?: AbortSignal) {
  return fetch(`${from.url}/api/v1/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${from.workspaceKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: sql, format, ...more }),
    ...(signal && { signal }),
  })
}

async function readBack(response: Response, format: string, columns: string) {
  expect(response.status).toBe(200)
  const path = join(await temporaryDirectory(), 'answer')
  await Bun.write(path, await response.bytes())
  return engine.query(`select ${columns} from file({path:String}, '${format}')`, { params: { path } })
}

/** Number of bytes received before the connection was cut. */
async function takeUntilCut(response: Response): Promise<number> {
  let bytes = 0
  try {
    for await (const piece of response.body!) bytes += piece.length
  } catch {
    return bytes
  }
  throw new Error(`the answer has an end, after ${bytes} bytes`)
}

async function endless() {
  const gone = new AbortController()
  const response = await query('select number as of_formats from numbers(100000000000)', 'csv', {}, gone.signal)
  expect(response.status).toBe(200)
  // Keeps the response referenced: once garbage collected, its connection closes.
  return { response, leave: () => gone.abort() }
}

/** Number of tenant queries running on the engine. */
async function runningOnEngine(on = engine): Promise<number> {
  // Matches queries that run, not those being checked by the guard.
  return runningStatements(on, 'SELECT * FROM (SELECT %of_formats%numbers(%')
}

/** Reads to the end. Over a plain socket, because `fetch` drops buffered data when the connection is cut. */
async function takeFromSocket(from: TestService, sql: string): Promise<{ bytes: number; hasEnd: boolean }> {
  const socket = socketQuery(from, sql)
  let bytes = 0
  let last = ''
  socket.on('data', (data: Buffer) => {
    bytes += data.length
    last = (last + data.subarray(-LAST_CHUNK.length).toString('latin1')).slice(-LAST_CHUNK.length)
    if (last === LAST_CHUNK) socket.end()
  })
  await new Promise<void>((done) => socket.on('close', () => done()).on('error', () => done()))
  return { bytes, hasEnd: last === LAST_CHUNK }
}

const LAST_CHUNK = '0\r\n\r\n'

/** Reads 20 MiB, and then only as much as `take` allows. Over a plain socket, because HTTP clients read ahead. */
function slowReader(from: TestService, sql: string) {
  const socket = socketQuery(from, sql)
  let taken = 0
  let allowed = 21 * MIB
  socket.on('data', (data) => {
    taken += data.length
    if (taken >= allowed) socket.pause()
  })
  return {
    taken: () => taken,
    take(bytes: number) {
      allowed += bytes
      socket.resume()
    },
    leave: () => socket.destroy(),
  }
}

/** Sends a CSV query over a plain socket. */
function socketQuery({ url, workspaceKey }: TestService, sql: string) {
  const { hostname, port } = new URL(url)
  const body = JSON.stringify({ query: sql, format: 'csv' })
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /api/v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${workspaceKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  return socket
}
