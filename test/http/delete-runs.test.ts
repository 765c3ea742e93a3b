import { beforeAll, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import type { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import {
  LiveSocket,
  newReporter,
  newTenant,
  numbered,
  numbersOf,
  type Reporter,
  type Tenant,
} from '../support/feeds.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { placesOf } from '../support/run-places.ts'
import { OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'
import { createWebhook, startReceiver } from '../support/webhooks.ts'

/** `DELETE /api/v1/runs/:run_id` deletes a run from every store, and nothing else. */

let service: TestService
let tenant: Tenant
let agent: Reporter

beforeAll(async () => {
  service = await startTestService({
    OPENAI_BASE_URL: startModelServer(() => ({ text: 'said' })).url,
    EGRESS_ALLOW: '127.0.0.1',
  })
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
})

const remove = (runId: string, { api }: { readonly api: Api } = tenant, key?: string) =>
  api('DELETE', `/api/v1/runs/${runId}`, undefined, key === undefined ? {} : { key })

function stores() {
  const sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  return sql
}

/** A run with something in every table, which has ended. */
async function filledRun(reporter: Reporter, { api }: Tenant, mark: string, run?: object): Promise<string> {
  const run_id = await reporter.start({ input: { mark }, tags: [mark], ...run })
  await reporter.task(run_id, { name: mark, status: 'running' })
  await reporter.events(run_id, [
    { type: 'a', payload: { mark } },
    { type: 'llm.call', payload: { mark, 'gen_ai.usage.input_tokens': 1 } },
  ])
  const score = { run_id, name: 'good', value: 1, comment: mark }
  await api('POST', '/api/ingest/v1/scores', { scores: [score] })
  await api('POST', '/api/v1/feed-tokens', { run_id })
  await reporter.end(run_id)
  return run_id
}

test('a deleted run is in no store; other runs stay, also one of another workspace with its id', async () => {
  const other = await newTenant(service)
  const foreign = await newReporter(other.api)
  const mark = `mark-${crypto.randomUUID()}`
  const runId = await filledRun(agent, tenant, mark)
  await filledRun(foreign, other, 'foreign', { run_id: runId })
  const kept = await agent.start()
  await agent.events(kept, numbered(5))
  const rowsOf = async ({ api }: Tenant) => {
    const query = `select (select count() from events where run_id = {run:UUID}) as events,
      (select count() from runs where run_id = {run:UUID}) as runs, (select count() from scores) as scores`
    return (await api('POST', '/api/v1/query', { query, params: { run: runId } })).data.rows[0]
  }
  const all = { events: 2, runs: 1, scores: 1 }
  await eventually(async () => Bun.deepEquals(await rowsOf(tenant), all) && Bun.deepEquals(await rowsOf(other), all))
  const before = ['events', 'run_changes', 'runs', 'score_changes', 'scores', 'task_changes', 'tasks']
  await eventually(async () =>
    expect(await placesOf(service, tenant.workspaceId, runId, mark)).toEqual(
      expect.arrayContaining([
        'feed_tokens',
        'journal',
        'runs',
        'tasks',
        ...before.map((table) => `clickhouse ${table}`),
      ]),
    ),
  )

  const { status, data } = await remove(runId.toUpperCase())
  expect(status).toBe(202)
  const begun = { status: 'running', requested_at: expect.any(String), done_at: null, runs: 1, scores: 0 }
  expect(data).toEqual({ erasure_id: expect.any(String), ...begun })
  for (const path of ['', '/events', '/tasks', '/scores', '/children'])
    expect((await tenant.api('GET', `/api/v1/runs/${runId}${path}`)).status).toBe(404)
  expect((await remove(runId)).data.erasure_id).toBe(data.erasure_id)
  const path = `/api/v1/erasures/${data.erasure_id}`
  const ended = await eventually(async () => {
    const erasure = (await tenant.api('GET', path)).data
    return erasure.status === 'done' && erasure
  })
  expect(ended).toEqual({ ...data, status: 'done', done_at: expect.any(String) })
  expect((await remove(runId)).data).toEqual(ended)
  expect((await other.api('GET', path)).status).toBe(404)

  expect(await placesOf(service, tenant.workspaceId, runId, mark)).toEqual([])
  expect(await rowsOf(tenant)).toEqual({ events: 0, runs: 0, scores: 0 })
  expect(await rowsOf(other)).toEqual(all)
  expect((await other.api('GET', `/api/v1/runs/${runId}`)).data.tags).toEqual(['foreign'])
  const replay = await LiveSocket.open(tenant)
  await replay.subscribe('all', { filter: { kind: 'event', agent_id: agent.agentId }, after: 0 })
  await replay.until(() => replay.items('all').length >= 5)
  expect(numbersOf(replay.items('all'))).toEqual([0, 1, 2, 3, 4])
  await replay.close()
})

test('a run that has not ended, keys of agents, other workspaces and unknown ids are refused', async () => {
  const run_id = await agent.start()
  const live = await remove(run_id)
  expect(live).toMatchObject({ status: 409, error: { code: 'CONFLICT', reason: 'run_live' } })
  await agent.end(run_id)
  expect(await remove(run_id, tenant, agent.agentKey)).toMatchObject({ status: 403 })
  expect(await remove(run_id, await newTenant(service))).toMatchObject({ status: 404 })
  expect(await remove(crypto.randomUUID())).toMatchObject({ status: 404 })
  expect(await remove('1')).toMatchObject({ status: 400 })
  expect((await tenant.api('GET', `/api/v1/runs/${run_id}`)).status).toBe(200)
  expect((await tenant.api('GET', `/api/v1/erasures/${crypto.randomUUID()}`)).status).toBe(404)
})

test('nothing can be reported for a deleted run, in any protocol, and its id cannot be used again', async () => {
  const trace = crypto.randomUUID().replaceAll('-', '')
  const exportTrace = async () => {
    const at = `${Date.now()}000000`
    const span = {
      traceId: trace,
      spanId: '00000000000000aa',
      name: 'root',
      startTimeUnixNano: at,
      endTimeUnixNano: at,
    }
    const body = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }
    return (await tenant.api('POST', '/otlp/v1/traces', body, { key: agent.agentKey })).text
  }
  const run_id = await agent.start()
  await agent.end(run_id)
  expect(await exportTrace()).not.toContain('rejected')
  const traced = await eventually(async () => {
    const { data } = await tenant.api('GET', `/api/v1/runs?external_run_id=${trace}`)
    return data.items[0]?.status === 'completed' && data.items[0].run_id
  })
  for (const id of [run_id, traced]) expect((await remove(id)).status).toBe(202)

  const as = { key: agent.agentKey }
  const start = await tenant.api('POST', '/api/ingest/v1/run/start', { agent_id: agent.agentId, run_id }, as)
  expect(start).toMatchObject({ status: 409, error: { reason: 'id_taken', param: 'run_id' } })
  const events = { run_id, events: [{ type: 'late' }] }
  expect((await tenant.api('POST', '/api/ingest/v1/events', events, as)).status).toBe(404)
  expect((await tenant.api('POST', '/api/ingest/v1/run/complete', { run_id }, as)).status).toBe(404)
  expect(
    (
      await tenant.api(
        'POST',
        '/api/ingest/v1/tasks',
        { run_id, task: { id: run_id, name: 't', status: 'pending' } },
        as,
      )
    ).status,
  ).toBe(404)
  expect(await exportTrace()).toContain('a run with this id was deleted')
  const { data } = await tenant.api('GET', `/api/v1/runs?external_run_id=${trace}`)
  expect(data.items).toEqual([])
})

test('the messages of a deleted hosted run leave its session, which goes on', async () => {
  const hosted = await newHostedAgent(tenant)
  const first = (await hosted.invoke({ start_session: true, input: { message: 'one' } })).data
  const second = (await hosted.invoke({ session_id: first.session_id, input: { message: 'two' } })).data
  expect((await remove(first.run_id)).status).toBe(202)
  const third = (await hosted.invoke({ session_id: first.session_id, input: { message: 'three' } })).data
  expect(third.status).toBe('completed')
  const { data } = await tenant.api('GET', `/api/v1/sessions/${first.session_id}/messages`)
  expect(data.items.map((message: { run_id: string }) => message.run_id).sort()).toEqual(
    [second, second, third, third].map(({ run_id }) => run_id).sort(),
  )
})

test('a repeat of the request that began a deleted hosted run does not begin it again', async () => {
  const hosted = await newHostedAgent(tenant)
  const sql = stores()
  for (const session of [{}, { start_session: true }]) {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const invoke = () => hosted.invoke({ input: { message: 'once' }, ...session }, { headers })
    const { run_id } = (await invoke()).data
    expect((await remove(run_id)).status).toBe(202)
    // As after a crash before the answer was stored.
    await sql`update idempotency_keys set status = null, response = null where idem_key = ${headers['idempotency-key']}`
    for (const _ of [1, 2])
      expect(await invoke()).toMatchObject({ status: 409, error: { code: 'CONFLICT', reason: 'id_taken' } })
    expect((await tenant.api('GET', `/api/v1/runs/${run_id}`)).status).toBe(404)
  }
  expect((await tenant.api('GET', `/api/v1/runs?agent_id=${hosted.agentId}`)).data.items).toEqual([])
})

test('a repeat of the request that started a deleted run does not start it again', async () => {
  const sql = stores()
  const key = crypto.randomUUID()
  const start = () =>
    tenant.api(
      'POST',
      '/api/ingest/v1/run/start',
      { agent_id: agent.agentId },
      { key: agent.agentKey, headers: { 'idempotency-key': key } },
    )
  const { run_id } = (await start()).data
  await agent.end(run_id)
  expect((await remove(run_id)).status).toBe(202)
  // As after a crash before the answer was stored.
  await sql`update idempotency_keys set status = null, response = null where idem_key = ${key}`
  for (const _ of [1, 2])
    expect(await start()).toMatchObject({ status: 409, error: { code: 'CONFLICT', reason: 'id_taken' } })
})

test('the part that a second agent has of a trace can be deleted alone, and does not come back with later spans', async () => {
  const second = await newReporter(tenant.api)
  const trace = crypto.randomUUID().replaceAll('-', '')
  const exportSpan = async (key: string, spanId: string) => {
    const at = `${Date.now()}000000`
    const times = { startTimeUnixNano: at, endTimeUnixNano: at }
    const span = { traceId: trace, spanId, parentSpanId: '00000000000000ff', name: 'step', ...times }
    const body = { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }
    return (await tenant.api('POST', '/otlp/v1/traces', body, { key })).text
  }
  expect(await exportSpan(agent.agentKey, '00000000000000a1')).not.toContain('rejected')
  expect(await exportSpan(second.agentKey, '00000000000000b1')).not.toContain('rejected')
  const { data } = await tenant.api('GET', `/api/v1/runs?external_run_id=${trace}&agent_id=${second.agentId}`)
  const [{ run_id: part }] = data.items
  await tenant.api('POST', `/api/v1/runs/${part}/cancel`, {})
  expect((await remove(part)).status).toBe(202)
  expect(await exportSpan(second.agentKey, '00000000000000b2')).toContain('a run with this id was deleted')
  expect(await exportSpan(agent.agentKey, '00000000000000a2')).not.toContain('rejected')
})

test('a change of the run that could not be loaded, and waits for an operator, is deleted with it', async () => {
  const [gone, kept] = [await agent.start(), await agent.start()]
  const sql = stores()
  for (const run_id of [gone, kept]) {
    const body = { workspace_id: tenant.workspaceId, run_id, input: `{"a":"\\u0000","run_id":"${gone}"}` }
    await sql`
      insert into outbox_set_aside (outbox_id, entry_id, workspace_id, kind, body)
      values (0, gen_random_uuid(), ${tenant.workspaceId}, 'run', ${JSON.stringify(body)}::text::json)`
    await agent.end(run_id)
  }
  expect((await remove(gone)).status).toBe(202)
  const left = await sql`select body::text as body from outbox_set_aside where workspace_id = ${tenant.workspaceId}`
  expect(left.map(({ body }) => JSON.parse(body).run_id)).toEqual([kept])
})

test('a run is not found as soon as its deletion is stored, although its rows are still there', async () => {
  const run_id = await agent.start()
  await agent.end(run_id)
  const sql = stores()
  // By a process that was killed before it deleted the run.
  await sql`
    insert into run_erasures (erasure_id, run_id, workspace_id, partition, requested_at, done_at)
    values (gen_random_uuid(), ${run_id}, ${tenant.workspaceId}, 0, now(), now())`
  await eventually(async () => (await tenant.api('GET', `/api/v1/runs/${run_id}`)).status === 404)
})

test('an attempt to send a webhook that fails after the run was deleted leaves nothing to retry', async () => {
  const answer = Promise.withResolvers<void>()
  const receiver = startReceiver(async () => {
    await answer.promise
    return new Response('not now', { status: 500 })
  })
  const own = await newTenant(service)
  const reporter = await newReporter(own.api)
  const mark = `mark-${crypto.randomUUID()}`
  const webhookId = await createWebhook(own, receiver, { filter: { type: 'watched' } })
  const run_id = await reporter.start()
  await reporter.events(run_id, [{ type: 'watched', payload: { mark } }])
  await reporter.end(run_id)
  await eventually(() => receiver.received.length === 1)
  expect((await remove(run_id, own)).status).toBe(202)
  answer.resolve()
  await eventually(async () => {
    const { data } = await own.api('GET', `/api/v1/webhooks/${webhookId}/deliveries`)
    return data.items[0]?.attempt === 1 && data.items[0]
  })
  expect(await placesOf(service, own.workspaceId, run_id, mark)).not.toContain('webhook_retries')
})

test('a task of a run that another process has just deleted is refused, and those reported with it are stored', async () => {
  const [gone, kept] = [await agent.start(), await agent.start()]
  const sql = stores()
  // As long as this process has not noticed.
  await sql`delete from run_usage_changes where run_id = ${gone}`
  await sql`delete from runs where run_id = ${gone}`
  const report = (run_id: string) => {
    const body = { run_id, task: { id: crypto.randomUUID(), name: 't', status: 'pending' } }
    return tenant.api('POST', '/api/ingest/v1/tasks', body, { key: agent.agentKey })
  }
  const answers = await Promise.all([kept, gone, kept, gone].map(report))
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 404])
  expect((await tenant.api('GET', `/api/v1/runs/${kept}/tasks`)).data.items).toHaveLength(2)
})

test('no statement deletes more tasks than it can in its time, of a run or of a workspace', async () => {
  const own = await newTenant(service)
  const reporter = await newReporter(own.api)
  const sql = stores()
  await sql`
    create function refuse_many() returns trigger language plpgsql as $$ begin
      if (select count(*) from gone) > 500 then raise 'too many tasks in one statement'; end if;
      return null;
    end $$`
  await sql`
    create trigger few_tasks after delete on tasks referencing old table as gone for each statement
    execute function refuse_many()`
  const runOf1200 = async () => {
    const run_id = await reporter.start()
    await sql`
      insert into tasks (run_id, task_id, workspace_id, agent_id, name, status, created_at, updated_at)
      select ${run_id}, gen_random_uuid(), ${own.workspaceId}, ${reporter.agentId}, 't', 'running', now(), now()
      from generate_series(1, 1200)`
    await reporter.end(run_id)
    return run_id
  }
  const left = () => sql`select from tasks where workspace_id = ${own.workspaceId}`
  const [deleted] = [await runOf1200(), await runOf1200()]
  expect((await remove(deleted, own)).status).toBe(202)
  expect(await left()).toHaveLength(1200)
  const { data } = await service.api('DELETE', `/api/v1/workspaces/${own.workspaceId}`, undefined, {
    key: OPERATOR_TOKEN,
  })
  expect(data).toMatchObject({ status: 'erased', deleted: { runs: 1, tasks: 1200 } })
  expect(await left()).toHaveLength(0)
})
