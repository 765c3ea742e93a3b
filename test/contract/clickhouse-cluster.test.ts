import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { onCluster } from '../../src/stores/clickhouse/cluster.ts'
import { migrateClickHouse } from '../../src/stores/clickhouse/migrate.ts'
import { withMigrationLock } from '../../src/stores/postgres/migrate.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { emptyDatabase } from '../support/postgres.ts'
import { runProgram } from '../support/processes.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/**
 * As much of a ClickHouse cluster as the embedded engine can run: it parses every statement, and creates the replicated
 * tables with ClickHouse's own in-memory Keeper. Without a server its replicas stay read-only, and ON CLUSTER is refused.
 */

const log = createLog('silent')
const MIGRATIONS = join(import.meta.dir, '..', '..', 'sql', 'clickhouse')
const ADDON = join(import.meta.dir, '..', '..', 'src', 'stores', 'clickhouse', 'engine', 'addon.ts')
const WITH_KEEPER = `<clickhouse>
  <zookeeper><implementation>testkeeper</implementation></zookeeper>
  <macros><shard>1</shard><replica>a</replica></macros>
</clickhouse>`

const statements = readdirSync(MIGRATIONS)
  .sort()
  .flatMap((name) => readFileSync(join(MIGRATIONS, name), 'utf8').split(/;[ \t]*(?:\n|$)/))
  .filter((text) => /^create/m.test(text))
  .map((text) => onCluster(text.replaceAll('{database}', 'ars').trim(), 'main'))

test('the engine parses every statement of a cluster', async () => {
  const { client } = await freshColumnarDatabase()
  expect(statements).toHaveLength(18)
  for (const sql of statements) {
    const [{ text }] = await client.query<{ text: string }>('select formatQuery({sql:String}) as text', {
      params: { sql },
    })
    expect(text).toContain('ON CLUSTER main')
  }
})

test('the engine creates every table as a replica, with its definition and settings', async () => {
  const directory = await temporaryDirectory()
  const configFile = join(directory, 'server.xml')
  await writeFile(configFile, WITH_KEEPER)
  const created = statements.map((sql) => sql.replace(" on cluster 'main'", ''))
  // A process of its own, because an engine ends with its process.
  const script = `
    const { loadAddon } = await import(${JSON.stringify(ADDON)})
    const { native, connect } = loadAddon(${JSON.stringify({ directory: join(directory, 'data'), configFile })})
    const connection = connect({})
    const run = (sql) => native.QueryWithConnection(connection, sql, 'JSON')
    run('create database ars')
    for (const sql of ${JSON.stringify(created)}) run(sql)
    console.log(run("select table, zookeeper_path as path, replica_name as replica from system.replicas order by table"))
    console.log('---')
    console.log(run("select name, engine_full from system.tables where database = 'ars' and engine like '%MergeTree' order by name"))
    process.exit(0)`
  const { code, stdout, stderr } = await runProgram([process.execPath, '-e', script])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [replicas = '', tables = ''] = stdout.split('---')
  const names = [
    'agent_versions',
    'alert_states',
    'deliveries',
    'events',
    'gaps',
    'pauses',
    'run_changes',
    'runs',
    'score_changes',
    'scores',
    'store_marks',
    'task_changes',
    'tasks',
  ]
  expect(JSON.parse(replicas).data).toEqual(
    names.map((table) => ({ table, path: `/clickhouse/tables/1/ars/${table}`, replica: 'a' })),
  )
  // Macros stay in the definition, so that it fits any server.
  const engines: { name: string; engine_full: string }[] = JSON.parse(tables).data
  for (const { name, engine_full } of engines) {
    expect(engine_full).toContain(`MergeTree('/clickhouse/tables/{shard}/ars/${name}', '{replica}'`)
    const isLoaded = name !== 'gaps' && name !== 'store_marks'
    expect(engine_full.includes('replicated_deduplication_window = 10000')).toBe(isLoaded)
  }
})

test('a single server that has tables is not turned into a cluster', async () => {
  const { backend, client } = await freshColumnarDatabase()
  const cluster = createColumnarClient({ ...backend, cluster: 'main' }, client.database)
  await expect(migrateClickHouse(cluster, log)).rejects.toThrow('CLICKHOUSE_CLUSTER is set, but table')
  await migrateClickHouse(client, log)
})

test('processes that start at the same time migrate one after the other', async () => {
  const { url } = await emptyDatabase()
  let running = 0
  const most: number[] = []
  const work = async () => {
    most.push(++running)
    await Bun.sleep(5)
    running--
  }
  await Promise.all(Array.from({ length: 4 }, () => withMigrationLock(url, log, work)))
  expect(most).toEqual([1, 1, 1, 1])
  // A failed one releases the lock.
  const failing = withMigrationLock(url, log, async () => Promise.reject(new Error('no disk')))
  await expect(failing).rejects.toThrow('no disk')
  await withMigrationLock(url, log, work)
})
