import { beforeAll, describe, expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client'
import { startTestService, type TestService } from '../support/service.ts'
import { clientOf, rowsOf } from './clickhouse-client.ts'
import { failure } from './query-tenants.ts'

/** Behaviour that the integration suite of the official client expects of a server; each group failed there once. */

let service: TestService
let client: ClickHouseClient

const rows = (query: string, by = client) => rowsOf(by, query)

beforeAll(async () => {
  service = await startTestService({}, { bounds: { queries: { atOnce: 8 } } })
  client = clientOf(service)
})

describe('system tables', () => {
  test.each<[string, Record<string, unknown>[]]>([
    ['SELECT * FROM system.numbers LIMIT 3;', [{ number: 0 }, { number: 1 }, { number: 2 }]],
    ['SELECT number FROM system.numbers_mt LIMIT 1;;;;;', [{ number: 0 }]],
    ['SELECT number FROM system.numbers WHERE number > 2 LIMIT 1', [{ number: 3 }]],
    ['SELECT n.number AS x FROM system.numbers AS n LIMIT 1 -- a comment', [{ x: 0 }]],
    ['SELECT * FROM system.one', [{ dummy: 0 }]],
    ['SELECT 0 IN system.one AS x', [{ x: 1 }]],
    ['(SELECT 0 AS x FROM system.one) UNION ALL (SELECT dummy FROM system.one)', [{ x: 0 }, { x: 0 }]],
    [
      'WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 2) SELECT n, dummy FROM r, system.one ORDER BY n',
      [
        { n: 1, dummy: 0 },
        { n: 2, dummy: 0 },
      ],
    ],
    ["SELECT * FROM numbers(1) AS n, (SELECT 'system.one' AS text) AS t", [{ number: 0, text: 'system.one' }]],
  ])('%s', async (query, expected) => {
    expect(await rows(query)).toEqual(expected)
  })

  test('a client can select system as its database', async () => {
    const system = clientOf(service, { database: 'system' })
    expect(await rows('SELECT * FROM numbers LIMIT 2', system)).toEqual([{ number: 0 }, { number: 1 }])
    expect(await rows('SELECT * FROM numbers(1)', system)).toEqual([{ number: 0 }])
    expect(await rows('SELECT currentDatabase() AS name', system)).toEqual([{ name: 'system' }])
    expect(await rows("SHOW TABLES LIKE 'num%'", system)).toEqual([{ name: 'numbers' }, { name: 'numbers_mt' }])
    expect(await failure(rows('SELECT * FROM parts', system))).toMatchObject({ code: '60' })
  })

  test.each([
    ['EXISTS system.databases;', '1\n'],
    ['EXISTS system.foobar;;;;;;', '0\n'],
    ['EXISTS TABLE system.numbers', '1\n'],
    ['EXISTS runs;', '1\n'],
    ['DESCRIBE TABLE system.one', 'dummy\tUInt8\t\t\t\t\t\n'],
    ["SELECT count() FROM system.tables WHERE name = 'numbers'", '1\n'],
    ["SELECT type FROM system.columns WHERE database = 'system' AND table = 'numbers'", 'UInt64\n'],
  ])('%s', async (query, expected) => {
    expect(await (await ask(query)).text()).toBe(expected)
  })

  test.each(['system.parts', 'system.query_log', 'system.processes', 'system.users', 'information_schema.tables'])(
    '%s is rejected',
    async (table) => {
      expect(await failure(rows(`SELECT * FROM ${table}`))).toMatchObject({ code: '497', type: 'ACCESS_DENIED' })
    },
  )
})

describe('settings', () => {
  test('every setting in system.settings is accepted with its current value', async () => {
    const settings = await rows('SELECT name, value FROM system.settings')
    expect(settings.length).toBeGreaterThan(40)
    expect(settings).toContainEqual({ name: 'date_time_output_format', value: 'simple' })
    for (const { name, value } of settings) {
      const response = await ask('SELECT 1', { [String(name)]: String(value) })
      expect([name, response.status, await response.text()]).toEqual([name, 200, '1\n'])
    }
  })

  test('limit and offset apply to the result, not to subqueries', async () => {
    const asked = async (query: string, clickhouse_settings: ClickHouseSettings) =>
      (await client.query({ query, format: 'CSV', clickhouse_settings })).text()
    expect(await asked('SELECT number FROM system.numbers LIMIT 5', { limit: '2' })).toBe('0\n1\n')
    expect(await asked('SELECT number FROM numbers(5)', { limit: '2', offset: '1' })).toBe('1\n2\n')
    expect(await asked('SELECT sum(number) FROM (SELECT number FROM numbers(10))', { limit: '2' })).toBe('45\n')
    expect(await failure(asked('SELECT 1', { limit: '-1' }))).toMatchObject({ code: '164' })
  })

  test.each<[string, string]>([
    ['max_block_size', '1'],
    ['allow_experimental_json_type', '1'],
    ['allow_experimental_variant_type', '1'],
    ['allow_experimental_dynamic_type', '0'],
    // A value that already applies changes nothing.
    ['flatten_nested', '1'],
  ])('%s = %s is ignored', async (name, value) => {
    expect(await (await ask('SELECT 1', { [name]: value })).text()).toBe('1\n')
  })

  test.each<[string, string, string]>([
    ['foobar', '1', '115'],
    ['SQL_mine', '1', '115'],
    ['flatten_nested', '0', '164'],
    ['readonly', '0', '164'],
    ['output_format_json_array_of_rows', '1', '164'],
    ['max_threads', '64', '164'],
    ['max_memory_usage', '0', '164'],
    ['allow_introspection_functions', '1', '164'],
    ['additional_table_filters', '{}', '164'],
    ['additional_table_filters', '', '164'],
    ['query_plan_remove_redundant_sorting', '1', '164'],
  ])('%s = %s is rejected with code %s', async (name, value, code) => {
    const response = await ask('SELECT 1', { [name]: value })
    expect(response.headers.get('x-clickhouse-exception-code')).toBe(code)
    expect(await response.text()).toContain(name)
  })
})

describe('a type passed as a query parameter', () => {
  const cast = (type: string, sql = "CAST('a', {e: String})") =>
    client
      .query({ query: `SELECT toTypeName(${sql}) AS x`, query_params: { e: type }, format: 'JSONEachRow' })
      .then((result) => result.json<{ x: string }>())

  test('works as a type, even with quotes in it', async () => {
    expect(await cast("Enum('a' = 1, 'b' = 2)")).toEqual([{ x: "Enum8('a' = 1, 'b' = 2)" }])
    expect(await cast('Nullable(String)', "accurateCastOrNull('a', {e:String})")).toEqual([{ x: 'Nullable(String)' }])
    const asked = { query: "SELECT toTypeName(CAST('a', {e:String})) AS x", params: { e: "Enum('a' = 1)" } }
    expect((await service.api('POST', '/api/v1/query', asked)).data.rows).toEqual([{ x: "Enum8('a' = 1)" }])
  })

  test.each([
    'AggregateFunction(sum, UInt64)',
    'simpleaggregatefunction(sum, UInt64)',
    'Array(AggregateFunction(sum, UInt64))',
    '`Aggregate\\x46unction`(sum, UInt64)',
    'Aggregate\\\\x46unction(sum, UInt64)',
  ])('%s is rejected, as it is in the query text', async (type) => {
    expect(await failure(cast(type))).toMatchObject({ code: '497' })
    const asked = { query: "SELECT CAST('a', {e:String}) AS x", params: { e: type } }
    expect((await service.api('POST', '/api/v1/query', asked)).error?.code).toBe('VALIDATION_ERROR')
  })

  test('behaves the same over plain HTTP, escaped or not', async () => {
    const query = "SELECT toTypeName(CAST('a', {e:String}))"
    expect(await (await ask(query, { param_e: "Enum(\\'a\\' = 1)" })).text()).toBe("Enum8(\\'a\\' = 1)\n")
    for (const param_e of ['Aggregate\\x46unction(sum, Int8)', 'AggregateFunction(sum, Int8)', '\\\\x41'])
      expect((await ask(query, { param_e })).headers.get('x-clickhouse-exception-code')).toBe('497')
    for (const type of ['LowCardinality(String)', "Enum8('String' = 1)", 'UInt8'])
      expect((await ask(`SELECT CAST(1, {e:${type}})`, { param_e: 'String' })).status).toBe(403)
    expect((await ask('SELECT CAST(1, 9000000000000), {e:String}', { param_e: 'String' })).status).toBeGreaterThan(399)
  })
})

test('errors are compressed like results when the client asks for it', async () => {
  const headers = { 'accept-encoding': 'gzip' }
  const response = await ask('invalid', { enable_http_compression: '1' }, headers, { decompress: false })
  expect([response.status, response.headers.get('content-encoding')]).toEqual([400, 'gzip'])
  expect(gunzipSync(await response.bytes()).toString()).toContain('Syntax error')
  const plain = await ask('invalid', {}, headers, { decompress: false })
  expect(plain.headers.get('content-encoding')).toBeNull()
})

describe('the trailer of a JSON result', () => {
  test('has the members that clients read, and does not reveal how much was scanned', async () => {
    const result = await client.query({ query: 'SELECT number FROM system.numbers LIMIT 3', format: 'JSON' })
    expect(await result.json()).toEqual({
      meta: [{ name: 'number', type: 'UInt64' }],
      data: [{ number: 0 }, { number: 1 }, { number: 2 }],
      rows: 3,
      rows_before_limit_at_least: 3,
      statistics: { elapsed: expect.any(Number), rows_read: 0, bytes_read: 0 },
    } as never)
  })

  test('is complete for long and for empty results, and for any text', async () => {
    for (const count of [0, 1, 100_000]) {
      const query = `SELECT number, 'ä€🚀 "rows": 5\n}\n' AS text FROM numbers(${count})`
      const json = await (await client.query({ query, format: 'JSONCompact' })).json<unknown[]>()
      expect([json.rows, json.data.length, json.statistics?.rows_read]).toEqual([count, count, 0])
      if (count > 0) expect(json.data.at(-1)).toEqual([count - 1, 'ä€🚀 "rows": 5\n}\n'])
      expect(json).not.toHaveProperty('rows_before_limit_at_least')
    }
    const bare = await ask('SELECT 1 AS a FORMAT JSON', { output_format_write_statistics: '0' })
    expect(await bare.json()).toEqual({ meta: [{ name: 'a', type: 'UInt8' }], data: [{ a: 1 }], rows: 1 })
  })
})

function ask(
  query: string,
  parameters: Record<string, string> = {},
  headers: Record<string, string> = {},
  options: { decompress?: boolean } = {},
): Promise<Response> {
  return fetch(`${service.url}/clickhouse/?${new URLSearchParams(parameters)}`, {
    method: 'POST',
    headers: { 'x-clickhouse-key': service.workspaceKey, ...headers },
    body: query,
    ...options,
  })
}
