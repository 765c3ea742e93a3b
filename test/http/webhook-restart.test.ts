import { expect, test } from 'bun:test'
import { createApi } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { dataOf, startTestService } from '../support/service.ts'
import { createWebhook, startReceiver } from '../support/webhooks.ts'

/** Deliveries of several endpoints and processes: docs/webhooks.md#deliveries. */

const ENV = { EGRESS_ALLOW: '127.0.0.1' }
const SCHEDULE = { delaysMs: Array.from({ length: 1_000 }, () => 50), disableAfterMs: 3_600_000 }

test('a restart continues at the position, with the deliveries that have failed', async () => {
  const options = { webhooks: { schedule: SCHEDULE, intervalMs: 20 } }
  const first = await startTestService(ENV, options)
  const tenant = await newTenant(first)
  const agent = await newReporter(tenant.api)
  let isDown = false
  const receiver = startReceiver(() => (isDown ? new Response(null, { status: 500 }) : undefined))
  const webhookId = await createWebhook(tenant, receiver, { filter: { type: 'step' } })
  const runs = await Promise.all([agent.start(), agent.start()])
  const report = (from: number) =>
    Promise.all(
      runs.map((runId) =>
        agent.events(
          runId,
          [0, 1, 2].map((n) => ({ type: 'step', payload: { n: from + n } })),
        ),
      ),
    )
  await report(0)
  await eventually(() => receiver.received.length === 6)
  isDown = true
  await report(3)
  await eventually(async () => {
    const { data } = await tenant.api('GET', `/api/v1/webhooks/${webhookId}`)
    // All are stored; none waits in memory.
    return data.health.pending === 6 && data.health.lag < 10
  })
  await first.stop()
  await report(0).catch(() => {})

  const before = receiver.received.length
  const second = await startTestService({ ...ENV, ...dataOf(first) }, options)
  const api = createApi(second.url, tenant.workspaceKey)
  isDown = false
  await eventually(async () => (await api('GET', `/api/v1/webhooks/${webhookId}`)).data.health.pending === 0)
  const after = receiver.received.slice(before)
  const delivered = (messages: typeof after, runId: string) =>
    messages.filter(({ body }) => body.data.run_id === runId).map(({ body }) => body.data.event.payload.n)
  for (const runId of runs) {
    expect(delivered(receiver.received.slice(0, 6), runId)).toEqual([0, 1, 2])
    // Nothing that was delivered before the stop comes again.
    expect([...new Set(delivered(after, runId))]).toEqual([3, 4, 5])
  }
})

test('endpoints that hang leave room for those of other workspaces', async () => {
  const service = await startTestService(ENV, { webhooks: { timeoutMs: 60_000, intervalMs: 20, inFlightMax: 16 } })
  const hanging = Promise.withResolvers<undefined>()
  const [slow, fast] = [startReceiver(() => hanging.promise), startReceiver()]
  const [one, two] = [await newTenant(service), await newTenant(service)]
  for (let i = 0; i < 12; i++) await createWebhook(one, slow)
  await createWebhook(two, fast)
  const [agent, other] = [await newReporter(one.api), await newReporter(two.api)]
  for (let i = 0; i < 10; i++) await agent.end(await agent.start())
  const inFlight = async () =>
    Number(/^webhook_in_flight (\d+)$/m.exec(await (await fetch(`${service.url}/metrics`)).text())?.[1])
  await eventually(async () => (await inFlight()) === 8)
  await other.end(await other.start())
  await eventually(() => fast.received.length === 1)
  expect(await inFlight()).toBe(8)
  hanging.resolve(undefined)
})

test('an endpoint with too many failed deliveries stops, and says so', async () => {
  const options = { schedule: SCHEDULE, intervalMs: 20, rowsMax: 3 }
  const service = await startTestService(ENV, { webhooks: options })
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  let isDown = true
  const receiver = startReceiver(() => (isDown ? new Response(null, { status: 500 }) : undefined))
  const webhookId = await createWebhook(tenant, receiver)
  const runs: string[] = []
  for (let i = 0; i < 6; i++) runs.push(await agent.start())
  for (const runId of runs) await agent.end(runId)
  const status = async () => (await tenant.api('GET', `/api/v1/webhooks/${webhookId}`)).data.status
  await eventually(async () => (await status()) === 'behind')
  expect(new Set(receiver.received.map(({ body }) => body.data.run_id)).size).toBe(3)
  isDown = false
  await eventually(async () => (await status()) === 'active')
  await eventually(() => new Set(receiver.received.map(({ body }) => body.data.run_id)).size === runs.length)
})

test('an endpoint that is edited again and again starts once an interval, not with each edit', async () => {
  const service = await startTestService(ENV, { webhooks: { intervalMs: 60_000 } })
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const receiver = startReceiver()
  const webhookId = await createWebhook(tenant, receiver, { filter: { type: 'a' } })
  const run = await agent.start()
  const got = () => receiver.received.map(({ body }) => body.type)
  await agent.events(run, [{ type: 'a' }])
  await eventually(() => got().length === 1)
  // Just begun: what is edited now is taken up after the interval.
  const path = `/api/v1/webhooks/${webhookId}`
  for (let n = 0; n < 20; n++) {
    await tenant.api('PATCH', path, { filter: { type: `b${n}` } })
    await agent.events(run, [{ type: 'a' }])
  }
  await eventually(() => got().length === 21)
})

test('deliveries that failed while the clock was ahead are attempted again when it is set back', async () => {
  let aheadMs = 30 * 24 * 3_600_000
  const clock = { now: () => Date.now() + aheadMs }
  const options = { schedule: { ...SCHEDULE, delaysMs: [3_600_000] }, intervalMs: 20 }
  const service = await startTestService(ENV, { clock, webhooks: options })
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  let isDown = true
  const receiver = startReceiver(() => (isDown ? new Response(null, { status: 500 }) : undefined))
  const webhookId = await createWebhook(tenant, receiver)
  await agent.end(await agent.start())
  const pending = async () => (await tenant.api('GET', `/api/v1/webhooks/${webhookId}`)).data.health.pending
  await eventually(async () => (await pending()) === 1)
  isDown = false
  aheadMs = 0
  await eventually(async () => (await pending()) === 0)
})
