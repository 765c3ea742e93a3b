import { beforeAll, describe, expect, test } from 'bun:test'
import { pagesOf } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type Receiver, startReceiver } from '../support/webhooks.ts'
import { verdict } from './auth-app.ts'

/** What an endpoint was sent, and getting it again (docs/webhooks.md#list-of-deliveries, #recovery). */

let service: TestService

beforeAll(async () => {
  const webhooks = { schedule: { delaysMs: [20, 3_600_000], disableAfterMs: 3_600_000 }, intervalMs: 20 }
  service = await startTestService({ EGRESS_ALLOW: '127.0.0.1' }, { webhooks })
})

async function rig(receiver: Receiver = startReceiver(), body: object = {}) {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const settings = { url: receiver.url, filter: { kind: 'event' }, ...body }
  const { webhook_id, secret } = (await tenant.api('POST', '/api/v1/webhooks', settings)).data
  receiver.secret = secret
  const path = `/api/v1/webhooks/${webhook_id}`
  const run = await agent.start()
  return {
    ...{ tenant, agent, receiver, path, run, webhookId: webhook_id as string },
    call: (method: string, rest: string, sent?: object) => tenant.api(method, `${path}${rest}`, sent),
    // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
    list: async (query = ''): Promise<any[]> => (await tenant.api('GET', `${path}/deliveries?${query}`)).data.items,
    report: (...types: string[]) =>
      agent.events(
        run,
        types.map((type) => ({ type })),
      ),
    received: () => receiver.received.map(({ body: { type } }) => type as string),
  }
}

const isFailing = (types: readonly string[]) => types.some((type) => type.startsWith('bad'))
const failing = () =>
  startReceiver(({ body }) => (isFailing([body.type]) ? new Response('no such thing', { status: 500 }) : undefined))

describe('the list of deliveries', () => {
  test('shows the latest attempt of each, the newest first, by status and in pages', async () => {
    const own = await rig(failing())
    await own.report('a', 'b', 'c')
    await eventually(async () => (await own.list()).length === 3)
    const { first_seq } = await own.report('bad', 'waits')
    await eventually(async () => (await own.list('status=pending')).some(({ attempt }) => attempt === 2))

    const pending = await own.list('status=pending')
    expect(pending.map(({ type, attempt, http_status, response }) => [type, attempt, http_status, response])).toEqual([
      ['waits', 0, null, null],
      ['bad', 2, 500, 'no such thing'],
    ])
    expect(pending[1]).toMatchObject({ run_id: own.run, seq: first_seq, webhook_id: own.webhookId, status: 'pending' })
    expect(pending[1].next_at).not.toBeNull()
    expect(pending[0].next_at).toBeNull()

    const listed = await own.list()
    expect(listed[0]).toMatchObject({ type: 'bad', attempt: 2, status: 'pending' })
    expect(listed.slice(1).map(({ attempt, status }) => [attempt, status])).toEqual(Array(3).fill([1, 'succeeded']))
    expect(listed[0].next_at).toBe(pending[1].next_at)
    expect((await own.list('status=succeeded')).map(({ type }) => type).sort()).toEqual(['a', 'b', 'c'])
    expect(await own.list('status=failed')).toEqual([])
    for (const status of ['', '&status=succeeded', '&status=pending']) {
      const pages = await pagesOf<object>((cursor) => own.call('GET', `/deliveries?limit=1${status}${cursor}`))
      expect(pages.flat()).toEqual(await own.list(status.slice(1)))
    }
    for (const query of ['status=gone', 'cursor=x', 'limit=0', 'order=asc'])
      expect(verdict(await own.call('GET', `/deliveries?${query}`))).toBe('400 VALIDATION_ERROR')
  })
})

describe('an attempt on request', () => {
  test('tests the endpoint and says what became of it', async () => {
    const own = await rig()
    const { data } = await own.call('POST', '/test')
    expect(data).toMatchObject({
      type: 'webhook.test',
      status: 'succeeded',
      http_status: 204,
      attempt: 1,
      run_id: null,
    })
    expect(own.received()).toEqual(['webhook.test'])
    expect(own.receiver.received[0]!.id).toBe(data.delivery_id)
    expect(await own.list()).toMatchObject([{ delivery_id: data.delivery_id }])
  })

  test('of a delivery that was made sends the same message with the same id', async () => {
    const own = await rig()
    await own.report('a')
    await eventually(() => own.received().length === 1)
    const [{ id, body }] = own.receiver.received as [Receiver['received'][0]]
    const headers = { 'idempotency-key': 'once' }
    const resend = () => own.tenant.api('POST', `${own.path}/deliveries/${id}/resend`, undefined, { headers })
    expect((await resend()).data).toMatchObject({ delivery_id: id, status: 'succeeded' })
    expect((await resend()).headers.get('idempotent-replayed')).toBe('true')
    expect(own.receiver.received.map((each) => [each.id, each.body])).toEqual([
      [id, body],
      [id, body],
    ])
    expect(await own.list()).toHaveLength(1)
  })

  test('is one of few of a workspace, however long the receiver takes, and takes none of another', async () => {
    const asked = Promise.withResolvers<void>()
    const slow = startReceiver(() => asked.promise.then(() => undefined))
    const [own, other] = await Promise.all([rig(slow), rig()])
    const answers = Array.from({ length: 12 }, async () => verdict(await own.call('POST', '/test')))
    expect(await Promise.race(answers)).toBe('429 RATE_LIMITED')
    expect(verdict(await other.call('POST', '/test'))).toBe('200')
    asked.resolve()
    expect((await Promise.all(answers)).filter((each) => each === '200').length).toBeGreaterThanOrEqual(8)
    expect(verdict(await own.call('POST', '/test'))).toBe('200')
  })

  test('of another endpoint, of no delivery, or of what the filter does not select is NOT_FOUND', async () => {
    const [own, other] = await Promise.all([rig(), rig()])
    const { first_seq } = await own.report('a')
    await eventually(() => own.received().length === 1)
    const id = own.receiver.received[0]!.id
    const wrong = [
      ...['x', `${id}0`, id.replace(/_\d+$/, '_999999999'), id.replace(/_[^_]+_(\d+)$/, '_another_$1')],
      // The start of the run, which is no event.
      id.replace(/_\d+$/, `_${first_seq - 1}`),
    ]
    for (const each of wrong)
      expect(verdict(await own.call('POST', `/deliveries/${each}/resend`))).toBe('404 NOT_FOUND')
    expect(verdict(await other.call('POST', `/deliveries/${id}/resend`))).toBe('404 NOT_FOUND')
    expect(own.received()).toEqual(['a'])
  })
})

describe('recovery', () => {
  test('delivers everything after a cursor or since a time again, with the same ids', async () => {
    const own = await rig()
    await own.report('a')
    await own.report('b')
    const { first_seq, last_seq } = await own.report('c', 'd')
    await eventually(() => own.received().length === 4)
    const first = [...own.receiver.received]
    const epoch = first[0]!.body.cursor.split('.')[0]

    const begun = await own.call('POST', '/recover', { after: `${epoch}.${first_seq - 1}` })
    expect(begun.data.webhook_id).toBe(own.webhookId)
    await eventually(() => own.received().length === 6)
    expect(own.received().slice(4)).toEqual(['c', 'd'])
    await eventually(async () => (await own.call('GET', '')).data.health.recovering_until === null)

    const since = first.find(({ body }) => body.type === 'b')!.body.timestamp
    await own.call('POST', '/recover', { since })
    const expected = first.filter(({ body }) => body.timestamp >= since).map(({ id }) => id)
    await eventually(() => own.received().length === 6 + expected.length)
    expect(own.receiver.received.slice(6).map(({ id }) => id)).toEqual(expected)
    await eventually(async () => (await own.call('GET', '')).data.health.recovering_until === null)
    // The first activity since then is an event, or a change of a run.
    const again = await own.agent.start()
    await own.agent.events(again, [{ type: 'e' }])
    await own.agent.end(again)
    await eventually(() => own.received().at(-1) === 'e')
    for (const [since, expected] of [
      ['d', ['c', 'd', 'e']],
      ['e', ['e']],
    ] as const) {
      const before = own.received().length
      const { body } = own.receiver.received.findLast(({ body }) => body.type === since)!
      await own.call('POST', '/recover', { since: body.timestamp })
      await eventually(async () => (await own.call('GET', '')).data.health.recovering_until === null)
      expect(own.received().slice(before).toSorted()).toEqual([...expected])
    }
    // Nothing is that new.
    await own.call('POST', '/recover', { since: '2290-01-01T00:00:00Z' })
    await own.call('POST', '/recover', { after: `${epoch}.${last_seq + 1_000}` })
    expect((await own.call('GET', '')).data.health.recovering_until).toBeNull()
  })

  test('delivers now what waits for its retry, and what waits behind it', async () => {
    let isDown = true
    const own = await rig(startReceiver(() => (isDown ? new Response(null, { status: 500 }) : undefined)))
    const { first_seq } = await own.report('bad', 'waits')
    await eventually(async () => (await own.list('status=pending')).some(({ attempt }) => attempt === 2))
    await eventually(async () => (await own.list('status=pending')).length === 2)
    // The next attempt is an hour away.
    isDown = false
    const epoch = own.receiver.received[0]!.body.cursor.split('.')[0]
    await own.call('POST', '/recover', { after: `${epoch}.${first_seq}` })
    await eventually(() => own.received().includes('waits'))
    expect(own.received().slice(0, 4)).toEqual(['bad', 'bad', 'bad', 'waits'])
    await eventually(async () => (await own.call('GET', '')).data.health.pending === 0)
  })

  test('takes a time or a cursor, and one at a time', async () => {
    const own = await rig(startReceiver(), { status: 'disabled' })
    await own.report('a')
    for (const body of [{}, { since: '2026-01-01T00:00:00Z', after: '0' }, { since: 'yesterday' }, { after: 'x' }])
      expect(verdict(await own.call('POST', '/recover', body))).toBe('400 VALIDATION_ERROR')
    const { data } = await own.call('POST', '/recover', { after: '0' })
    expect(data.health.recovering_until).not.toBeNull()
    expect(verdict(await own.call('POST', '/recover', { after: '0' }))).toBe('409 CONFLICT')
    await own.call('PATCH', '', { status: 'active' })
    await eventually(() => own.received().includes('a'))
  })
})
