import { beforeAll, describe, expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { createApi } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, newReporter, newTenant, numbered, numbersOf, type Tenant } from '../support/feeds.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { inParallel } from '../support/in-parallel.ts'
import { type ModelServer, startModelServer, type Turn } from '../support/model-server.ts'
import { freshDatabase } from '../support/postgres.ts'
import { seededRandom } from '../support/random.ts'
import { OPERATOR_TOKEN, spawnService, startTestService, type TestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** `DELETE /api/v1/workspaces/:workspace_id` erases a workspace from every store without affecting other workspaces. */

const AS_OPERATOR = { key: OPERATOR_TOKEN }
const COLUMNAR_TABLES = [
  'events',
  'runs',
  'tasks',
  'run_changes',
  'task_changes',
  'scores',
  'score_changes',
  'pauses',
  'agent_versions',
  'deliveries',
  'alert_states',
]
/** Emptied within moments. */
const FLEETING = ['outbox', 'run_usage_changes']

let service: TestService
let stores: Stores
let model: ModelServer
/** Configuration with which a service runs hosted agents. */
let hosting: { readonly OPENAI_BASE_URL: string }

beforeAll(async () => {
  const asking: Turn = { toolCalls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }
  const turns: Record<string, Turn> = { ask: asking, hang: { hangs: true }, slow: { delayMs: 1_000 } }
  model = startModelServer(({ body }) => turns[`${body.messages.at(-1)!.content}`] ?? {})
  hosting = { OPENAI_BASE_URL: model.url }
  service = await startTestService(hosting)
  stores = storesOf(service)
})

interface Stores {
  readonly sql: Sql
  readonly columnar: ColumnarClient
  readonly journalDir: string
}

function storesOf({
  databaseUrl,
  clickhouseUrl,
  dataDir,
}: Pick<TestService, 'databaseUrl' | 'clickhouseUrl' | 'dataDir'>): Stores {
  const sql = connectPostgres(databaseUrl, { log: createLog('error'), max: 2 })
  const columnar = createColumnarClient(remoteClickHouse(clickhouseUrl))
  atEnd(() => sql.end({ timeout: 1 }))
  return { sql, columnar, journalDir: join(dataDir, 'journal') }
}

const erase = ({ api }: Pick<TestService, 'api'>, id: string) =>
  api('DELETE', `/api/v1/workspaces/${id}`, undefined, AS_OPERATOR)

/** The tables of Postgres and ClickHouse that have a row of the workspace. */
async function traces({ sql, columnar }: Stores, workspaceId: string): Promise<string[]> {
  const tables = await sql<{ table: string }[]>`
    select table_name as table from information_schema.columns
    where table_schema = 'public' and column_name = 'workspace_id' and table_name <> 'erasures'`
  const found: string[] = []
  for (const { table } of tables) {
    const rows = await sql`select 1 from ${sql(table)} where workspace_id = ${workspaceId}`
    if (rows.length > 0) found.push(table)
  }
  for (const table of COLUMNAR_TABLES) {
    const [{ rows }] = await columnar.query<{ rows: number }>(
      `select count() as rows from ${table} where workspace_id = {id:UUID}`,
      { params: { id: workspaceId } },
    )
    if (rows > 0) found.push(`clickhouse ${table}`)
  }
  return found.sort()
}

function filesWith(journalDir: string, text: string): string[] {
  return fs.readdirSync(journalDir).filter((name) => fs.readFileSync(join(journalDir, name)).includes(text))
}

/** Whether every live process has completed the erasures of earlier tests in its journal. */
async function hasErasedEverywhere(): Promise<boolean> {
  const left = await stores.sql`
    select 1 from instances i, erasures e
    where e.state_gone_at is not null
      and (i.epoch is null or not i.epoch = any(e.released_epochs))`
  return left.length === 0
}

/**
 * Adds a row of the workspace to every table, with two hosted runs: one completed, one waiting for input.
 * @returns a string that the rows contain
 */
async function fill(tenant: Tenant, runs = 3): Promise<string> {
  const mark = `mark-${crypto.randomUUID()}`
  const agent = await newReporter(tenant.api)
  await inParallel(Array.from({ length: runs }).keys().toArray(), async (i) => {
    const runId = await agent.start({ input: { mark } })
    await agent.task(runId, { name: mark, status: 'running' })
    await agent.events(runId, [
      { type: 'a', payload: { mark } },
      { type: 'llm.call', payload: { mark, 'gen_ai.usage.input_tokens': 1 } },
    ])
    if (i % 2 === 0) await agent.end(runId)
  })
  const hosted = await newHostedAgent(tenant, { allow_input_requests: true })
  await hosted.invoke({ start_session: true, input: { message: mark } })
  const { status } = await hosted.invoke({ start_session: true, input: { message: 'ask' } })
  if (status !== 202) throw new Error('the run does not wait')
  await tenant.api('PATCH', `/api/v1/agents/${hosted.agentId}`, { description: mark })
  await tenant.api('PATCH', `/api/v1/agents/${hosted.agentId}`, { description: null })
  await tenant.api('POST', '/api/v1/query', { query: 'SELECT count() FROM agents' })
  await tenant.api('PUT', '/api/v1/secrets/MARK', { value: mark })
  await tenant.api('POST', '/api/v1/feed-tokens', {})
  await tenant.api('POST', '/api/v1/queries', { name: mark, query: 'select 1' })
  await tenant.api('POST', '/api/v1/boards', { name: mark })
  await tenant.api('PUT', `/api/v1/views/${mark}`, { query: `q=${mark}` })
  const { data: key } = await tenant.api(
    'POST',
    '/api/v1/keys',
    { name: mark },
    { headers: { 'idempotency-key': mark } },
  )
  await tenant.api('POST', `/api/v1/keys/${key.key_id}/rotate`, {})
  return mark
}

/**
 * Reports events with increasing numbers until it is stopped or a call is rejected.
 * `stop` resolves with their count; `stop` and `rejected` reject with the error.
 */
function reportOn(tenant: Tenant): { stop: () => Promise<number>; rejected: Promise<unknown> } {
  let isStopping = false
  const work = (async () => {
    const agent = await newReporter(tenant.api)
    let n = 0
    while (!isStopping) {
      const runId = await agent.start()
      await Promise.all([agent.task(runId, { status: 'pending' }), agent.events(runId, numbered(5, n))])
      n += 5
      await agent.end(runId)
    }
    return n
  })()
  // Marks the promise as handled: the rejection may come before the test awaits it.
  work.catch(() => {})
  const stop = () => {
    isStopping = true
    return work
  }
  return { stop, rejected: work }
}

describe('erasing a workspace', () => {
  test('leaves nothing in any store and does not affect calls, feeds and rows of another workspace', async () => {
    const [doomed, other] = [await newTenant(service), await newTenant(service)]
    const mark = await fill(doomed)
    await service.api('PATCH', `/api/v1/workspaces/${doomed.workspaceId}`, { retention_days: 9 }, AS_OPERATOR)
    await stores.sql`
      with person as (
        insert into people (person_id, workspace_id, issuer, subject, role, created_at, signed_in_at)
        values (gen_random_uuid(), ${doomed.workspaceId}, 'i', 's', 'viewer', now(), now()) returning person_id
      )
      insert into sign_ins (sign_in_id, person_id, workspace_id, hash, workspace_ids, idle_seconds, created_at, last_used_at, expires_at)
      select gen_random_uuid(), person_id, ${doomed.workspaceId}, '', '{}', 60, now(), now(), now() from person`
    await stores.sql`
      update api_keys set created_by = (select person_id from people where workspace_id = ${doomed.workspaceId})
      where workspace_id = ${doomed.workspaceId}`
    await stores.sql`
      with webhook as (
        insert into webhooks (webhook_id, workspace_id, url, format, signing, ordering, secret, key_id, created_at, updated_at, created_cursor, epoch, position)
        values (gen_random_uuid(), ${doomed.workspaceId}, '', 'standard', 'v1', 'run', '', '', now(), now(), '', '', 0) returning webhook_id
      )
      insert into webhook_retries (webhook_id, workspace_id, seq, delivery_id, type, body, attempt, created_at)
      select webhook_id, ${doomed.workspaceId}, 1, '', '', '', 1, now() from webhook`
    await stores.sql`
      insert into alerts (alert_id, workspace_id, name, query_id, params, every_seconds, by_columns, for_seconds, keep_firing_seconds,
        no_data, on_error, notify, is_enabled, states, shown_states, series_count, created_at, updated_at)
      select gen_random_uuid(), workspace_id, '', query_id, '{}', 60, '{}', 0, 0, 'ok', 'last', '{}', false, '{}', '[]', 0,
        now(), now()
      from saved_queries where workspace_id = ${doomed.workspaceId}`
    await stores.sql`
      insert into outbox_set_aside (outbox_id, entry_id, workspace_id, kind, body)
      values (1, gen_random_uuid(), ${doomed.workspaceId}, 'run', '{}')`
    await stores.sql`
      insert into recounts (workspace_id, recount_id, requested_at) values (${doomed.workspaceId}, gen_random_uuid(), now())`
    await stores.sql`
      insert into run_erasures (erasure_id, run_id, workspace_id, partition, requested_at, done_at)
      values (gen_random_uuid(), gen_random_uuid(), ${doomed.workspaceId}, 0, now(), now())`
    await stores.sql`insert into retention_floors (epoch, workspace_id, seq) values ('e', ${doomed.workspaceId}, 1)`
    for (const table of ['deliveries', 'alert_states', 'score_changes'])
      await stores.columnar.command(`insert into ${table} (workspace_id, seq) values ({id:UUID}, 1)`, {
        params: { id: doomed.workspaceId },
      })
    const watcher = await LiveSocket.open(other)
    await watcher.subscribe('all', { filter: { kind: 'event' } })
    const reporting = reportOn(other)
    await watcher.until(() => watcher.items('all').length > 20)
    const holding = await eventually(async () => {
      const found = await traces(stores, doomed.workspaceId)
      const wanted = [
        'task_changes',
        'score_changes',
        'scores',
        'pauses',
        'agent_versions',
        'deliveries',
        'alert_states',
      ]
      return wanted.every((table) => found.includes(`clickhouse ${table}`)) && found
    })
    // Every table with rows of a workspace.
    const [{ tables }] = await stores.sql<[{ tables: number }]>`
      select count(*) as tables from information_schema.columns
      where table_schema = 'public' and column_name = 'workspace_id' and table_name <> 'erasures'
        and table_name not in ${stores.sql(FLEETING)}`
    expect(holding.filter((table) => !table.startsWith('clickhouse') && !FLEETING.includes(table))).toHaveLength(tables)
    expect(filesWith(stores.journalDir, mark)).not.toEqual([])

    const answer = await erase(service, doomed.workspaceId)
    expect(answer.data).toEqual({
      workspace_id: doomed.workspaceId,
      status: 'erased',
      deleted: { events: 13, runs: 5, tasks: 3, agents: 2, keys: 5 },
    })
    expect(await traces(stores, doomed.workspaceId)).toEqual([])
    expect(filesWith(stores.journalDir, mark)).toEqual([])
    const kept = await stores.sql`select from idempotency_keys where idem_key = ${mark}`
    expect(kept).toHaveLength(0)

    const taken = watcher.items('all').length
    await watcher.until(() => watcher.items('all').length > taken + 20)
    const count = await reporting.stop()
    await watcher.until(() => watcher.items('all').length >= count)
    const numbers = Array.from({ length: count }, (_, n) => n)
    expect(numbersOf(watcher.items('all'))).toEqual(numbers)
    expect(watcher.messagesOf('gap')).toEqual([])
    const query = `select count() as events, uniqExact(toInt64(payload.n)) as numbers,
      (select count() from runs) as runs, (select count() from tasks) as tasks from events`
    const expected = [{ events: count, numbers: count, runs: count / 5, tasks: count / 5 }]
    await eventually(async () =>
      expect((await other.api('POST', '/api/v1/query', { query })).data.rows).toEqual(expected),
    )
    // Events that are no longer in the journal files are read from ClickHouse.
    const replay = await LiveSocket.open(other)
    await replay.subscribe('all', { filter: { kind: 'event' }, after: 0 })
    await replay.until(() => replay.items('all').length >= count)
    expect(numbersOf(replay.items('all'))).toEqual(numbers)
    await Promise.all([watcher.close(), replay.close()])
  })

  test('revokes its keys and ends its feeds immediately, and is idempotent', async () => {
    const doomed = await newTenant(service)
    const { rejected } = reportOn(doomed)
    const socket = await LiveSocket.open(doomed)
    await socket.subscribe('all')
    await socket.until(() => socket.items('all').length > 10)
    const erasing = Promise.all([erase(service, doomed.workspaceId), erase(service, doomed.workspaceId.toUpperCase())])
    expect((await socket.untilClosed()).code).toBe(4003)
    await expect(rejected).rejects.toThrow(/FORBIDDEN|UNAUTHENTICATED|NOT_FOUND|UNAVAILABLE/)
    const [{ data }, second] = await erasing
    expect(data).toMatchObject({ workspace_id: doomed.workspaceId, status: 'erased', deleted: { agents: 1, keys: 2 } })
    expect(data.deleted.events).toBeGreaterThan(0)
    expect(second.data).toEqual(data)
    expect((await erase(service, doomed.workspaceId)).data).toEqual(data)
    expect(await traces(stores, doomed.workspaceId)).toEqual([])
    expect((await doomed.api('GET', '/api/v1/runs')).error!.code).toBe('UNAUTHENTICATED')
    const edit = { status: 'active' }
    const { error } = await service.api('PATCH', `/api/v1/workspaces/${doomed.workspaceId}`, edit, AS_OPERATOR)
    expect(error!.code).toBe('NOT_FOUND')
  })

  test('a call authenticated before the erasure and still running stores nothing', async () => {
    const doomed = await newTenant(service)
    const agent = await newReporter(doomed.api)
    const run_id = await agent.start()
    const mark = `late-${crypto.randomUUID()}`
    const { sql } = stores
    const [row, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    // Another transaction holds its Idempotency-Key and finally rolls back.
    const holder = sql
      .begin(async (tx) => {
        await tx`
          insert into idempotency_keys (key_id, idem_key, request_hash, seed, owner, created_at)
          select key_id, ${mark}, '', gen_random_uuid(), gen_random_uuid(), now() from api_keys
          where workspace_id = ${doomed.workspaceId} and type = 'agent'`
        row.resolve()
        await over.promise
        throw new Error('given up')
      })
      .catch(() => {})
    await row.promise
    const call = { key: agent.agentKey, headers: { 'idempotency-key': mark } }
    const late = doomed.api('POST', '/api/ingest/v1/events', { run_id, events: [{ type: mark }] }, call)
    await eventually(async () => {
      const blocked = await sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      return blocked.length > 0
    })
    expect((await erase(service, doomed.workspaceId)).status).toBe(200)
    over.resolve()
    await holder
    // On a slow machine the call has waited for the other transaction to its limit of time.
    expect(['FORBIDDEN', 'UNAVAILABLE']).toContain((await late).error!.code)
    expect(filesWith(stores.journalDir, mark)).toEqual([])
  })

  test('aborts running hosted runs, which store nothing afterwards', async () => {
    const doomed = await newTenant(service)
    const hosted = await newHostedAgent(doomed)
    const [open, aborted] = [model.open, model.aborted]
    const calls = ['hang', 'slow'].map((message) => hosted.invoke({ start_session: true, input: { message } }))
    await eventually(() => model.open === open + 2)
    expect((await erase(service, doomed.workspaceId)).status).toBe(200)
    for (const { error } of await Promise.all(calls)) expect(error!.code).toBe('FORBIDDEN')
    await eventually(() => model.open === open && model.aborted > aborted)
    expect(await traces(stores, doomed.workspaceId)).toEqual([])
  })

  test('a workspace cannot be edited while it is being erased', async () => {
    const doomed = await newTenant(service)
    await stores.sql`update workspaces set is_erasing = true, status = 'suspended' where workspace_id = ${doomed.workspaceId}`
    for (const edit of [{ status: 'active' }, { name: 'b' }, { retention_days: 3 }]) {
      const path = `/api/v1/workspaces/${doomed.workspaceId}`
      expect((await service.api('PATCH', path, edit, AS_OPERATOR)).error!.code).toBe('CONFLICT')
    }
  })

  test('requires the operator token and an existing workspace', async () => {
    const { workspaceId, workspaceKey } = await newTenant(service)
    const codeOf = async (id: string, key: string | null) =>
      (await service.api('DELETE', `/api/v1/workspaces/${id}`, undefined, { key })).error!.code
    for (const key of [null, workspaceKey, 'x']) expect(await codeOf(workspaceId, key)).toBe('UNAUTHENTICATED')
    expect(await codeOf(crypto.randomUUID(), OPERATOR_TOKEN)).toBe('NOT_FOUND')
    expect(await codeOf('x', OPERATOR_TOKEN)).toBe('VALIDATION_ERROR')
  })

  test('every process that shares the stores erases its own journal', async () => {
    const { databaseUrl, clickhouseUrl } = service
    const second = await startTestService({ ...hosting, DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl })
    const doomed = await newTenant(service)
    const marks = [await fill(doomed), await fill({ ...doomed, api: createApi(second.url, doomed.workspaceKey) })]
    const journals = [service, second].map(({ dataDir }) => join(dataDir, 'journal'))
    const files = () => journals.flatMap((dir) => marks.flatMap((mark) => filesWith(dir, mark)))
    expect(files().length).toBeGreaterThanOrEqual(2)
    const { data } = await erase(service, doomed.workspaceId)
    expect(files()).toEqual([])
    expect(await traces(stores, doomed.workspaceId)).toEqual([])
    expect(data.deleted).toMatchObject({ runs: 10, tasks: 6, agents: 4 })
    expect((await erase(second, doomed.workspaceId)).data).toEqual(data)
    await second.stop()
  })
})

test('erasing completes only after every live process has erased its journal', async () => {
  const doomed = await newTenant(service)
  const { sql } = stores
  const instanceId = crypto.randomUUID()
  await sql`
    insert into instances (instance_id, started_at, seen_at, beats, lease_ms, applied)
    values (${instanceId}, now(), now(), 1, 60_000, ${Number.MAX_SAFE_INTEGER})`
  const erasing = erase(service, doomed.workspaceId)
  const state = async () => {
    const [row] = await sql`select released_epochs, erased_at from erasures where workspace_id = ${doomed.workspaceId}`
    return row
  }
  await eventually(async () => (await state())?.released_epochs.length === 1)
  await sql`update instances set epoch = 'its journal' where instance_id = ${instanceId}`
  expect(await traces(stores, doomed.workspaceId)).toEqual(['workspaces'])
  expect((await state())!.erased_at).toBeNull()
  await sql`update erasures set released_epochs = array_append(released_epochs, 'its journal') where workspace_id = ${doomed.workspaceId}`
  expect((await erasing).status).toBe(200)
  await sql`delete from instances where instance_id = ${instanceId}`
})

test('a run that another process deletes is not found while this one waits for a store to delete others', async () => {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const [stuck, gone] = [await agent.start(), await agent.start()]
  for (const run_id of [stuck, gone]) await agent.end(run_id)
  const isFound = async () => (await tenant.api('GET', `/api/v1/runs/${gone}`)).status === 200
  expect(await isFound()).toBe(true)
  const { sql } = stores
  const erase = (run_id: string) => sql`
    insert into run_erasures (erasure_id, run_id, workspace_id, partition, requested_at)
    values (gen_random_uuid(), ${run_id}, ${tenant.workspaceId}, 0, now())`
  const [held, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holder = sql.begin(async (tx) => {
    await tx`select from runs where run_id = ${stuck} for update`
    held.resolve()
    await over.promise
  })
  await held.promise
  await erase(stuck)
  await eventually(async () => {
    const blocked = await sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    return blocked.length > 0
  })
  await erase(gone)
  // Sooner than the statement that waits gives up.
  await eventually(async () => !(await isFound()), { timeoutMs: 7_000 })
  over.resolve()
  await holder
})

describe('startup after erasing', () => {
  test('erases the journal of a process that was down', async () => {
    const { databaseUrl, clickhouseUrl } = service
    const env = { ...hosting, DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl }
    const away = await startTestService(env)
    // A new process also applies earlier erasures, which empties its journal.
    await eventually(hasErasedEverywhere)
    const doomed = await newTenant(service)
    const mark = await fill({ ...doomed, api: createApi(away.url, doomed.workspaceKey) })
    await away.stop()
    expect((await erase(service, doomed.workspaceId)).status).toBe(200)
    const journalDir = join(away.dataDir, 'journal')
    expect(filesWith(journalDir, mark)).not.toEqual([])
    const back = await startTestService({ ...env, DATA_DIR: away.dataDir })
    await eventually(() => filesWith(journalDir, mark).length === 0)
    expect(await traces(stores, doomed.workspaceId)).toEqual([])
    await back.stop()
  })

  test('deletes a run from the journal of a process that was down', async () => {
    const { databaseUrl, clickhouseUrl } = service
    const env = { ...hosting, DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl }
    const away = await startTestService(env)
    await eventually(hasErasedEverywhere)
    const tenant = await newTenant(service)
    const mark = `mark-${crypto.randomUUID()}`
    const agent = await newReporter(createApi(away.url, tenant.workspaceKey))
    const runId = await agent.start()
    await agent.events(runId, [{ type: 'a', payload: { mark } }])
    await agent.end(runId)
    await away.stop()
    const { data } = await tenant.api('DELETE', `/api/v1/runs/${runId}`)
    const path = `/api/v1/erasures/${data.erasure_id}`
    await eventually(async () => (await tenant.api('GET', path)).data.status === 'done')
    const journalDir = join(away.dataDir, 'journal')
    expect(filesWith(journalDir, mark)).not.toEqual([])
    const back = await startTestService({ ...env, DATA_DIR: away.dataDir })
    await eventually(() => filesWith(journalDir, mark).length === 0)
    await eventually(async () => (await tenant.api('GET', path)).data.status === 'done')
    await back.stop()
  })

  test('creates workspace default again if it was the last one, without restoring the old key', async () => {
    const first = await startTestService()
    const { data } = await first.api('GET', '/api/v1/workspaces', undefined, AS_OPERATOR)
    const [{ workspace_id: id }] = data.items
    const agent = await newReporter(first.api)
    await agent.events(await agent.start(), [{ type: 'a' }])
    expect((await erase(first, id)).data.deleted).toMatchObject({ events: 1, runs: 1, keys: 2 })
    await first.stop()

    const { databaseUrl: DATABASE_URL, clickhouseUrl: CLICKHOUSE_URL, dataDir: DATA_DIR } = first
    const second = await startTestService({ DATABASE_URL, CLICKHOUSE_URL, DATA_DIR })
    const stateOf = async (api: TestService['api'], key: string) =>
      (await api('GET', '/api/v1/runs', undefined, { key })).status
    expect(await stateOf(second.api, first.workspaceKey)).toBe(401)
    expect(await stateOf(second.api, second.workspaceKey)).toBe(200)
    const { items } = (await second.api('GET', '/api/v1/workspaces', undefined, AS_OPERATOR)).data
    expect(items.map((item: { name: string }) => item.name)).toEqual(['default'])
    expect(items[0].workspace_id).not.toBe(id)
    await second.stop()
  })
})

test('a retry after a kill in the middle finishes the erasure and counts deletions once', async () => {
  const random = seededRandom('erase')
  const [postgres, clickhouse] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  const dataDir = await temporaryDirectory()
  const env = { ...hosting, DATABASE_URL: postgres.url, CLICKHOUSE_URL: clickhouse.url, DATA_DIR: dataDir }
  const own = { sql: postgres.sql, columnar: clickhouse.client, journalDir: join(dataDir, 'journal') }
  let spawned = await spawnService(env)
  for (let round = 0; round < 2; round++) {
    const doomed = await newTenant(spawned)
    const mark = await fill(doomed, 120)
    const other = await newReporter((await newTenant(spawned)).api)
    await other.events(await other.start(), numbered(10))
    const erasing = erase(spawned, doomed.workspaceId).catch(() => undefined)
    await Bun.sleep(random.int(0, 400))
    spawned.kill()
    await erasing
    await spawned.exited
    spawned = await spawnService({ ...env, BOOTSTRAP_WORKSPACE_KEY: spawned.workspaceKey })
    const { data } = await erase(spawned, doomed.workspaceId)
    expect(data.deleted).toEqual({ events: 247, runs: 122, tasks: 120, agents: 2, keys: 5 })
    expect(await traces(own, doomed.workspaceId)).toEqual([])
    expect(filesWith(own.journalDir, mark)).toEqual([])
  }
  const [{ rows }] = await own.columnar.query<{ rows: number }>('select count() as rows from events')
  expect(rows).toBe(20)
  spawned.kill('SIGTERM')
  await spawned.exited
})
