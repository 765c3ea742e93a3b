import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { type ColumnarBackend, remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import {
  type ColumnarClient,
  ColumnarError,
  ColumnarUnavailable,
  createColumnarClient,
} from '../../src/stores/clickhouse/client.ts'
import { LOW_NICE } from '../../src/stores/clickhouse/engine/nice.ts'
import { type EmbeddedClickHouse, startEmbeddedClickHouse } from '../../src/stores/clickhouse/engine/supervisor.ts'
import { migrateClickHouse } from '../../src/stores/clickhouse/migrate.ts'
import { blockHead, columnHead } from '../../src/stores/clickhouse/native.ts'
import { TENANT_WORKLOAD } from '../../src/stores/clickhouse/protocol.ts'
import { runningStatements } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { failureOf } from '../support/failures.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/**
 * What the service relies on from any ClickHouse. Runs on the embedded engine, and on the server of
 * CLICKHOUSE_URL when that is set.
 */

const log = createLog('silent')
const DATABASE = `test_columnar_${process.pid}`
const REMOTE = process.env.CLICKHOUSE_URL

describe('embedded ClickHouse', () => {
  let dataDir: string
  let backend: EmbeddedClickHouse

  contract(async () => {
    dataDir = await temporaryDirectory()
    backend = await startEmbeddedClickHouse({ dataDir, log, logLevel: 'silent' })
    return backend
  })

  afterAll(async () => {
    await backend.stop()
  })

  test('a client that disconnects while its query is being started ends it', async () => {
    const client = createColumnarClient(backend, DATABASE)
    const sql = 'select count() as of_leavers from numbers(100000000000) where sipHash64(number) = 1'
    for (let ms = 0; ms < 40; ms++) {
      const abort = new AbortController()
      const start = failureOf(client.stream(sql, 'CSV', { signal: abort.signal }))
      await Bun.sleep(ms)
      abort.abort(new Error('gone'))
      expect(await start).toMatchObject({ message: 'gone' })
    }
    await eventually(async () => expect(await runningStatements(client, '%of_leavers%')).toBe(0))
  })

  test('a killed engine restarts on the same address with every stored row, and still deduplicates a repeated load', async () => {
    const client = createColumnarClient(backend, DATABASE)
    await client.command(
      'create table survivors (n UInt64) engine = MergeTree order by n settings non_replicated_deduplication_window = 100',
    )
    await client.insertNative('survivors', [numbersBlock(1000)], 'load-1')
    const { url, pid } = backend
    process.kill(pid!, 'SIGKILL')
    await eventually(() => backend.isRestarting, { intervalMs: 5 })
    // A read that begins during the restart waits for it.
    expect(await client.query('select 1 as n')).toEqual([{ n: 1 }])
    expect(backend.pid).not.toBe(pid)
    expect(backend.url).toBe(url)
    await client.insertNative('survivors', [numbersBlock(1000)], 'load-1')
    await client.insertNative('survivors', [numbersBlock(10)], 'load-2')
    expect(await client.query('select count() as n from survivors')).toEqual([{ n: 1010 }])
  })

  test('calls fail as unavailable while the engine is down, and whenReady waits for it', async () => {
    const client = createColumnarClient(backend, DATABASE)
    const { pid } = backend
    process.kill(pid!, 'SIGKILL')
    await eventually(async () => backend.pid === undefined, { intervalMs: 1 })
    expect(await failureOf(client.command('select 1'))).toBeInstanceOf(ColumnarUnavailable)
    await backend.whenReady(AbortSignal.timeout(10_000))
    await client.command('select 1')
  })

  test('rejects a wrong password', async () => {
    const client = createColumnarClient({ ...backend, url: backend.url, password: 'wrong' }, DATABASE)
    expect(await failureOf(client.query('select 1'))).toMatchObject({ code: 516, type: 'AUTHENTICATION_FAILED' })
  })

  test("keeps the password out of the engine's arguments and environment, and passes on no variables of the service", async () => {
    const read = (name: string) => readFile(`/proc/${backend.pid}/${name}`, 'utf8')
    const [args, environment] = await Promise.all([read('cmdline'), read('environ')])
    expect(args + environment).not.toContain(backend.password)
    expect(
      environment
        .split('\0')
        .filter(Boolean)
        .map((entry) => entry.split('=')[0])
        .sort(),
    ).toEqual(['HOME', 'MIMALLOC_PURGE_DELAY', 'TZ', 'UV_THREADPOOL_SIZE'])
  })

  test('a query cannot write a file', async () => {
    const client = createColumnarClient(backend, DATABASE)
    const path = join(dataDir, 'stolen')
    expect(await failureOf(client.command(`select 1 into outfile '${path}'`))).toBeInstanceOf(ColumnarError)
    expect(await Bun.file(path).exists()).toBe(false)
  })

  test.skipIf(process.platform !== 'linux')(
    'threads that work for tenants have a low priority, those of the service do not',
    async () => {
      const client = createColumnarClient(backend, DATABASE)
      const stop = new AbortController()
      const endless = (settings: Record<string, string>) =>
        failureOf(
          client.query('select sum(sipHash64(number)) from numbers(100000000000)', { settings, signal: stop.signal }),
        )
      // Threads of the pool get the low priority soon after they start; the first query may have started on one before that.
      const tenants: Promise<unknown>[] = []
      await eventually(
        () => {
          if (tenants.length < 16) tenants.push(endless({ workload: TENANT_WORKLOAD }))
          return niceOf(backend.pid!, /^Query/).includes(LOW_NICE)
        },
        { intervalMs: 250 },
      )
      const normal = () => niceOf(backend.pid!, /^Query/).filter((nice) => nice < LOW_NICE).length
      // Tenants' threads may still be getting their priority, so the count without the service's queries can fall.
      let least = normal()
      const own: Promise<unknown>[] = []
      await eventually(
        () => {
          const now = normal()
          if (now > least) return true
          least = now
          if (own.length < 3) own.push(endless({}))
          return false
        },
        { intervalMs: 250 },
      )
      stop.abort(new Error('enough'))
      await Promise.all([...tenants, ...own])
    },
  )

  test('an engine whose service was killed exits by itself and releases its directory', async () => {
    const orphanDir = await temporaryDirectory()
    const script = `
      const { startEmbeddedClickHouse } = await import(${JSON.stringify(join(import.meta.dir, '../../src/stores/clickhouse/engine/supervisor.ts'))})
      const { createLog } = await import(${JSON.stringify(join(import.meta.dir, '../../src/base/log.ts'))})
      const backend = await startEmbeddedClickHouse({ dataDir: ${JSON.stringify(orphanDir)}, log: createLog('silent') })
      console.log(backend.pid)
      setInterval(() => {}, 1000)`
    const service = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
    const reader = service.stdout.getReader()
    const pid = Number(Buffer.from((await reader.read()).value!).toString())
    service.kill('SIGKILL')
    await service.exited
    const next = await startEmbeddedClickHouse({ dataDir: orphanDir, log, logLevel: 'silent' })
    await next.stop()
    expect(next.pid).not.toBe(pid)
  })
})

describe.skipIf(REMOTE === undefined)('ClickHouse of CLICKHOUSE_URL', () => {
  contract(async () => remoteClickHouse(REMOTE ?? ''))
})

/** Test cases that every backend passes. */
function contract(open: () => Promise<ColumnarBackend>) {
  let backend: ColumnarBackend
  let client: ColumnarClient

  beforeAll(async () => {
    backend = await open()
    await backend.whenReady(AbortSignal.timeout(20_000))
    client = createColumnarClient(backend, DATABASE)
    await migrateClickHouse(client, log)
  })

  afterAll(async () => {
    await client.command(`drop database ${DATABASE}`, { database: 'default' })
  })

  test('answers ping and queries, and says that it can be loaded', async () => {
    await client.command('select 1')
    await client.probeLoading()
    expect(await client.query('select 1 as a, currentDatabase() as d')).toEqual([{ a: 1, d: DATABASE }])
  })

  test('sends long parameters too', async () => {
    const ids = Array.from({ length: 5_000 }, (_, i) => `id-${i}`)
    expect(await client.query('select length({ids:Array(String)}) as n', { params: { ids } })).toEqual([{ n: 5_000 }])
  })

  test('settings apply to one request only', async () => {
    const value = "select getSetting('max_block_size') as v"
    expect(await client.query(value, { settings: { max_block_size: 1234 } })).toEqual([{ v: 1234 }])
    expect(await client.query(value)).not.toEqual([{ v: 1234 }])
    expect(
      await failureOf(client.command('create table nope (n Int8) engine = Memory', { settings: { readonly: 1 } })),
    ).toMatchObject({ type: 'READONLY' })
    await client.command('create table yep (n Int8) engine = Memory')
  })

  test('a filter setting applies to the tables it names', async () => {
    await client.command('create table filtered (n UInt64) engine = MergeTree order by n')
    await client.insertNative('filtered', [numbersBlock(10)], 'f')
    const settings = { additional_table_filters: `{'${DATABASE}.filtered':'n = 3'}` }
    expect(await client.query('select n from filtered', { settings })).toEqual([{ n: 3 }])
  })

  test("errors have ClickHouse's code and name", async () => {
    const code = async (sql: string, settings = {}) =>
      ((await failureOf(client.query(sql, { settings }))) as ColumnarError).type
    expect(await code('select * from missing')).toBe('UNKNOWN_TABLE')
    expect(await code('selec')).toBe('SYNTAX_ERROR')
    expect(await code('select missing')).toBe('UNKNOWN_IDENTIFIER')
    expect(await code('select throwIf(1)')).toBe('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO')
    expect(await code('select 1', { max_threads: 'many' })).toBe('CANNOT_PARSE_INPUT_ASSERTION_FAILED')
    expect(await code('select 1', { no_such_setting: 1 })).toBe('UNKNOWN_SETTING')
    expect(
      await code('select sleepEachRow(0.1) from numbers(100)', { max_execution_time: 0.2, max_block_size: 1 }),
    ).toBe('TIMEOUT_EXCEEDED')
  })

  test('runs one statement per request', async () => {
    await client.command('create table kept (n Int8) engine = Memory')
    for (const sql of [
      'select 1; drop table kept',
      'explain ast select 1; drop table kept',
      'insert into kept values (1); drop table kept',
    ]) {
      expect(await failureOf(client.command(sql))).toMatchObject({ type: 'SYNTAX_ERROR' })
    }
    expect(await failureOf(client.command('-- nothing'))).toMatchObject({ type: 'SYNTAX_ERROR' })
    expect(await client.query('select count() as n from kept')).toEqual([{ n: 0 }])
  })

  test('answers in the requested format', async () => {
    const sql = 'select number as n from numbers(2)'
    expect(await client.queryText(sql, 'JSONEachRow')).toBe('{"n":0}\n{"n":1}\n')
    expect(await client.statementText(sql)).toBe('0\n1\n')
    const compact = JSON.parse(await client.statementText(`${sql} format JSONCompact`))
    expect(compact).toMatchObject({ meta: [{ name: 'n', type: 'UInt64' }], data: [[0], [1]], rows: 2 })
    const head = await post(backend, 'select 1 FORMAT Parquet')
    expect(
      Buffer.from(await head.arrayBuffer())
        .subarray(0, 4)
        .toString(),
    ).toBe('PAR1')
    expect(head.headers.get('x-clickhouse-format')).toBe('Parquet')
  })

  test('a load repeated with its token changes nothing, whatever was loaded in between', async () => {
    await client.command(
      'create table once (n UInt64) engine = MergeTree order by n settings non_replicated_deduplication_window = 100',
    )
    for (const [token, rows] of [
      ['a', 500],
      ['b', 20],
      ['a', 500],
      ['b', 20],
    ] as const) {
      await client.insertNative('once', [numbersBlock(rows)], token)
    }
    expect(await client.query('select count() as n from once')).toEqual([{ n: 520 }])
    // Only the token counts: equal rows under another token are different rows.
    await client.insertNative('once', [numbersBlock(500)], 'c')
    expect(await client.query('select count() as n from once')).toEqual([{ n: 1020 }])
  })

  test('a load of many blocks in odd pieces becomes one part, stored completely or not at all', async () => {
    await client.command(
      'create table pieces (n UInt64) engine = MergeTree order by n settings non_replicated_deduplication_window = 100',
    )
    const bytes = Buffer.concat([numbersBlock(1000), numbersBlock(1), numbersBlock(2000)])
    const chunks = Array.from({ length: Math.ceil(bytes.length / 777) }, (_, i) =>
      bytes.subarray(i * 777, i * 777 + 777),
    )
    await client.insertNative('pieces', chunks, 'p')
    await client.insertNative('pieces', [bytes], 'p')
    expect(await client.query('select count() as n, uniqExact(_part) as parts from pieces')).toEqual([
      { n: 3001, parts: 1 },
    ])
    expect(
      await failureOf(client.insertNative('pieces', [bytes.subarray(0, bytes.length - 3)], 'torn')),
    ).toBeInstanceOf(ColumnarError)
    expect(await client.query('select count() as n from pieces')).toEqual([{ n: 3001 }])
  })

  test('a load whose end is not sent stores nothing, and can be repeated under its token', async () => {
    await client.command(
      'create table ended (n UInt64) engine = MergeTree order by n settings non_replicated_deduplication_window = 100',
    )
    const load = (beforeEnd?: () => Promise<void>) =>
      client.insertNative('ended', [numbersBlock(1000)], 'p', undefined, beforeEnd)
    const refused = load(async () => {
      // All of the block has arrived.
      await Bun.sleep(100)
      throw new Error('another owner has taken over')
    })
    expect(await failureOf(refused)).toMatchObject({ cause: { message: 'another owner has taken over' } })
    expect(await client.query('select count() as n from ended')).toEqual([{ n: 0 }])
    await load()
    expect(await client.query('select count() as n from ended')).toEqual([{ n: 1000 }])
  })

  test('a load of blocks from several versions fills each table with the columns it has', async () => {
    const settings = 'settings non_replicated_deduplication_window = 100'
    await client.command(`create table wide (n UInt64, m Nullable(UInt64)) engine = MergeTree order by n ${settings}`)
    await client.command(`create table narrow (m UInt64) engine = MergeTree order by m ${settings}`)
    const both = Buffer.concat([blockHead(2, 3), numbersColumn('n', 3), numbersColumn('m', 3)])
    for (let repeat = 0; repeat < 2; repeat++) {
      for (const table of ['wide', 'narrow']) await client.insertNative(table, [numbersBlock(2), both], 'versions')
    }
    expect(await client.query('select n, m from wide order by n, m')).toEqual([
      { n: 0, m: 0 },
      { n: 0, m: null },
      { n: 1, m: 1 },
      { n: 1, m: null },
      { n: 2, m: 2 },
    ])
    expect(await client.query('select m from narrow order by m')).toEqual([0, 0, 0, 1, 2].map((m) => ({ m })))
  })

  test('a client that disconnects ends its query', async () => {
    const abort = new AbortController()
    const sql = 'select sum(sipHash64(number)) from numbers(100000000000)'
    const query = client.query(sql, { signal: abort.signal })
    const running = () => runningStatements(client, 'select sum(sipHash64(number)) from numbers(1%')
    await eventually(async () => (await running()) === 1)
    abort.abort(new Error('gone'))
    expect(await failureOf(query)).toMatchObject({ message: 'gone' })
    await eventually(async () => (await running()) === 0)
  })

  test('a read with the settings of an earlier one ends with its client, and later ones are not affected', async () => {
    const settings = { workload: TENANT_WORKLOAD, readonly: 1, max_execution_time: 60 }
    const text = async () => expect(await client.query('select 1 as n', { settings })).toEqual([{ n: 1 }])
    await text()
    const abort = new AbortController()
    const sql = 'select sum(sipHash64(number)) from numbers(200000000000)'
    const query = failureOf(client.query(sql, { settings, signal: abort.signal }))
    const running = () => runningStatements(client, 'select sum(sipHash64(number)) from numbers(2%')
    await eventually(async () => (await running()) === 1)
    await text()
    abort.abort(new Error('gone'))
    expect(await query).toMatchObject({ message: 'gone' })
    await eventually(async () => (await running()) === 0)
    for (let i = 0; i < 5; i++) await text()
  })

  test('a call that is cancelled before it is sent does not interrupt a later one', async () => {
    await client.query('select 1')
    const abort = new AbortController()
    const cancelled = failureOf(client.query('select 1', { signal: abort.signal }))
    abort.abort(new Error('gone'))
    expect(await cancelled).toMatchObject({ message: 'gone' })
    // Longer than an idle connection is kept.
    expect(await client.query('select sleep(3) as n')).toEqual([{ n: 0 }])
  })

  test('a call past its deadline fails as unavailable', async () => {
    expect(await failureOf(client.query('select sleep(2)', { timeoutMs: 100 }))).toBeInstanceOf(ColumnarUnavailable)
  })

  test('slow queries do not block short ones', async () => {
    const abort = new AbortController()
    const slow = Array.from({ length: 3 }, () =>
      failureOf(client.query('select sum(sipHash64(number)) from numbers(100000000000)', { signal: abort.signal })),
    )
    const short = async () => {
      for (let i = 0; i < 10; i++) await client.query('select 1')
      return 'short'
    }
    expect(await Promise.race([short(), ...slow])).toBe('short')
    abort.abort(new Error('enough'))
    await Promise.all(slow)
  })

  test('a second migration changes nothing, and a database of a newer version is rejected', async () => {
    await migrateClickHouse(client, log)
    await client.command("insert into schema_migrations values ('9999_future.sql', now())")
    expect(String(await failureOf(migrateClickHouse(client, log)))).toContain('9999_future.sql')
    await client.command(
      "alter table schema_migrations delete where name = '9999_future.sql' settings mutations_sync = 1",
    )
  })

  test('a database of an unreleased version is rejected and not changed', async () => {
    const old = createColumnarClient(backend, `${DATABASE}_old`)
    const directory = await temporaryDirectory()
    await writeFile(
      join(directory, '0001_init.sql'),
      'create table if not exists {database}.events (n Int8) engine = MergeTree order by n;',
    )
    await migrateClickHouse(old, log, directory)
    expect(await failureOf(migrateClickHouse(old, log))).toMatchObject({
      name: 'StartError',
      message: `the ClickHouse database ${DATABASE}_old was written by an earlier, unreleased version: name an empty database. Nothing was changed.`,
    })
    const tables = await old.query<{ name: string }>(
      'select name from system.tables where database = currentDatabase() order by name',
    )
    expect(tables.map(({ name }) => name)).toEqual(['events', 'schema_migrations'])
    await old.command(`drop database ${DATABASE}_old`, { database: 'default' })
  })

  test('events have one of the four levels', async () => {
    const insert = (level: string) =>
      client.command("insert into events (event_id, level) select 'x', {level:String}", { params: { level } })
    await insert('error')
    expect(String(await failureOf(insert('fatal')))).toContain('fatal')
    await client.command('truncate table events')
  })
}

/** Nice values of the threads of a process whose names match. */
function niceOf(pid: number, name: RegExp): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      const [, comm, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))!
      return name.test(comm) ? [Number(rest.split(' ')[16])] : []
    } catch {
      // The thread has ended in the meantime.
      return []
    }
  })
}

/** A `Native` block of one column `n UInt64`: 0, 1, … */
function numbersBlock(rows: number): Buffer {
  return Buffer.concat([blockHead(1, rows), numbersColumn('n', rows)])
}

function numbersColumn(name: string, rows: number): Buffer {
  const numbers = new BigUint64Array(rows).map((_, i) => BigInt(i))
  return Buffer.concat([columnHead(name, 'UInt64'), Buffer.from(numbers.buffer)])
}

function post(
  backend: ColumnarBackend,
  body: string | Uint8Array<ArrayBuffer>,
  search: Record<string, string> = {},
  headers: Record<string, string> = {},
) {
  return fetch(`${backend.url}/?${new URLSearchParams(search)}`, {
    method: 'POST',
    body,
    headers: { Authorization: `Basic ${btoa(`${backend.username}:${backend.password}`)}`, ...headers },
  })
}
