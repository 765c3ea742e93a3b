import { beforeAll, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { placesOf } from '../support/run-places.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'
import { createWebhook, startReceiver } from '../support/webhooks.ts'

/** `DELETE /api/v1/runs/:run_id/scores/:score_id` deletes a score from every store, and nothing else. */

const ODD_ID = 'thumb/of ä %2F?'

let service: TestService
let tenant: Tenant
let agent: Reporter
let sql: Sql

beforeAll(async () => {
  service = await startTestService({ EGRESS_ALLOW: '127.0.0.1' })
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
  sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
})

const remove = (runId: string, id: string, { api } = tenant, key?: string) =>
  api('DELETE', `/api/v1/runs/${runId}/scores/${encodeURIComponent(id)}`, undefined, key === undefined ? {} : { key })
const add = (scores: readonly object[], query = '') => tenant.api('POST', `/api/ingest/v1/scores${query}`, { scores })
const idsOf = async (runId: string) =>
  (await tenant.api('GET', `/api/v1/runs/${runId}/scores`)).data.items.map(({ id }: { id: string }) => id)

test('a deleted score is in no store, and other scores stay', async () => {
  const [run_id, other] = [await agent.start(), await agent.start()]
  const mark = `mark-${crypto.randomUUID()}`
  const receiver = startReceiver(() => new Response('not now', { status: 500 }))
  await createWebhook(tenant, receiver, { filter: { kind: 'score' } })
  const good = { run_id, id: ODD_ID, name: 'good' }
  await add([
    { ...good, value: 1, comment: mark },
    { ...good, id: 'kept', value: 2 },
    { ...good, run_id: other, value: 3 },
  ])
  await add([{ ...good, value: 4, comment: mark }])
  expect(await idsOf(run_id)).toEqual([ODD_ID, 'kept'])
  await eventually(async () => (await placesOf(service, tenant.workspaceId, run_id, mark)).includes('journal'))
  const retries = () => sql`select body from webhook_retries where workspace_id = ${tenant.workspaceId} order by seq`
  await eventually(async () => (await retries()).length === 4)

  const { status, data } = await remove(run_id.toUpperCase(), ODD_ID)
  expect(status).toBe(202)
  const begun = { status: 'running', requested_at: expect.any(String), done_at: null, runs: 0, scores: 1 }
  expect(data).toEqual({ erasure_id: expect.any(String), ...begun })
  expect(await idsOf(run_id)).toEqual(['kept'])
  expect((await remove(run_id, ODD_ID)).data.erasure_id).toBe(data.erasure_id)
  await eventually(async () => (await tenant.api('GET', `/api/v1/erasures/${data.erasure_id}`)).data.status === 'done')
  expect((await remove(run_id, ODD_ID)).data).toEqual({ ...data, status: 'done', done_at: expect.any(String) })

  expect(await placesOf(service, tenant.workspaceId, run_id, mark)).not.toContain('journal')
  expect((await retries()).map(({ body }) => /"value":(\d)/.exec(body)?.[1])).toEqual(['2', '3'])
  const query = 'select run_id, score_id from scores order by value'
  const { rows } = (await tenant.api('POST', '/api/v1/query', { query })).data
  expect(rows).toEqual([
    { run_id, score_id: 'kept' },
    { run_id: other, score_id: ODD_ID },
  ])
  expect([await idsOf(run_id), await idsOf(other)]).toEqual([['kept'], [ODD_ID]])
  expect(await add([{ ...good, value: 5 }])).toMatchObject({ status: 409, error: { reason: 'id_taken' } })
  const replay = await LiveSocket.open(tenant)
  await replay.subscribe('all', { filter: { kind: 'score' }, after: 0 })
  await replay.until(() => replay.items('all').length >= 2)
  expect(replay.items('all').map((item) => (item as { score?: { id: string } }).score?.id)).toEqual(['kept', ODD_ID])
  await replay.close()
})

test('the id of a deleted score stays used, in its run, by every call', async () => {
  const [run_id, other] = [await agent.start(), await agent.start()]
  const score = { run_id, id: 'gone', name: 'good', value: 1 }
  await add([score])
  await remove(run_id, 'gone')
  const error = { code: 'CONFLICT', reason: 'id_taken' }
  for (const value of [1, 2]) {
    const one = { id: 'gone', name: 'good', value }
    expect(await tenant.api('POST', `/api/v1/runs/${run_id}/scores`, one)).toMatchObject({ status: 409, error })
    const both = await add([
      { ...score, id: 'before' },
      { ...score, value },
    ])
    expect(both).toMatchObject({ status: 409, error: { ...error, param: 'scores[1].id' } })
  }
  const mixed = [{ ...score, id: 'new' }, score, { ...score, run_id: other }]
  const partial = (await add(mixed, '?partial=true')).data
  expect(partial).toMatchObject({ accepted: 2, rejected: [{ index: 1, message: expect.stringContaining('deleted') }] })
  expect([await idsOf(run_id), await idsOf(other)]).toEqual([['new'], ['gone']])
})

test('keys of agents, other workspaces and unknown ids are refused', async () => {
  const run_id = await agent.start()
  await add([{ run_id, id: 'one', name: 'good', value: 1 }])
  expect(await remove(run_id, 'one', tenant, agent.agentKey)).toMatchObject({ status: 403 })
  expect(await remove(run_id, 'one', await newTenant(service))).toMatchObject({ status: 404 })
  expect(await remove(run_id, 'two')).toMatchObject({ status: 404, error: { message: 'score does not exist' } })
  expect(await remove(crypto.randomUUID(), 'one')).toMatchObject({ status: 404 })
  expect(await remove(run_id, 'x'.repeat(256))).toMatchObject({ status: 400 })
  expect(await idsOf(run_id)).toEqual(['one'])
})

test('a deleted run leaves no id of its deleted scores', async () => {
  const run_id = await agent.start()
  await add([{ run_id, id: 'one', name: 'good', value: 1 }])
  await remove(run_id, 'one')
  await agent.end(run_id)
  expect((await tenant.api('DELETE', `/api/v1/runs/${run_id}`)).status).toBe(202)
  const left = await sql`select score_id from run_erasures where run_id = ${run_id}`
  expect([...left]).toEqual([{ score_id: null }])
  expect(await remove(run_id, 'one')).toMatchObject({ status: 404 })
})
