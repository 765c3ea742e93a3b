import { afterAll, expect, test } from 'bun:test'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import {
  connectPostgres,
  isUnavailable,
  jsonArray,
  type Sql,
  unavailableOf,
} from '../../src/stores/postgres/connect.ts'
import { migratePostgres } from '../../src/stores/postgres/migrate.ts'
import { eventually } from '../support/eventually.ts'
import { failureOf } from '../support/failures.ts'
import { emptyDatabase, freshDatabase } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/teardown.ts'

const log = createLog('silent')
const { url, sql } = await freshDatabase()
const pools: Sql[] = []
afterAll(() => Promise.all(pools.map((pool) => pool.end({ timeout: 1 }))))

function connect(address: string, options: { statementTimeoutMs?: number } = {}): Sql {
  const pool = connectPostgres(address, { log, max: 2, ...options })
  pools.push(pool)
  return pool
}

async function migrations(files: Record<string, string>): Promise<string> {
  const directory = await temporaryDirectory()
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  await mkdir(join(directory, 'not_a_migration.sql'))
  return directory
}

test('values round-trip: times, 64-bit counts, JSON text, arrays', async () => {
  const json = new RawJson('{"id": 12345678901234567890, "n": 1.0, "__proto__": {"a": "\\u0000"}}')
  const at = new Date('2026-01-31T09:30:00.123Z')
  const [row] = await sql`
    select ${json}::json as json, ${at}::timestamptz(3) as at, ${Number.MAX_SAFE_INTEGER}::bigint as big,
      ${['a"b', 'c\\d']}::text[] as texts, ${[json, json]}::json[] as jsons`
  expect(row).toEqual({ json, at, big: Number.MAX_SAFE_INTEGER, texts: ['a"b', 'c\\d'], jsons: [json, json] })
})

test('an array of JSON arrives unchanged, whatever its length and size', async () => {
  const json = new RawJson(String.raw`{"quoted": "\"\\ é", "n": 1.0}`)
  const large = new RawJson(JSON.stringify(['"\\é'.repeat(500_000)]))
  for (const values of [[], [json], [null], [large], [json, null, large]]) {
    const given = values.map((value) => ({ value }))
    const rows = await sql`
      select json, ${'after'}::text as after from unnest(${jsonArray(sql, given, 'value')}) with ordinality as i (json, n) order by n`
    expect([...rows]).toEqual(values.map((json) => ({ json, after: 'after' })))
  }
})

test('rejects a count that a number cannot hold', async () => {
  expect(await failureOf(sql`select 9007199254740993 as n`)).toBeInstanceOf(RangeError)
})

test('cancels a statement at its deadline and reports it as unavailable', async () => {
  const impatient = connect(url, { statementTimeoutMs: 1_500 })
  const failure = await failureOf(impatient`select pg_sleep(10)`)
  expect(isUnavailable(failure)).toBe(true)
  expect([...(await impatient`select 1 as n`)]).toEqual([{ n: 1 }])
})

test('prefers the connection used last, so that those a burst has opened become idle and are closed', async () => {
  const pool = connect(url)
  const pidOf = async () => (await pool<[{ pid: number }]>`select pg_backend_pid() as pid, pg_sleep(0.05)`)[0].pid
  expect(new Set(await Promise.all([pidOf(), pidOf()])).size).toBe(2)
  const one = [await pidOf(), await pidOf(), await pidOf()]
  expect(new Set(one).size).toBe(1)
})

test('gives up on a server that accepts the connection but never answers', async () => {
  const silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
  const pool = connect(`postgres://u:p@127.0.0.1:${silent.port}/db`, { statementTimeoutMs: 100 })
  expect(isUnavailable(await failureOf(pool`select 1`))).toBe(true)
  silent.stop(true)
})

test.skipIf(process.env.DATABASE_URL !== undefined)('gives up on a server that goes silent', async () => {
  const pool = connect(url, { statementTimeoutMs: 1_500 })
  const [backend] = await pool<{ pid: number }[]>`select pg_backend_pid() as pid`
  process.kill(backend?.pid as number, 'SIGSTOP')
  expect(isUnavailable(await failureOf(pool`select 1`))).toBe(true)
  process.kill(backend?.pid as number, 'SIGCONT')
  // On a busy machine a new connection may take longer than the timeout.
  await eventually(async () => expect([...(await pool`select 1 as n`)]).toEqual([{ n: 1 }]))
})

test('a listener may be silent for any time', async () => {
  const pool = connect(url, { statementTimeoutMs: 400 })
  const received: string[] = []
  await pool.listen('news', (text) => received.push(text))
  await Bun.sleep(2_000)
  await sql`select pg_notify('news', 'hello')`
  await eventually(() => received.includes('hello'))
  const [backends] = await sql`select count(*) as n from pg_stat_activity where query ilike 'listen%'`
  expect(backends).toEqual({ n: 1 })
})

test('a connection stays usable after a COPY that is read slowly or aborted', async () => {
  // With some of these sizes the copy ends just when the reader has fallen behind.
  for (let rows = 50; rows < 150; rows++) {
    const found = await sql.begin(async (tx) => {
      const source =
        await tx`copy (select repeat('x', 999) from generate_series(1, ${tx.unsafe(String(rows))})) to stdout`.readable()
      let bytes = 0
      for await (const chunk of source) {
        if (bytes === 0) await Bun.sleep(1)
        bytes += chunk.length
      }
      await tx`select 1`
      return bytes
    })
    expect(found).toBe(rows * 1000)
  }
  const mine = new Error('mine')
  const failure = await failureOf(
    sql.begin(async (tx) => {
      const source = await tx`copy (select repeat('x', 999) from generate_series(1, 10000)) to stdout`.readable()
      for await (const _ of source) throw mine
    }),
  )
  expect(failure).toBe(mine)
})

test('a refused connection is unavailable, without internal details in the message', async () => {
  const failure = await failureOf(connect('postgres://u:p@127.0.0.1:1/db')`select 1`)
  const error = unavailableOf(failure)
  expect(error).toMatchObject({ code: 'UNAVAILABLE', status: 503, retryAfterSeconds: 1, cause: failure })
  expect(error?.message).not.toContain('127.0.0.1')
})

test('a faulty statement is not "unavailable"', async () => {
  for (const work of [sql`select nonsense`, sql`select 1 / 0`]) {
    expect(unavailableOf(await failureOf(work))).toBeNull()
  }
  expect(unavailableOf(new Error('any other'))).toBeNull()
  expect(unavailableOf('no error at all')).toBeNull()
})

test('applies migrations once, in order', async () => {
  const database = await emptyDatabase()
  const directory = await migrations({
    '0002_second.sql': 'insert into kept values (2);',
    '0001_first.sql': 'create table kept (n int); insert into kept values (1);',
  })
  await migratePostgres(database.url, log, directory)
  await migratePostgres(database.url, log, directory)
  expect([...(await database.sql`select n from kept order by n`)]).toEqual([{ n: 1 }, { n: 2 }])

  await writeFile(join(directory, '0003_third.sql'), 'insert into kept values (3);')
  await migratePostgres(database.url, log, directory)
  expect([...(await database.sql`select count(*) as n from kept`)]).toEqual([{ n: 3 }])
})

test('concurrent migrations wait for each other', async () => {
  const database = await emptyDatabase()
  const directory = await migrations({ '0001_slow.sql': 'create table kept (n int); select pg_sleep(0.2);' })
  await Promise.all([1, 2, 3].map(() => migratePostgres(database.url, log, directory)))
  expect([...(await database.sql`select name from migrations`)]).toEqual([{ name: '0001_slow.sql' }])
})

test('a failed migration leaves nothing behind', async () => {
  const database = await emptyDatabase()
  const directory = await migrations({ '0001_bad.sql': 'create table kept (n int); select nonsense;' })
  expect(await failureOf(migratePostgres(database.url, log, directory))).toBeInstanceOf(Error)
  const [row] = await database.sql`select to_regclass('kept') as kept, to_regclass('migrations') as migrations`
  expect(row).toEqual({ kept: null, migrations: null })
})

test('rejects a database of a newer version and says so', async () => {
  const database = await emptyDatabase()
  await migratePostgres(database.url, log, await migrations({ '0001_a.sql': '', '0002_newer.sql': '' }))
  const failure = await failureOf(migratePostgres(database.url, log, await migrations({ '0001_a.sql': '' })))
  expect(String(failure)).toContain('migrated by a newer version (migration 0002_newer.sql is unknown)')
})

test('rejects a database of an unreleased version, and does not change it', async () => {
  const database = await emptyDatabase()
  await migratePostgres(database.url, log, await migrations({ '0001_init.sql': 'create table api_keys (id int)' }))
  expect(await failureOf(migratePostgres(database.url, log))).toMatchObject({
    name: 'StartError',
    message:
      'the Postgres database was written by an earlier, unreleased version: name an empty database. Nothing was changed.',
  })
  const tables =
    await database.sql`select table_name as name from information_schema.tables where table_schema = 'public'`
  expect(tables.map(({ name }) => name).sort()).toEqual(['api_keys', 'migrations'])
})

test('a run_id is unique in its workspace, and what belongs to a run refers to the run of its workspace', async () => {
  const rules = await sql<{ rule: string }[]>`
    select conrelid::regclass || ' ' || pg_get_constraintdef(oid) as rule from pg_constraint
    where contype = 'p' and conrelid = 'runs'::regclass or contype = 'f' and confrelid = 'runs'::regclass`
  const tables = ['hosted_runs', 'pauses', 'run_steps', 'run_usage_changes', 'tasks', 'tool_calls']
  expect(rules.map(({ rule }) => rule).sort()).toEqual(
    [
      ...tables.map((table) => `${table} FOREIGN KEY (run_id, workspace_id) REFERENCES runs(run_id, workspace_id)`),
      'runs PRIMARY KEY (run_id, workspace_id)',
    ].sort(),
  )
})
