import { beforeAll, describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { newAgent, pagesOf } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { LiveStream, newTenant } from '../support/feeds.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { attributesOf, randomHex, runsOf, sendExport, span, tracesOf } from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'

/** Sessions and users that runs name (docs/runs.md#sessions-and-users). */

interface Agent {
  readonly agentId: string
  readonly agentKey: string
}

let service: TestService
let agent: Agent
let other: Agent

beforeAll(async () => {
  const model = startModelServer(() => ({ text: 'Hello.' }))
  service = await startTestService({ OPENAI_BASE_URL: model.url })
  agent = await newAgent(service.api)
  other = await newAgent(service.api, { name: 'another' })
})

const unique = (name: string) => `${name} ${crypto.randomUUID().slice(0, 8)}`
const path = (session: string) => `/api/v1/sessions/${encodeURIComponent(session)}`
const get = async (where: string, key?: string) =>
  (await service.api('GET', where, undefined, key === undefined ? {} : { key })).data
const list = async (query: Record<string, string>, key?: string) =>
  (await get(`/api/v1/sessions?${new URLSearchParams(query)}`, key)).items.map(
    ({ session_id }: { session_id: string }) => session_id,
  )

/** @returns the id of a run that has ended, unless `how` is `running` */
async function run(body: object, how: 'completed' | 'failed' | 'running' = 'completed', by = agent): Promise<string> {
  const post = async (call: string, given: object) => {
    const answer = await service.api('POST', `/api/ingest/v1/run/${call}`, given, { key: by.agentKey })
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.data.run_id
  }
  const run_id = await post('start', { agent_id: by.agentId, ...body })
  const usage = { input_tokens: 10, output_tokens: 5, cost_usd: 0.25 }
  if (how === 'completed') await post('complete', { run_id, output: { text: `answer of ${run_id.slice(-4)}` }, usage })
  if (how === 'failed') await post('fail', { run_id, error_message: 'out of tea' })
  return run_id
}

describe('a session that runs name', () => {
  test('has the totals of its runs, its users and agents, and its first and last message', async () => {
    const session_id = unique('chat 1/2 ?#%.')
    const first = await run({ session_id, external_user_id: 'ada', input: { message: 'A pot\n of tea?', cup: 1 } })
    await run({ session_id, external_user_id: 'ada' }, 'failed')
    const last = await run({ session_id, external_user_id: 'eve' }, 'completed', other)
    const record = await get(path(session_id))
    expect(record).toEqual({
      session_id,
      kind: 'external',
      agent_id: other.agentId,
      external_user_id: 'eve',
      message_count: 0,
      active_run_id: null,
      status: 'completed',
      run_count: 3,
      is_partial: false,
      failed_count: 1,
      waiting_count: 0,
      usage: usageRecord(20, 10),
      cost_usd: 0.5,
      agent_ids: [agent.agentId, other.agentId].sort(),
      external_user_ids: ['ada', 'eve'],
      first_message: 'A pot of tea?',
      last_message: `answer of ${last.slice(-4)}`,
      last_run_id: last,
      created_at: (await get(`/api/v1/runs/${first}`)).created_at,
      updated_at: expect.any(String),
      last_activity_at: (await get(`/api/v1/runs/${last}`)).completed_at,
    })
    const { items } = await get(`/api/v1/runs?${new URLSearchParams({ session_id })}`)
    expect(items.map((each: { run_id: string }) => each.run_id)).toEqual([last, expect.any(String), first])
    expect((await get(`/api/v1/sessions?agent_id=${other.agentId}`)).items[0]).toEqual(record)
  })

  test('says why its newest run failed, or what it was asked while it runs', async () => {
    const session_id = unique('failing')
    await run({ session_id }, 'failed')
    expect(await get(path(session_id))).toMatchObject({
      status: 'failed',
      last_message: 'out of tea',
      first_message: null,
    })
    await run({ session_id, input: { question: 'Why?' } }, 'running')
    expect(await get(path(session_id))).toMatchObject({ status: 'running', last_message: 'Why?', failed_count: 1 })
  })

  test('an agent key sees the runs of its own agent', async () => {
    const session_id = unique('shared')
    await run({ session_id, external_user_id: session_id, input: { text: 'mine' } })
    await run({ session_id, external_user_id: session_id, input: { text: 'theirs' } }, 'completed', other)
    expect(await get(path(session_id), agent.agentKey)).toMatchObject({ run_count: 1, agent_ids: [agent.agentId] })
    expect(await list({ external_user_id: session_id }, other.agentKey)).toEqual([session_id])
    expect(await get(`/api/v1/users/${encodeURIComponent(session_id)}`, agent.agentKey)).toMatchObject({ run_count: 1 })
    const apart = unique('apart')
    await run({ session_id: apart }, 'completed', other)
    const answer = await service.api('GET', path(apart), undefined, { key: agent.agentKey })
    expect(`${answer.status} ${answer.error?.code}`).toBe('403 FORBIDDEN')
  })

  test('is not known in another workspace', async () => {
    const session_id = unique('secret')
    await run({ session_id, external_user_id: session_id })
    const tenant = await newTenant(service)
    const ask = (where: string) => service.api('GET', where, undefined, { key: tenant.workspaceKey })
    expect((await ask(path(session_id))).error?.code).toBe('NOT_FOUND')
    expect((await ask(`/api/v1/users/${encodeURIComponent(session_id)}`)).error?.code).toBe('NOT_FOUND')
    expect((await ask('/api/v1/sessions')).data.items).toEqual([])
  })
})

describe('the list of sessions', () => {
  test('has both kinds, the one with the newest run first, in pages, and filters', async () => {
    const user = unique('lister')
    const hosted = await newHostedAgent(service)
    const begun = await hosted.invoke({ start_session: true, external_user_id: user, input: { message: 'Hi' } })
    const names = [unique('a'), unique('b'), unique('c')] as const
    for (const session_id of [...names, names[0]]) await run({ session_id, external_user_id: user })
    const expected = [names[0], names[2], names[1], begun.data.session_id]
    expect(await list({ external_user_id: user })).toEqual(expected)
    expect((await list({})).slice(0, 4)).toEqual(expected)
    const pages = await pagesOf<{ session_id: string }>((cursor) =>
      service.api('GET', `/api/v1/sessions?limit=1&external_user_id=${encodeURIComponent(user)}${cursor}`),
    )
    expect(pages.flat().map(({ session_id }) => session_id)).toEqual(expected)
    expect(await list({ external_user_id: user, kind: 'hosted' })).toEqual([begun.data.session_id])
    expect(await list({ external_user_id: user, kind: 'external' })).toEqual([names[0], names[2], names[1]])
    expect(await list({ external_user_id: user, agent_id: hosted.agentId })).toEqual([begun.data.session_id])
    const { created_at } = await get(`/api/v1/runs/${begun.data.run_id}`)
    const after = new Date(Date.parse(created_at) + 1).toISOString()
    expect(await list({ external_user_id: user, to: after })).toEqual([begun.data.session_id])
    expect(await list({ external_user_id: user, from: after })).toEqual([names[0], names[2], names[1]])
    await service.api('DELETE', path(begun.data.session_id))
    expect(await list({ external_user_id: user, kind: 'hosted' })).toEqual([])
    expect((await service.api('GET', path(begun.data.session_id))).status).toBe(404)
  })
})

test('pages may be short behind a session with very many runs, of which only the newest are counted', async () => {
  const tenant = await newTenant(service)
  const { agentId, agentKey } = await newAgent(tenant.api)
  const body = { agent_id: agentId, session_id: 'older', external_user_id: 'ada' }
  await tenant.api('POST', '/api/ingest/v1/run/start', body, { key: agentKey })
  const other = await newAgent(tenant.api)
  const far = { agent_id: other.agentId, session_id: 'very long', external_user_id: 'eve' }
  await tenant.api('POST', '/api/ingest/v1/run/start', far, { key: other.agentKey })
  const sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1, statementTimeoutMs: 60_000 })
  await sql`
    insert into runs (run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, session_id,
      external_user_id, metadata, input, created_at)
    select gen_random_uuid(), ${tenant.workspaceId}, ${agentId}, 1, 'external', 'running', 'sdk', 'very long',
      'ada', '{}', '{}', now() + n * interval '1 ms'
    from generate_series(1, 20100) n`
  await sql.end()
  const pages = await pagesOf<{ readonly session_id: string }>((cursor) =>
    tenant.api('GET', `/api/v1/sessions?limit=2${cursor}`),
  )
  expect(pages.map((page) => page.map(({ session_id }) => session_id))).toEqual([['very long'], ['older']])
  const { data } = await tenant.api('GET', '/api/v1/sessions/very%20long')
  expect(data).toMatchObject({ run_count: 2_000, is_partial: true, status: 'running' })
  expect((await tenant.api('GET', '/api/v1/users/ada')).data).toMatchObject({ run_count: 10_000, is_partial: true })
  const listed = await tenant.api('GET', '/api/v1/sessions?limit=1')
  expect(listed.data.items).toMatchObject([{ session_id: 'very long', run_count: 200, is_partial: true }])
  // The agent's only run is older than those counted.
  const its = { session_id: 'very long', run_count: 1, is_partial: true, agent_ids: [other.agentId] }
  const ofOther = { key: other.agentKey }
  expect((await tenant.api('GET', '/api/v1/sessions/very%20long', undefined, ofOther)).data).toMatchObject(its)
  expect((await tenant.api('GET', '/api/v1/sessions', undefined, ofOther)).data.items).toMatchObject([its])
})

describe('a session that the service itself runs', () => {
  test('takes no runs of others: run/start is a CONFLICT, and spans that name it belong to none', async () => {
    const { data } = await (await newHostedAgent(service)).invoke({ start_session: true })
    for (const session_id of [data.session_id, data.session_id.toUpperCase()]) {
      const body = { agent_id: agent.agentId, session_id }
      const answer = await service.api('POST', '/api/ingest/v1/run/start', body, { key: agent.agentKey })
      expect(answer.error).toMatchObject({
        code: 'CONFLICT',
        message: 'session_id: the service itself runs this session; choose another id',
      })
    }
    const traceId = randomHex(16)
    const attributes = attributesOf({ 'session.id': data.session_id, 'user.id': 'ada' })
    await sendExport(service, 'traces', tracesOf([span({ traceId, attributes })]))
    expect((await runsOf(service, traceId))[0]).toMatchObject({ session_id: null, external_user_id: 'ada' })
  })
})

test('spans name the session and the user of their run', async () => {
  const [session_id, external_user_id] = [unique('trace'), unique('user')]
  const attributes = attributesOf({ 'session.id': session_id, 'user.id': external_user_id })
  await sendExport(service, 'traces', tracesOf([span({ attributes })]))
  expect(await get(path(session_id))).toMatchObject({ kind: 'external', run_count: 1, external_user_id })
  const { items } = await get(`/api/v1/runs?${new URLSearchParams({ external_user_id })}`)
  expect(items).toMatchObject([{ session_id, external_user_id }])
})

test('a user has the totals of the runs that name it', async () => {
  const user = unique('who/what?')
  await run({ external_user_id: user, session_id: unique('s') })
  await run({ external_user_id: user, session_id: unique('s') }, 'failed', other)
  const last = await run({ external_user_id: user }, 'running')
  const where = `/api/v1/users/${encodeURIComponent(user)}`
  expect(await get(where)).toEqual({
    external_user_id: user,
    run_count: 3,
    is_partial: false,
    session_count: 2,
    failed_count: 1,
    waiting_count: 0,
    usage: usageRecord(10, 5),
    cost_usd: 0.25,
    agent_ids: [agent.agentId, other.agentId].sort(),
    failure_rate: 0.5,
    first_seen_at: expect.any(String),
    last_seen_at: (await get(`/api/v1/runs/${last}`)).created_at,
  })
  expect((await service.api('GET', '/api/v1/users/nobody')).error?.code).toBe('NOT_FOUND')
})

test('feeds filter by the session of a run, and SQL has its session and user', async () => {
  const [session_id, external_user_id] = [unique("it's 1"), unique('Größe 📏')]
  const runId = await run({ session_id, external_user_id })
  await run({ session_id: unique('another') })
  const feed = await LiveStream.open(service, `/api/v1/stream?${new URLSearchParams({ session_id, after: '0' })}`)
  await feed.until(() => feed.items.length === 2)
  const last = await run({ session_id })
  await feed.until(() => feed.items.length === 4)
  expect(feed.items.map(({ run_id }) => run_id)).toEqual([runId, runId, last, last])
  expect(feed.items[0]?.run).toMatchObject({ session_id, external_user_id })
  await feed.close()
  const query = `SELECT toString(run_id) AS id FROM runs
    WHERE session_id = {s:String} AND external_user_id = {u:String}`
  const params = { s: session_id, u: external_user_id }
  const rows = await eventually(async () => {
    const { data } = await service.api('POST', '/api/v1/query', { query, params })
    return data.rows.length > 0 && data.rows
  })
  expect(rows).toEqual([{ id: runId }])
})
