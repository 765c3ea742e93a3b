import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, ColumnarUnavailable, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { onCluster, refuseOtherTables } from '../../src/stores/clickhouse/cluster.ts'
import { migrateClickHouse } from '../../src/stores/clickhouse/migrate.ts'
import { failureOf } from '../support/failures.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** What the service sends to a ClickHouse cluster. A cluster itself is not available to the tests. */

const log = createLog('silent')
const MIGRATIONS = join(import.meta.dir, '..', '..', 'sql', 'clickhouse')
const YEAR_SECONDS = 31_622_400
const OPTIONAL = ['materialize_projections_on_insert', 'materialize_projections_on_merge']

interface Sent {
  readonly sql: string
  readonly settings: Readonly<Record<string, string>>
}

/** A server that records statements and answers each with nothing, or with an error. */
function recordingServer(answer: (sent: Sent) => Response = () => new Response('')) {
  const sent: Sent[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { query, ...settings } = Object.fromEntries(new URL(request.url).searchParams)
      const isForm = request.headers.get('content-type')?.startsWith('multipart/')
      const text = async () => (isForm ? `${(await request.formData()).get('query')}` : request.text())
      const each = { sql: query ?? (await text()), settings }
      sent.push(each)
      return answer(each)
    },
  })
  atEnd(() => server.stop(true))
  const clientOf = (cluster?: string) => {
    const client = createColumnarClient(remoteClickHouse(`http://127.0.0.1:${server.port}/ars`, cluster))
    atEnd(() => client.close())
    return client
  }
  return { sent, clientOf }
}

const isQuery = ({ settings }: Sent) => settings.default_format === 'JSON'
const noRows = (sent: Sent) => new Response(isQuery(sent) ? '{"data":[]}' : '')
/** A new server: nothing is stored, and it has every setting. */
const newServer = (sent: Sent) =>
  sent.sql.includes('system.merge_tree_settings')
    ? Response.json({ data: OPTIONAL.map((name) => ({ name })) })
    : noRows(sent)

/** All statements of a first start, in order. */
async function statementsOfFirstStart(cluster?: string, server = newServer): Promise<Sent[]> {
  const { sent, clientOf } = recordingServer(server)
  await migrateClickHouse(clientOf(cluster), log)
  return sent.filter((each) => !isQuery(each))
}

describe('migrations', () => {
  test('run on every server of the cluster, and create replicated tables that deduplicate', async () => {
    const sent = await statementsOfFirstStart('main')
    const texts = sent.map(({ sql }) => sql)
    const definitions = texts.flatMap((sql) => /^create .*/.exec(sql) ?? [])
    expect(definitions).toEqual([
      "create database if not exists ars on cluster 'main'",
      "create table if not exists ars.schema_migrations on cluster 'main' (name String, applied_at DateTime64(3, 'UTC'))",
      "create table if not exists ars.events on cluster 'main' (",
      "create table if not exists ars.run_changes on cluster 'main' (",
      "create table if not exists ars.task_changes on cluster 'main' (",
      "create table if not exists ars.score_changes on cluster 'main' (",
      "create table if not exists ars.deliveries on cluster 'main' (",
      "create table if not exists ars.runs on cluster 'main' (",
      "create table if not exists ars.tasks on cluster 'main' (",
      "create materialized view if not exists ars.task_changes_to_tasks on cluster 'main' to ars.tasks as",
      "create table if not exists ars.scores on cluster 'main' (",
      "create materialized view if not exists ars.score_changes_to_scores on cluster 'main' to ars.scores as",
      "create table if not exists ars.pauses on cluster 'main' (",
      "create materialized view if not exists ars.events_to_pauses on cluster 'main' to ars.pauses as",
      "create table if not exists ars.alert_states on cluster 'main' (",
      "create materialized view if not exists ars.events_to_alert_states on cluster 'main' to ars.alert_states as",
      "create table if not exists ars.agent_versions on cluster 'main' (",
      "create table if not exists ars.store_marks on cluster 'main' (",
      "create table if not exists ars.gaps on cluster 'main' (",
      "create database if not exists ars_scope on cluster 'main'",
    ])
    const engines = texts.flatMap((sql) => /^engine = .*/m.exec(sql) ?? [])
    expect(engines).toEqual([
      "engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/ars/schema_migrations', '{replica}')",
      "engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/ars/events', '{replica}')",
      "engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/ars/run_changes', '{replica}')",
      "engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/ars/task_changes', '{replica}')",
      "engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/ars/score_changes', '{replica}')",
      "engine = ReplicatedMergeTree('/clickhouse/tables/{shard}/ars/deliveries', '{replica}')",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/runs', '{replica}', seq)",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/tasks', '{replica}', seq)",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/scores', '{replica}', seq)",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/pauses', '{replica}', seq)",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/alert_states', '{replica}')",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/agent_versions', '{replica}', version_created_at)",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/store_marks', '{replica}', beat)",
      "engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/ars/gaps', '{replica}')",
    ])
    expect(texts.filter((sql) => sql.includes('non_replicated'))).toEqual([])
    expect(texts.filter((sql) => sql.includes('replicated_deduplication_window = 10000')).length).toBe(11)
    for (const { sql, settings } of sent)
      if (sql.startsWith('create')) expect(settings.distributed_ddl_output_mode).toBe('throw_only_active')
  })

  test('change nothing else: without these words the statements are those of a single server', async () => {
    const single = (await statementsOfFirstStart()).map(({ sql }) => withoutComments(sql))
    const cluster = (await statementsOfFirstStart('main')).map(({ sql }) =>
      withoutComments(sql)
        .replace(" on cluster 'main'", '')
        .replace(/Replicated(\w+)\('[^']*', '\{replica\}'(?:, (\w+))?\)/, (_, engine, version) =>
          version === undefined ? engine : `${engine}(${version})`,
        )
        .replace(
          `replicated_deduplication_window = 10000,\n  replicated_deduplication_window_seconds = ${YEAR_SECONDS}`,
          'non_replicated_deduplication_window = 10000',
        ),
    )
    expect(cluster).toEqual(single)
  })

  test('without a cluster each statement is sent as it is in its file', async () => {
    const text = readdirSync(MIGRATIONS)
      .sort()
      .map((name) => readFileSync(join(MIGRATIONS, name), 'utf8').replaceAll('{database}', 'ars'))
      .join('\n')
    const sent = await statementsOfFirstStart()
    expect(sent).toHaveLength(21)
    const own = /schema_migrations|^create database if not exists ars$/
    for (const { sql } of sent) if (!own.test(sql)) expect(text).toContain(sql)
    for (const { settings } of sent)
      expect(Object.keys(settings).filter((name) => /quorum|distributed/.test(name))).toEqual([])
  })

  test('a server that is too old for an optional setting gets the same tables without it', async () => {
    const events = async (server: typeof newServer) => {
      const sent = await statementsOfFirstStart(undefined, server)
      return sent.map(({ sql }) => sql).find((sql) => sql.includes('ars.events'))!
    }
    const [current, older] = [await events(newServer), await events(noRows)]
    const lines = current.split('\n')
    const optional = lines.filter((line) => OPTIONAL.some((name) => line.includes(name)))
    expect(optional).toHaveLength(OPTIONAL.length)
    expect(older.split('\n')).toEqual(lines.filter((line) => !optional.includes(line)))
  })

  test('later starts of a cluster run no statement on all servers', async () => {
    const names = readdirSync(MIGRATIONS).map((name) => ({ name, engine: 'ReplicatedMergeTree' }))
    names.sort((a, b) => a.name.localeCompare(b.name))
    const { sent, clientOf } = recordingServer(() => Response.json({ data: names }))
    await migrateClickHouse(clientOf('main'), log)
    expect(sent.length).toBeGreaterThan(0)
    for (const { sql } of sent) expect(sql).toMatch(/^\s*select /)
  })

  test('a kind of statement that no rule covers is refused', async () => {
    expect(() => onCluster('drop table ars.events', 'main')).toThrow('no rule')
    expect(() => onCluster('create table if not exists ars.x (n Int8) engine = Log', 'main')).toThrow('no rule')
    const directory = await temporaryDirectory()
    await Bun.write(join(directory, '0001_new.sql'), 'optimize table {database}.events;\n')
    const { clientOf } = recordingServer(noRows)
    expect(await failureOf(migrateClickHouse(clientOf('main'), log, directory))).toMatchObject({
      message: expect.stringContaining('optimize table ars.events'),
    })
  })
})

describe('inserts', () => {
  test('into a cluster wait for a majority of its replicas, loads and single rows alike', async () => {
    const { sent, clientOf } = recordingServer()
    const client = clientOf('{cluster}')
    await client.insertNative('events', [new Uint8Array(8)], 'token')
    await client.command('insert into gaps select 1')
    expect(sent.map(({ settings }) => settings)).toEqual([
      expect.objectContaining({
        insert_quorum: 'auto',
        insert_quorum_parallel: '1',
        insert_deduplication_token: 'token',
      }),
      expect.objectContaining({ insert_quorum: 'auto', insert_quorum_parallel: '1' }),
    ])
  })

  test('into a single server ask for no quorum', async () => {
    const { sent, clientOf } = recordingServer()
    await clientOf().insertNative('events', [new Uint8Array(8)], 'token')
    expect(sent[0]?.settings).not.toHaveProperty('insert_quorum')
  })

  test.each([
    [225, 'NO_ZOOKEEPER'],
    [285, 'TOO_FEW_LIVE_REPLICAS'],
    [286, 'UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE'],
    [319, 'UNKNOWN_STATUS_OF_INSERT'],
    [341, 'UNFINISHED'],
  ])('error %d (%s) of a replica that is down is worth a retry', async (code, type) => {
    const text = `Code: ${code}. DB::Exception: a replica is down. (${type})`
    const { clientOf } = recordingServer(() => new Response(text, { status: 500 }))
    const insert = clientOf('main').insertNative('events', [new Uint8Array(8)], 'token')
    expect(await failureOf(insert)).toBeInstanceOf(ColumnarUnavailable)
  })
})

describe('tables of another kind', () => {
  const withTables = (engine: string, cluster: string | undefined): ColumnarClient => {
    const { clientOf } = recordingServer(() => Response.json({ data: [{ name: 'events', engine }] }))
    return clientOf(cluster)
  }

  test('a cluster with tables that are not replicated is refused', async () => {
    expect(await failureOf(refuseOtherTables(withTables('MergeTree', 'main')))).toMatchObject({
      name: 'StartError',
      message:
        'CLICKHOUSE_CLUSTER is set, but table ars.events is not replicated (MergeTree): ' +
        'name a new database in CLICKHOUSE_URL, or unset CLICKHOUSE_CLUSTER',
    })
  })

  test('replicated tables without the name of their cluster are refused', async () => {
    expect(await failureOf(refuseOtherTables(withTables('ReplicatedMergeTree', undefined)))).toMatchObject({
      name: 'StartError',
      message: 'table ars.events is replicated: set CLICKHOUSE_CLUSTER to the name of its cluster',
    })
  })

  test('tables that fit, and those of a managed service, are accepted', async () => {
    await refuseOtherTables(withTables('MergeTree', undefined))
    await refuseOtherTables(withTables('ReplicatedMergeTree', 'main'))
    await refuseOtherTables(withTables('SharedMergeTree', undefined))
    await refuseOtherTables(withTables('SharedMergeTree', 'main'))
  })
})

function withoutComments(sql: string): string {
  return sql.replace(/^\s*--.*\n/gm, '').trim()
}
