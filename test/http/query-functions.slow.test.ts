import { beforeAll, expect, test } from 'bun:test'
import { isAllowedFunction, isAllowedTableFunction } from '../../src/sql/analytics/functions.ts'
import { createGuard, type SqlGuard } from '../../src/sql/analytics/guard.ts'
import { explainFailure } from '../../src/sql/analytics/problems.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { inParallel } from '../support/in-parallel.ts'
import { failure } from './query-tenants.ts'

/** The guard against each of the engine's functions: thousands of queries, which a new version of the engine needs. */

let client: ColumnarClient
let guard: SqlGuard

beforeAll(async () => {
  ;({ client } = await freshColumnarDatabase())
  guard = createGuard(client, (error) => explainFailure(error, DEFAULT_QUERY_CAPS))
})

test('rejects every engine function that is not allowed, including future ones', async () => {
  const functions = await client.query<{ name: string }>('select name from system.functions')
  const tables = await client.query<{ name: string }>('select name from system.table_functions')
  const scalar = functions.map(({ name }) => name).filter((name) => !isAllowedFunction(name))
  const table = tables.map(({ name }) => name).filter((name) => !isAllowedTableFunction(name))
  expect(scalar.length).toBeGreaterThan(300)
  // The allowed table functions only generate rows.
  expect(tables.length - table.length).toBe(4)
  const calls = [
    ...[...scalar, 'aFunctionOfTomorrow'].map((name) => `select \`${name}\`(seq) from events`),
    ...[...table, 'aTableOfTomorrow'].map((name) => `select * from \`${name}\`('a', 'b')`),
  ]
  await inParallel(calls, async (query) => {
    const error = await failure(guard.check(query))
    expect((error as Error).message, query).toMatch(/not allowed|yntax error/)
  })
})

test('rejects names that the engine treats as function calls without parentheses', async () => {
  const names = await client.query<{ name: string }>('select name from system.functions')
  const calls: string[] = []
  const forbidden = names.map(({ name }) => name).filter((name) => !isAllowedFunction(name))
  await inParallel(forbidden, (name) =>
    client.statementText(`select \`${name}\``).then(
      () => calls.push(name),
      () => {},
    ),
  )
  expect(calls).toContain('currentUser')
  await inParallel(calls, async (name) => {
    expect(await failure(guard.check(`select \`${name}\` from events`)), name).toMatchObject({
      code: 'VALIDATION_ERROR',
    })
  })
})

test('rejects forbidden functions passed by name to higher-order functions', async () => {
  const names = await client.query<{ name: string }>('select name from system.functions')
  const higherOrder: string[] = []
  await inParallel(names.map(({ name }) => name).filter(isAllowedFunction), async (name) => {
    const rest = name.startsWith('map') ? "map('a', 'b')" : "['a']"
    const tree = await client.statementText(`explain query tree select \`${name}\`(file, ${rest})`).catch(String)
    if (/function_ref|function file\b|'file'|Expression for function/.test(tree)) higherOrder.push(name)
  })
  expect(higherOrder).toContain('arrayMap')
  for (const name of higherOrder) {
    const error = await failure(guard.check(`select ${name}(file, ['/etc/passwd'], '')`))
    expect((error as Error).message, name).toContain('not allowed')
  }
})
