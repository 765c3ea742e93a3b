import { beforeAll, describe, expect, test } from 'bun:test'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'
import { createWebhook, type Received, type Receiver, startReceiver } from '../support/webhooks.ts'

/** Deliveries: docs/webhooks.md#deliveries. */

const DELAYS_MS = [40, 60, 80]

let service: TestService
let sql: Sql

beforeAll(async () => {
  const database = await freshDatabase()
  sql = database.sql
  const webhooks = {
    schedule: { delaysMs: DELAYS_MS, disableAfterMs: 60_000 },
    intervalMs: 20,
  }
  service = await startTestService({ EGRESS_ALLOW: '127.0.0.1', DATABASE_URL: database.url }, { webhooks })
})

interface Rig {
  readonly tenant: Tenant
  readonly agent: Reporter
  readonly receiver: Receiver
  readonly webhookId: string
}

async function rig(
  answer?: (message: Received) => Response | undefined | Promise<Response | undefined>,
  more: object = {},
): Promise<Rig> {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const receiver = startReceiver(answer)
  return { tenant, agent, receiver, webhookId: await createWebhook(tenant, receiver, more) }
}

test('an endpoint that becomes strict sends what has failed in order, whatever is due first', async () => {
  const database = await freshDatabase()
  const webhooks = { schedule: { delaysMs: [3_600_000], disableAfterMs: 3_600_000 }, intervalMs: 20 }
  const env = { EGRESS_ALLOW: '127.0.0.1', DATABASE_URL: database.url }
  const tenant = await newTenant(await startTestService(env, { webhooks }))
  const agent = await newReporter(tenant.api)
  let isDown = true
  const receiver = startReceiver(() => (isDown ? new Response(null, { status: 500 }) : undefined))
  const webhookId = await createWebhook(tenant, receiver)
  const runs: string[] = []
  for (let n = 0; n < 3; n++) runs.push(await endedRun(agent))
  const pending = async () => (await tenant.api('GET', `/api/v1/webhooks/${webhookId}`)).data.health.pending
  await eventually(async () => (await pending()) === 3)
  await tenant.api('PATCH', `/api/v1/webhooks/${webhookId}`, { order: 'strict' })
  isDown = false
  const before = receiver.received.length
  await database.sql`
    update webhook_retries r set next_at = now() + interval '300 ms' * (
      select count(*) from webhook_retries later where later.seq > r.seq)`
  await eventually(async () => (await pending()) === 0)
  expect(receiver.received.slice(before).map(({ body }) => body.data.run_id)).toEqual(runs)
})

async function endedRun(agent: Reporter, errorMessage?: string): Promise<string> {
  const runId = await agent.start()
  await agent.end(runId, errorMessage)
  return runId
}

/** The attempts of an endpoint as SQL shows them, oldest first. */
async function attempts({ tenant, webhookId }: Rig) {
  const query = `select delivery_id, type, run_id, attempt, status, http_status, response from deliveries
    where webhook_id = {id:UUID} order by at, attempt`
  const { data } = await tenant.api('POST', '/api/v1/query', { query, params: { id: webhookId } })
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  return data.rows as any[]
}

async function untilAttempts(rig: Rig, count: number) {
  return eventually(async () => {
    const rows = await attempts(rig)
    return rows.length >= count && rows
  })
}

describe('a delivery', () => {
  test('carries the final usage of a run, and is in SQL', async () => {
    const it = await rig()
    const runId = await it.agent.start({ input: { question: 1 } })
    const usage = { 'gen_ai.usage.input_tokens': 3, 'gen_ai.usage.output_tokens': 4 }
    await it.agent.events(runId, [{ type: 'llm.call', payload: usage }])
    await it.agent.end(runId)
    await eventually(() => it.receiver.received.length === 1)
    const [{ id, body, headers }] = it.receiver.received
    expect(body).toMatchObject({ type: 'run.completed', data: { kind: 'run', run_id: runId } })
    expect(body.data.run).toMatchObject({ usage: { total_tokens: 7 }, event_count: 1, input: { question: 1 } })
    expect(headers.get('content-type')).toBe('application/json')
    const [row] = await untilAttempts(it, 1)
    expect(row).toMatchObject({ delivery_id: id, type: 'run.completed', run_id: runId, attempt: 1 })
    expect(row).toMatchObject({ status: 'succeeded', http_status: 204 })
    expect(it.receiver.refused).toBe(0)
  })

  test('is repeated with the same id after a failure, and holds up what follows of its run only', async () => {
    let failures = 0
    const failed = new Set<string>()
    const it = await rig(
      ({ body }) => {
        if (body.data.event?.type !== 'bad' || ++failures > 2) return undefined
        failed.add(body.data.run_id)
        return new Response('not now', { status: 500 })
      },
      { filter: { type: ['good', 'bad'] } },
    )
    const [first, second] = [await it.agent.start(), await it.agent.start()]
    await it.agent.events(first, [{ type: 'bad' }, { type: 'good' }, { type: 'good' }])
    await it.agent.events(second, [{ type: 'good' }])
    await eventually(() => it.receiver.received.length === 6)
    const seen = it.receiver.received.map(({ body }) => `${body.data.run_id === first ? 1 : 2} ${body.type}`)
    expect(seen.filter((each) => each.startsWith('1'))).toEqual(['1 bad', '1 bad', '1 bad', '1 good', '1 good'])
    expect(seen.indexOf('2 good')).toBeLessThan(2)
    const ids = new Set(it.receiver.received.filter(({ body }) => body.type === 'bad').map(({ id }) => id))
    expect(ids.size).toBe(1)
    const rows = await untilAttempts(it, 6)
    const bad = rows.filter(({ type }) => type === 'bad')
    expect(bad.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 'pending'],
      [2, 'pending'],
      [3, 'succeeded'],
    ])
    expect(bad[0].response).toBe('not now')
  })

  test('is given up after the last attempt; then what follows of its run goes on', async () => {
    const it = await rig(({ body }) => (body.type === 'bad' ? new Response(null, { status: 400 }) : undefined), {
      filter: { type: ['good', 'bad'] },
    })
    const runId = await it.agent.start()
    await it.agent.events(runId, [{ type: 'bad' }, { type: 'good' }])
    await eventually(() => it.receiver.received.some(({ body }) => body.type === 'good'))
    const rows = await untilAttempts(it, DELAYS_MS.length + 2)
    expect(rows.map(({ type, status }) => `${type} ${status}`)).toEqual([
      ...DELAYS_MS.map(() => 'bad pending'),
      'bad failed',
      'good succeeded',
    ])
  })

  test('waits in strict order while another one fails', async () => {
    let isDown = true
    const it = await rig(() => (isDown ? new Response(null, { status: 503 }) : undefined), { order: 'strict' })
    const runs = [await endedRun(it.agent), await endedRun(it.agent), await endedRun(it.agent)]
    // More attempts than there are delays.
    await eventually(() => it.receiver.received.length > DELAYS_MS.length + 3)
    expect(new Set(it.receiver.received.map(({ body }) => body.data.run_id))).toEqual(new Set([runs[0]]))
    isDown = false
    await eventually(() => new Set(it.receiver.received.map(({ body }) => body.data.run_id)).size === 3)
    const order = [...new Set(it.receiver.received.map(({ body }) => body.data.run_id))]
    expect(order).toEqual(runs)
  })
})

describe('a receiver', () => {
  test('that answers 410 is disabled, which is an event', async () => {
    const it = await rig(() => new Response(null, { status: 410 }))
    await endedRun(it.agent)
    const row = await eventually(async () => {
      const { data } = await it.tenant.api('POST', '/api/v1/query', {
        query: `select toString(payload.reason) as reason, toString(payload.url) as url from events where type = 'webhook.disabled'`,
      })
      return data.rows.length === 1 && data.rows[0]
    })
    // The rest of the URL may be a credential.
    expect(row).toEqual({ reason: 'the receiver answered 410 Gone', url: new URL(it.receiver.url).origin })
    await endedRun(it.agent)
    expect(it.receiver.received.length).toBe(1)
  })

  test.each([
    ['redirects', () => Response.redirect('http://127.0.0.1:1/'), 302, /redirects to .* not followed/],
    ['answers with much', () => new Response('x'.repeat(1 << 22)), 200, /^x{1024}$/],
  ] as const)('that %s', async (_what, answer, status, response) => {
    const it = await rig(answer)
    await endedRun(it.agent)
    const [row] = await untilAttempts(it, 1)
    expect(row.http_status).toBe(status)
    expect(row.response).toMatch(response)
    expect(row.status).toBe(status === 200 ? 'succeeded' : 'pending')
  })

  test.each([
    ['whose name does not resolve', 'http://no-such-host.invalid/hook', /does not resolve/],
    ['that refuses connections', 'http://127.0.0.1:1/hook', /refuses connections/],
  ])('%s', async (_what, url, response) => {
    const it = await rig(undefined, { url })
    await endedRun(it.agent)
    const [row] = await untilAttempts(it, 1)
    expect(row).toMatchObject({ http_status: null, status: 'pending' })
    expect(row.response).toMatch(response)
  })

  test('at an address that has become private', async () => {
    const it = await rig()
    await sql`update webhooks set url = 'http://10.0.0.1/', version = version + 1 where webhook_id = ${it.webhookId}`
    // The old version may still deliver a run that ends before the service has read the new one.
    const refused = await eventually(async () => {
      await endedRun(it.agent)
      return (await attempts(it)).find(({ http_status }) => http_status === null) ?? false
    })
    expect(refused.status).toBe('pending')
    expect(refused.response).toMatch(/10.0.0.1 is not a public address/)
  })

  test('gets nothing of another workspace, and nothing while its own is suspended', async () => {
    const [one, two] = [await rig(), await rig()]
    const runId = await endedRun(one.agent)
    await eventually(() => one.receiver.received.length === 1)
    expect(one.receiver.received[0].body.data.run_id).toBe(runId)
    expect(two.receiver.received).toEqual([])

    const last = await one.agent.start()
    const setStatus = (status: string) =>
      service.api('PATCH', `/api/v1/workspaces/${one.tenant.workspaceId}`, { status }, { key: OPERATOR_TOKEN })
    await one.agent.end(last)
    await setStatus('suspended')
    const before = one.receiver.received.length
    await endedRun(two.agent)
    await eventually(() => two.receiver.received.length === 1)
    expect(one.receiver.received.length).toBeLessThanOrEqual(before + 1)
    await setStatus('active')
    await eventually(() => one.receiver.received.some(({ body }) => body.data.run_id === last))
  })
})

test('an event that is reported right after a filter was widened is delivered, whoever was past it', async () => {
  const { tenant, agent, receiver, webhookId } = await rig(undefined, { filter: { type: 'a' } })
  const path = `/api/v1/webhooks/${webhookId}`
  const run = await agent.start()
  const got = () => receiver.received.map(({ body }) => body.data.event.payload.n)
  for (let n = 0; n < 8; n++) {
    await agent.events(run, [{ type: 'a', payload: { n } }])
    await eventually(() => got().includes(n))
    const type = `b${n}`
    await tenant.api('PATCH', path, { filter: { type: ['a', type] } })
    await agent.events(run, [{ type, payload: { n: type } }])
    // Only the new filter lets it through.
    await eventually(async () => {
      await agent.events(run, [{ type, payload: { n: `after ${n}` } }])
      return got().includes(`after ${n}`)
    })
    expect(got()).toContain(type)
  }
})

describe('a row that Postgres refuses', () => {
  const GIVEN_UP = 'the service could not store this delivery'
  const ready = async () => (await service.api('GET', '/readyz', undefined, { key: null })).data
  const setAside = async (): Promise<number> => (await ready()).consumers.webhook_results.set_aside
  const kept = ({ webhookId }: Rig) => sql`select type from webhook_retries where webhook_id = ${webhookId}`

  beforeAll(async () => {
    await sql.unsafe(`
      create function refuse_row() returns trigger language plpgsql as
        $$ begin raise exception 'out of range' using errcode = '22003'; end $$;
      create trigger refused before insert or update on webhook_retries for each row
        when (new.type = 'refused' or (new.type = 'refused later' and new.attempt > 1)) execute function refuse_row()`)
  })

  test('is set aside after two failures: all others are stored and retried, of this endpoint and others', async () => {
    const before = await setAside()
    const down = new Set<string>()
    // Each fails once at least; what is refused fails always.
    const answer = ({ id, body: { type } }: Received) => {
      const isDown = type === 'refused' || (type === 'bad' && !down.has(id))
      down.add(id)
      return isDown ? new Response('not now', { status: 500 }) : undefined
    }
    const filter = { type: ['good', 'bad', 'refused'] }
    const [it, other] = [await rig(answer, { filter }), await rig(answer, { filter })]
    const runs = await Promise.all(Array.from({ length: 6 }, () => it.agent.start()))
    await Promise.all(
      runs.map((run, n) => it.agent.events(run, [{ type: n % 3 === 1 ? 'refused' : 'bad' }, { type: 'good' }])),
    )
    await other.agent.events(await other.agent.start(), [{ type: 'bad' }])
    await eventually(async () => {
      const rows = await attempts(it)
      const succeeded = rows.filter(({ status }) => status === 'succeeded').map(({ type }) => type)
      return succeeded.filter((type) => type === 'good').length === 6 && succeeded.length === 10
    })
    const refused = (await attempts(it)).filter(({ type }) => type === 'refused')
    expect(refused.map(({ run_id }) => run_id).toSorted()).toEqual([1, 4].flatMap((n) => [runs[n], runs[n]]).toSorted())
    const ends = refused.filter(({ attempt }) => attempt === 2)
    expect(ends.map(({ status, http_status, response }) => [status, http_status, response])).toEqual([
      ['failed', null, GIVEN_UP],
      ['failed', null, GIVEN_UP],
    ])
    await eventually(async () => (await attempts(other)).some(({ status }) => status === 'succeeded'))
    expect(await setAside()).toBe(before + 2)
    expect(await ready()).toMatchObject({ status: 'degraded', loops: { 'results of webhooks': { ok: true } } })
    expect((await service.api('GET', '/metrics', undefined, { key: null })).text).toContain(
      `consumer_rows_set_aside_total{consumer="webhook_results"} ${before + 2}\n`,
    )
    await eventually(async () => (await kept(it)).length === 0)
  })

  test('when it is changed is deleted: it is not sent again at once, and what waits behind it goes on', async () => {
    const before = await setAside()
    const it = await rig(
      ({ body }) => (body.type === 'refused later' ? new Response(null, { status: 500 }) : undefined),
      { filter: { type: ['good', 'refused later'] } },
    )
    await it.agent.events(await it.agent.start(), [{ type: 'refused later' }, { type: 'good' }])
    await eventually(async () => (await attempts(it)).some(({ type }) => type === 'good'))
    expect((await attempts(it)).map(({ type, attempt, status }) => `${type} ${attempt} ${status}`)).toEqual([
      'refused later 1 pending',
      'refused later 2 pending',
      'refused later 3 failed',
      'good 1 succeeded',
    ])
    expect(it.receiver.received).toHaveLength(3)
    expect(await setAside()).toBe(before + 1)
    expect(await kept(it)).toHaveLength(0)
  })
})
