import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { latePostgres } from '../support/late-postgres.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'
import { verdict } from './auth-app.ts'

/** Polling (docs/webhooks.md#polling): the same messages, for receivers that cannot be reached. */

let service: TestService

beforeAll(async () => {
  service = await startTestService({ PUBLIC_URL: 'https://runs.example' })
})

interface Rig {
  readonly tenant: Tenant
  readonly agent: Reporter
  readonly path: string
  poll(query?: string): Promise<Page>
}

interface Page {
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly data: any[]
  readonly iterator: string
  readonly done: boolean
  readonly gap: boolean
}

async function rig(body: object = {}): Promise<Rig> {
  const tenant = await newTenant(service)
  const agent = await newReporter(tenant.api)
  const made = await tenant.api('POST', '/api/v1/webhooks', {
    ...{ url: 'https://receiver.example', status: 'disabled' },
    ...body,
  })
  const path = `/api/v1/webhooks/${made.data.webhook_id}`
  return { tenant, agent, path, poll: async (query = '') => (await tenant.api('GET', `${path}/poll?${query}`)).data }
}

/** All messages, page by page. */
async function all({ poll }: Rig, limit: number) {
  const pages: Page[] = []
  for (let query = ''; pages.at(-1)?.done !== true; query = `&iterator=${pages.at(-1)!.iterator}`)
    pages.push(await poll(`limit=${limit}${query}`))
  return pages
}

const EVERYTHING = { filter: {} }
const typesOf = (messages: readonly { readonly type: string }[]) => messages.map(({ type }) => type)

/** Once the outbox is in the log, which reporting does not wait for. */
async function untilTypes(rig: Rig, types: readonly string[]) {
  return eventually(async () => {
    const page = await rig.poll()
    expect(typesOf(page.data)).toEqual([...types])
    return page
  })
}

describe('messages', () => {
  test('are the ends of runs by default, with what they got, gave and used, each once', async () => {
    const own = await rig()
    const { tenant, agent } = own
    const run_id = await agent.start({ input: { q: 1 } })
    const payload = { 'gen_ai.usage.input_tokens': 30, 'gen_ai.usage.output_tokens': 12, cost_usd: 0.5 }
    await agent.events(run_id, [{ type: 'llm.call', payload }, { type: 'note' }])
    await tenant.api('POST', '/api/ingest/v1/run/complete', { run_id, output: { a: 2 } }, { key: agent.agentKey })
    const { data, iterator } = await untilTypes(own, ['run.completed'])
    const [message] = data
    expect(message.data.run).toMatchObject({
      ...{ status: 'completed', input: { q: 1 }, output: { a: 2 }, cost_usd: 0.5, event_count: 2 },
      usage: usageRecord(30, 12),
    })
    expect(message.cursor).toBe(message.data.cursor)
    expect(message.timestamp).toBe(message.data.received_at)
    // The run is written again with its new counts, which is no other end.
    const recounted = { query: 'select run_id from runs where cost_usd = 0.5' }
    await eventually(async () => (await tenant.api('POST', '/api/v1/query', recounted)).data.rows.length === 1)
    expect(typesOf((await own.poll(`iterator=${iterator}`)).data)).toEqual([])
  })

  test('are those that the filter names, in order, in pages of any size', async () => {
    const own = await rig(EVERYTHING)
    const run = await own.agent.start()
    const events = Array.from({ length: 20 }, (_, i) => ({ type: `e${i}` }))
    await own.agent.events(run, events)
    await own.agent.task(run, { status: 'running' })
    await own.agent.end(run, 'it broke')
    const expected = await eventually(async () => {
      const { data } = await own.poll('limit=1000')
      return data.at(-1)?.type === 'run.failed' && data
    })
    expect(typesOf(expected).filter((type) => type.startsWith('e'))).toEqual(typesOf(events))
    expect(typesOf(expected)).toContain('task.running')
    for (const limit of [1, 7]) {
      const pages = await all(own, limit)
      expect(pages.flatMap(({ data }) => data)).toEqual(expected)
      for (const { data } of pages) expect(data.length).toBeLessThanOrEqual(limit)
    }
    const [third] = expected.slice(2)
    expect((await own.poll(`iterator=${third.cursor}&limit=1000`)).data).toEqual(expected.slice(3))
  })

  test('begin where the endpoint was created, or anywhere that a cursor names', async () => {
    // The start of the run comes from the outbox, maybe later.
    const events = { filter: { kind: 'event' } }
    const before = await rig(events)
    const { agent, tenant } = before
    const run = await agent.start()
    await agent.events(run, [{ type: 'before' }])
    await eventually(async () => typesOf((await before.poll()).data).includes('before'))
    const made = await tenant.api('POST', '/api/v1/webhooks', {
      url: 'https://a.example',
      status: 'disabled',
      ...events,
    })
    const poll = async (query: string): Promise<Page> =>
      (await tenant.api('GET', `/api/v1/webhooks/${made.data.webhook_id}/poll?${query}`)).data
    expect(await poll('')).toMatchObject({ data: [], done: true, gap: false })
    await agent.events(run, [{ type: 'after' }])
    expect(typesOf((await poll('')).data)).toEqual(['after'])
    expect(typesOf((await poll('iterator=0')).data)).toEqual(expect.arrayContaining(['before', 'after']))
  })

  test('too long for an answer come in the next one', async () => {
    const own = await rig(EVERYTHING)
    const run = await own.agent.start()
    const events = Array.from({ length: 12 }, (_, i) => ({ type: `e${i}`, payload: { text: 'x'.repeat(500_000) } }))
    for (const event of events) await own.agent.events(run, [event])
    const pages = await all(own, 1_000)
    expect(pages.length).toBeGreaterThan(1)
    const types = typesOf(pages.flatMap(({ data }) => data))
    expect(types.filter((type) => type.startsWith('e'))).toEqual(typesOf(events))
  })

  test('that are lost are not passed over in silence', async () => {
    const own = await rig(EVERYTHING)
    await own.agent.events(await own.agent.start(), [{ type: 'a' }])
    for (const iterator of ['another-epoch.1', '999999999'])
      expect(await own.poll(`iterator=${iterator}`)).toMatchObject({ gap: true })
    expect(await own.poll('iterator=0')).toMatchObject({ gap: false })
  })
})

describe('a bad request', () => {
  test.each(['iterator=x', 'iterator=', 'limit=0', 'limit=1001', 'limit=a', 'after=0'])(
    '%s is refused',
    async (query) => {
      const { tenant, path } = await rig()
      const answer = await tenant.api('GET', `${path}/poll?${query}`)
      expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
      expect(answer.error?.message).toContain(`query.${query.split('=')[0]}`)
    },
  )

  test('of a workspace that already polls is limited, and waits for no other', async () => {
    const own = await rig()
    const answers = await Promise.all(Array.from({ length: 40 }, () => own.tenant.api('GET', `${own.path}/poll`)))
    const verdicts = new Set(answers.map(verdict))
    verdicts.delete('429 RATE_LIMITED')
    expect([...verdicts]).toEqual(['200'])
  })
})

test('a poll of a session whose runs cannot be looked up is refused, and misses nothing later', async () => {
  const late = await latePostgres((await freshDatabase()).url)
  const { api } = await startTestService({ DATABASE_URL: late.url })
  const agent = await newReporter(api)
  const run_id = await agent.start({ session_id: 's' })
  const url = 'https://receiver.example'
  const made = await api('POST', '/api/v1/webhooks', { url, status: 'disabled', filter: { session_id: ['s'] } })
  const poll = () => api('GET', `/api/v1/webhooks/${made.data.webhook_id}/poll`)
  late.meddle((statement) => (statement.includes('as asked (workspace_id') ? { kind: 'refused' } : { kind: 'now' }))
  await agent.events(run_id, [{ type: 'note' }])
  const answer = await poll()
  expect([verdict(answer), answer.headers.get('retry-after')]).toEqual(['503 UNAVAILABLE', '1'])
  late.meddle(undefined)
  await eventually(async () => expect(typesOf((await poll()).data.data)).toContain('note'))
})
