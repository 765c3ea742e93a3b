import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import {
  type ColumnarClient,
  ColumnarError,
  createColumnarClient,
  type StreamedQueryOptions,
} from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase, runningStatements } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { failureOf } from '../support/failures.ts'
import { countingProxy } from '../support/tcp-proxy.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Streamed answers: what the service relies on from any ClickHouse. */

let url: string
let client: ColumnarClient
let directory: string

/** For calls that are never aborted. */
const { signal } = new AbortController()
/** The kernel's queues of both connections, and the buffers at each end. */
const IN_FLIGHT_BYTES_MAX = 64 * 2 ** 20

/** Several blocks, the last one not full. */
const ROWS = 200_000
/** A column name that a parser of the header could misread. */
const NAME = '`a "b",\\tc`'
const SOURCE = `select number as n, toString(number) as ${NAME}, if(number % 3 = 0, null, number) as z, [number, 1] as l from numbers(${ROWS})`
const STRUCTURE = `n UInt64, ${NAME} String, z Nullable(UInt64), l Array(UInt64)`

beforeAll(async () => {
  ;({ client, url } = await freshColumnarDatabase())
  directory = await temporaryDirectory()
})

describe('joins many blocks into one answer', () => {
  test.each([
    'CSV',
    'CSVWithNames',
    'CSVWithNamesAndTypes',
    'TSVWithNames',
    'TabSeparatedWithNamesAndTypes',
    'JSONEachRow',
    'JSONCompactEachRowWithNames',
    'JSONCompactEachRowWithNamesAndTypes',
    'RowBinaryWithNames',
    'RowBinaryWithNamesAndTypes',
    'Native',
    'ArrowStream',
    'Parquet',
  ])('in %s', async (format) => {
    const path = join(directory, format)
    await Bun.write(path, await whole(SOURCE, format))
    const sums = 'select count() as rows, sum(cityHash64(toString(tuple(*)))) as hash from'
    expect(
      await client.query(`${sums} file({path:String}, '${format}', {structure:String})`, {
        params: { path, structure: STRUCTURE },
      }),
    ).toEqual(await client.query(`${sums} (${SOURCE})`))
  })

  test.each(['JSON', 'JSONCompact', 'JSONStrings', 'JSONCompactStrings'])('in %s', async (format) => {
    const answer = JSON.parse((await whole(SOURCE, format)).toString())
    expect(answer.rows).toBe(ROWS)
    expect(answer.data).toHaveLength(ROWS)
    expect(Object.values(answer.data[ROWS - 1]).map(String)).toEqual([
      '199999',
      '199999',
      '199999',
      expect.stringContaining('199999,1'),
    ])
    expect(JSON.parse((await whole('select 1 as a where 0', format)).toString())).toMatchObject({ data: [], rows: 0 })
  })
})

describe('an answer that fails', () => {
  test('rejects before the first byte if there is no output yet', async () => {
    expect(await failureOf(whole('select nope', 'CSV'))).toMatchObject({ type: 'UNKNOWN_IDENTIFIER' })
    expect(await failureOf(whole('select throwIf(number = 5) from numbers(10)', 'CSV'))).toMatchObject({ code: 395 })
  })

  test.each(['CSV', 'Parquet'])('reports the reason in the middle of %s', async (format) => {
    const { taken, error } = await takeAll(
      "select throwIf(number = 900000, 'too far') as x, number from numbers(1000000)",
      format,
    )
    expect(taken).toBeGreaterThan(10_000)
    expect(error).toBeInstanceOf(ColumnarError)
    expect(error).toMatchObject({ code: 395, message: expect.stringContaining('too far') })
  })

  test('fails beyond its maximum size', async () => {
    const { taken, error } = await takeAll("select repeat('x', 1000) from numbers(100000)", 'CSV', {
      settings: { max_result_bytes: 20_000_000 },
    })
    expect(taken).toBeGreaterThan(5_000_000)
    expect(taken).toBeLessThanOrEqual(20_000_000)
    expect(error).toMatchObject({ type: 'TOO_MANY_ROWS_OR_BYTES' })
  })

  // The engine itself would drop the last blocks and report success.
  test('fails beyond its deadline, however few blocks are left', async () => {
    for (const blocks of [4, 5, 6]) {
      const sql = `select number, repeat('x', 100) from numbers(${blocks * 65_409})`
      const settings = { max_execution_time: 0.3, max_block_size: 65_409 }
      let rows = 0
      const error = await failureOf(
        (async () => {
          for await (const piece of await open(sql, 'TSV', { settings })) {
            rows += Buffer.from(piece).toString('latin1').split('\n').length - 1
            await Bun.sleep(300 / blocks)
          }
        })(),
      )
      if (rows < blocks * 65_409) expect(error).toMatchObject({ type: 'TIMEOUT_EXCEEDED' })
    }
  })
})

test('a query whose reader stops is cancelled', async () => {
  const pieces = await open('select number as abandoned from numbers(100000000000)', 'CSV')
  await pieces.next()
  expect(await running('abandoned')).toBe(1)
  await pieces.return()
  await eventually(async () => (await running('abandoned')) === 0)
})

test('a slow reader applies backpressure: buffering is bounded, and other queries continue', async () => {
  const proxy = await countingProxy(url)
  const throughProxy = createColumnarClient(remoteClickHouse(proxy.url))
  const pieces = await throughProxy.stream("select number, repeat('x', 1000) from numbers(500000)", 'CSV', { signal })
  let taken = 0
  for (let i = 5; i < 15; i++) {
    while (taken < i * 10_000_000) taken += (await pieces.next()).value?.length ?? 0
    expect(await client.query('select 1 as a')).toEqual([{ a: 1 }])
    expect(proxy.passed() - taken).toBeLessThan(IN_FLIGHT_BYTES_MAX)
  }
  await pieces.return()
})

test('planning a query, which runs its scalar subqueries, does not block other queries', async () => {
  const gone = new AbortController()
  const slow = failureOf(
    whole('select (select sum(sipHash64(number)) from numbers(100000000009)) as s', 'CSV', { signal: gone.signal }),
  )
  await eventually(async () => (await running('numbers(100000000009)')) === 1)
  expect((await whole('select 1', 'CSV')).toString()).toBe('1\n')
  gone.abort(new Error('enough'))
  expect(await slow).toMatchObject({ message: 'enough' })
})

test('streams totals, and statements other than SELECT', async () => {
  const totals = await whole(
    'select number % 2 as n, count() as c from numbers(4) group by n with totals order by n',
    'CSV',
  )
  expect(totals.toString()).toBe('0,2\n1,2\n\n0,4\n')
  expect((await whole('show databases', 'CSV')).toString()).toContain('"system"')
})

test('passes parameters of every kind as values', async () => {
  const params = {
    s: "it's\ta \\ 'q'\n\r\0é",
    n: 2 ** 40,
    list: ['a', "b'c", '\\'],
    none: null,
    yes: true,
    mixed: [true, null],
  }
  const types = {
    s: 'String',
    n: 'UInt64',
    list: 'Array(String)',
    none: 'Nullable(Int8)',
    yes: 'Bool',
    mixed: 'Array(Nullable(Bool))',
  }
  const columns = Object.entries(types).map(([name, type]) => `{${name}:${type}} as ${name}`)
  const answer = await whole(`select ${columns.join(', ')}`, 'JSONEachRow', { params })
  expect(JSON.parse(answer.toString())).toEqual(params)
})

function open(sql: string, format: string, options: Partial<StreamedQueryOptions> = {}) {
  return client.stream(sql, format, { signal, ...options })
}

async function whole(sql: string, format: string, options?: Partial<StreamedQueryOptions>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(await open(sql, format, options)))
}

async function takeAll(sql: string, format: string, options?: Partial<StreamedQueryOptions>) {
  let taken = 0
  try {
    for await (const piece of await open(sql, format, options)) taken += piece.length
    return { taken, error: undefined }
  } catch (error) {
    return { taken, error }
  }
}

async function running(word: string): Promise<number> {
  return runningStatements(client, `%${word}%`)
}
