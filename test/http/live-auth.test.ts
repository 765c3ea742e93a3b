import { beforeAll, describe, expect, test } from 'bun:test'
import { mintToken } from '../../src/tenants/keys/token.ts'
import type { Answer } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import {
  type FeedOptions,
  gauge,
  HANDSHAKE,
  LiveSocket,
  LiveStream,
  newReporter,
  newTenant,
  numbered,
  numbersOf,
  type Tenant,
} from '../support/feeds.ts'
import { OPERATOR_TOKEN, startTestService, type TestService } from '../support/service.ts'

/** Authentication, scope and lifetime of feeds (docs/feeds.md#feed-tokens). */

let service: TestService
let aheadMs = 0
beforeAll(async () => {
  service = await startTestService({}, { clock: { now: () => Date.now() + aheadMs } })
})

const NO_RUN = '00000000-0000-7000-8000-000000000000'
const ALL = '/api/v1/stream'
const LIVE = '/api/v1/live'
const ofRun = (runId: string) => `/api/v1/runs/${runId}/stream`
const verdict = ({ status, error }: Answer) => `${status} ${error?.code}`

/** Requests a feed as a client of its protocol does, and returns the HTTP response. */
function rejection(at: TestService, path: string, options: FeedOptions = {}): Promise<Answer> {
  const { key = null, token, headers } = options
  const query = token === undefined ? '' : `?token=${encodeURIComponent(token)}`
  const handshake = path === LIVE ? HANDSHAKE : {}
  return at.api('GET', path + query, undefined, { key, headers: { ...handshake, ...headers } })
}

async function newToken({ api }: Pick<Tenant, 'api'>, body: object = {}, key?: string): Promise<string> {
  const { data } = await api('POST', '/api/v1/feed-tokens', body, key === undefined ? {} : { key })
  return data.token
}

async function newKey({ api }: Tenant): Promise<{ key: string; key_id: string }> {
  return (await api('POST', '/api/v1/keys', { name: 'of a watcher' })).data
}

/** Opens a WebSocket and an event stream with all events that the key or token may see. */
async function openBoth(tenant: Tenant, options: FeedOptions = {}) {
  const socket = await LiveSocket.open(tenant, options)
  await socket.subscribe('s', { filter: { kind: 'event' } })
  const stream = await LiveStream.open(tenant, `${ALL}?kind=event`, options)
  await stream.until(() => stream.frames.length === 1)
  return { socket, stream, items: () => [socket.items('s'), stream.items] as const }
}

describe('a feed is rejected with the envelope, before any upgrade,', () => {
  const feeds = [LIVE, ALL, ofRun(NO_RUN)]

  test('without a valid key or token', async () => {
    const unknown = mintToken('workspace').text
    for (const path of feeds) {
      for (const options of [{}, { key: 'x' }, { key: unknown }, { token: 'x' }, { token: mintToken('feed').text }]) {
        const answer = await rejection(service, path, options)
        expect([path, options, verdict(answer)]).toEqual([path, options, '401 UNAUTHENTICATED'])
        expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      }
      expect(verdict(await rejection(service, path, { headers: { authorization: 'Basic eDp5' } }))).toBe(
        '401 UNAUTHENTICATED',
      )
    }
  })

  test('with a key in the URL, even a valid one', async () => {
    const { agentKey } = await newReporter(service.api)
    for (const path of feeds)
      for (const token of [service.workspaceKey, agentKey])
        expect((await rejection(service, path, { token })).error).toMatchObject({
          code: 'UNAUTHENTICATED',
          message: 'do not put API keys in URLs; create a feed token with POST /api/v1/feed-tokens',
        })
  })

  test('in a suspended workspace', async () => {
    const tenant = await newTenant(service)
    const token = await newToken(tenant)
    const body = { status: 'suspended' }
    await service.api('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, body, { key: OPERATOR_TOKEN })
    for (const path of feeds)
      for (const options of [{ key: tenant.workspaceKey }, { token }])
        expect(verdict(await rejection(service, path, options))).toBe('403 FORBIDDEN')
  })

  test('over the rate limit of its key, with Retry-After', async () => {
    const strict = await startTestService({ RATE_LIMIT_READS_PER_MINUTE: '3' })
    const spent = async (key: string) => {
      for (let i = 0; i < 3; i++) await rejection(strict, ALL, { key, headers: { 'last-event-id': 'x' } })
    }
    await spent(strict.workspaceKey)
    for (const path of feeds) {
      const answer = await rejection(strict, path, { key: strict.workspaceKey })
      expect([path, verdict(answer), answer.headers.has('retry-after')]).toEqual([path, '429 RATE_LIMITED', true])
    }
    await strict.stop()
  })
})

describe('a feed token', () => {
  test('opens every feed, in ?token= or in the header', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    const token = await newToken(tenant)
    for (const options of [{ token }, { key: token }]) {
      const { socket, stream, items } = await openBoth(tenant, options)
      const run = await LiveStream.open(tenant, `${ofRun(runId)}?after=0`, options)
      await agent.events(runId, numbered(2))
      await run.until(() => run.items.filter(({ kind }) => kind === 'event').length >= 2)
      await eventually(() => items().every((each) => each.length === 2))
      await Promise.all([socket.close(), stream.close(), run.close()])
    }
  })

  test('for one run sees only that run', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const [runId, other] = [await agent.start(), await agent.start()]
    const token = await newToken(tenant, { run_id: runId })
    const { socket, stream, items } = await openBoth(tenant, { token })
    const mine = await LiveStream.open(tenant, `${ofRun(runId)}?after=0`, { token })
    await socket.subscribe('past', { after: 0 })
    await agent.events(other, numbered(10, 100))
    await agent.task(other, { status: 'running' })
    await agent.end(other)
    await agent.events(runId, numbered(2))
    await eventually(() => items().every((each) => each.length >= 2))
    await socket.until(() => socket.items('past').length >= 3)
    for (const each of items()) expect(numbersOf(each)).toEqual([0, 1])
    for (const each of [socket.items('past'), mine.items])
      expect(new Set(each.map(({ run_id }) => run_id))).toEqual(new Set([runId]))

    const forbidden = 'this key or token gives access to one run only, which is not the requested one'
    for (const run_id of [other, [runId, other]])
      expect(await socket.ask({ op: 'subscribe', id: 'x', filter: { run_id } })).toMatchObject([
        { op: 'error', id: 'x', code: 'FORBIDDEN', message: forbidden },
      ])
    expect(verdict(await rejection(service, ofRun(other), { token }))).toBe('403 FORBIDDEN')
    const filtered = await service.api('GET', `${ALL}?run_id=${other}&token=${token}`, undefined, { key: null })
    expect([verdict(filtered), filtered.error?.message]).toEqual(['403 FORBIDDEN', forbidden])
    await Promise.all([socket.close(), stream.close(), mine.close()])
  })

  test('for one agent, or created with an agent key, sees only that agent, as the key does', async () => {
    const tenant = await newTenant(service)
    const [agent, other] = [await newReporter(tenant.api), await newReporter(tenant.api)]
    const [runId, otherRun] = [await agent.start(), await other.start()]
    const credentials: FeedOptions[] = [
      { token: await newToken(tenant, { agent_id: agent.agentId }) },
      { token: await newToken(tenant, {}, agent.agentKey) },
      { key: agent.agentKey },
    ]
    const feeds = await Promise.all(credentials.map((options) => openBoth(tenant, options)))
    await other.events(otherRun, numbered(10, 100))
    await agent.events(runId, numbered(2))
    const message = 'this key or token gives access to one agent only, which is not the requested one'
    for (const [i, { socket, stream, items }] of feeds.entries()) {
      await socket.subscribe('past', { after: 0, filter: { kind: 'event', run_id: [runId, otherRun] } })
      await eventually(() => [...items(), socket.items('past')].every((each) => each.length >= 2))
      for (const each of [...items(), socket.items('past')]) expect(numbersOf(each)).toEqual([0, 1])
      for (const agent_id of [other.agentId, [agent.agentId, other.agentId]])
        expect(await socket.ask({ op: 'subscribe', id: 'x', filter: { agent_id } })).toMatchObject([
          { op: 'error', id: 'x', code: 'FORBIDDEN', message },
        ])
      expect(verdict(await rejection(service, ofRun(otherRun), credentials[i]))).toBe('403 FORBIDDEN')
      await Promise.all([socket.close(), stream.close()])
    }
  })
})

describe('an open feed ends', () => {
  type Both = Awaited<ReturnType<typeof openBoth>>

  async function expectEnded(feeds: readonly Both[], code: number, lasting?: Both): Promise<void> {
    for (const { socket, stream } of feeds) {
      expect((await socket.untilClosed()).code).toBe(code)
      expect(await stream.untilEnded()).toBe('clean')
    }
    if (lasting === undefined) return
    await lasting.socket.ask({ op: 'ping' })
    expect([lasting.socket.closed, lasting.stream.ended]).toEqual([undefined, undefined])
    await Promise.all([lasting.socket.close(), lasting.stream.close()])
  }

  test('with 4001 when its token or key expires', async () => {
    const tenant = await newTenant(service)
    const expires_at = new Date(Date.now() + 600_000).toISOString()
    const { data } = await tenant.api('POST', '/api/v1/keys', { name: 'short', expires_at })
    const feeds = [
      await openBoth(tenant, { token: await newToken(tenant, { ttl_seconds: 600 }) }),
      await openBoth(tenant, { key: data.key }),
    ]
    const lasting = await openBoth(tenant, { token: await newToken(tenant, { ttl_seconds: 3_600 }) })
    aheadMs = 601_000
    await expectEnded(feeds, 4001, lasting)
  })

  /** Each ends the feeds that were opened with `key`. */
  const endings = {
    'its key is revoked': [4001, ({ api }: Tenant, id: string) => api('POST', `/api/v1/keys/${id}/revoke`, {})],
    'its key is rotated': [4001, ({ api }: Tenant, id: string) => api('POST', `/api/v1/keys/${id}/rotate`, {})],
    'its key is rotated and the grace period is over': [
      4001,
      ({ api }: Tenant, id: string) => api('POST', `/api/v1/keys/${id}/rotate`, { grace_seconds: 1 }),
    ],
    'its workspace is suspended': [
      4003,
      ({ workspaceId }: Tenant) =>
        service.api('PATCH', `/api/v1/workspaces/${workspaceId}`, { status: 'suspended' }, { key: OPERATOR_TOKEN }),
    ],
  } as const

  test.each(Object.entries(endings))('when %s', async (what, [code, invalidate]) => {
    const tenant = await newTenant(service)
    const { key, key_id } = await newKey(tenant)
    const feeds = [await openBoth(tenant, { key }), await openBoth(tenant, { token: await newToken(tenant, {}, key) })]
    const another = await openBoth(tenant)
    expect((await invalidate(tenant, key_id)).status).toBe(200)
    if (what.includes('grace'))
      for (const { socket, stream } of feeds) expect([socket.closed, stream.ended]).toEqual([undefined, undefined])
    // A suspension also ends the feeds of other keys.
    if (code === 4003) await expectEnded([...feeds, another], code)
    else await expectEnded(feeds, code, another)
  })

  test('when its agent is archived, for agent keys and for tokens limited to the agent', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const feeds = [
      await openBoth(tenant, { key: agent.agentKey }),
      await openBoth(tenant, { token: await newToken(tenant, { agent_id: agent.agentId }) }),
    ]
    const lasting = await openBoth(tenant)
    expect((await tenant.api('DELETE', `/api/v1/agents/${agent.agentId}`)).status).toBe(200)
    await expectEnded(feeds, 4001, lasting)
  })

  test('by the time revocation is acknowledged: open and opening feeds get nothing acknowledged later', async () => {
    const tenant = await newTenant(service)
    const agent = await newReporter(tenant.api)
    const runId = await agent.start()
    for (let round = 0; round < 12; round++) {
      const { key, key_id } = await newKey(tenant)
      const before = await openBoth(tenant, { key })
      const feeds: (LiveSocket | LiveStream)[] = [before.socket, before.stream]
      // Each opens a little later than the last, so that the revocation meets them in every state.
      const opening = Array.from({ length: 18 }, async (_, i) => {
        for (let turn = 0; turn < i; turn++) await new Promise((resolve) => setImmediate(resolve))
        if (i % 3 > 0) feeds.push(await LiveStream.open(tenant, i % 3 === 1 ? ALL : ofRun(runId), { key }))
        else {
          const socket = await LiveSocket.open(tenant, { key }).catch(() => null)
          if (socket === null) return
          feeds.push(socket)
          socket.send({ op: 'subscribe', id: 's' })
        }
      })
      expect((await tenant.api('POST', `/api/v1/keys/${key_id}/revoke`, {})).status).toBe(200)
      const { first_seq } = await agent.events(runId, [{ type: 'secret' }])
      await Promise.all(opening)
      for (const feed of feeds) {
        if (feed instanceof LiveStream) await feed.untilEnded()
        else expect((await feed.untilClosed()).code).toBe(4001)
        const texts = feed instanceof LiveStream ? [feed.text] : feed.texts
        expect(texts.join()).not.toContain(`"seq":${first_seq},`)
      }
    }
    await eventually(async () => (await gauge(service, 'feed_connections')) === 0)
  })
})

describe('FEED_ORIGINS', () => {
  const PAGE = 'https://app.example.com'
  const FEEDS = [LIVE, ALL]

  /** `open` if a page of this origin may open the feed, otherwise the error. */
  async function opened(at: TestService, path: string, origin: string | undefined): Promise<string> {
    const options = { key: at.workspaceKey, headers: origin === undefined ? undefined : { origin } }
    if (path === LIVE) {
      const socket = await LiveSocket.open(at, options).catch(() => null)
      if (socket === null) return verdict(await rejection(at, path, options))
      await socket.close()
      return 'open'
    }
    const stream = await LiveStream.open(at, path, options)
    await stream.close()
    return stream.status === 200 ? 'open' : verdict(await rejection(at, path, options))
  }

  test('allows the listed origins, the service itself, and clients without an Origin', async () => {
    const strict = await startTestService({ FEED_ORIGINS: `${PAGE}, http://localhost:5173` })
    for (const path of FEEDS) {
      for (const origin of [PAGE, PAGE.toUpperCase(), 'http://localhost:5173', strict.url, undefined])
        expect([path, origin, await opened(strict, path, origin)]).toEqual([path, origin, 'open'])
      for (const origin of [
        'https://evil.example.com',
        'http://app.example.com',
        `${PAGE}:8443`,
        `${PAGE}.evil.com`,
        'http://localhost:5174',
        'null',
        'file://',
        'rubbish',
      ])
        expect([path, origin, await opened(strict, path, origin)]).toEqual([path, origin, '403 FORBIDDEN'])
    }
    // Without a key the error does not reveal the origin list.
    for (const path of FEEDS)
      expect(verdict(await rejection(strict, path, { headers: { origin: 'https://evil.example.com' } }))).toBe(
        '401 UNAUTHENTICATED',
      )
    await strict.stop()
  })

  test('allows every origin when unset', async () => {
    for (const path of FEEDS)
      for (const origin of [PAGE, 'null', undefined]) expect(await opened(service, path, origin)).toBe('open')
  })
})

describe('open feeds are limited', () => {
  async function fill(at: TestService, tenant: Tenant, count: number) {
    const opening = Array.from({ length: count * 3 }, async (_, i) => {
      if (i % 2 === 0) return LiveSocket.open(tenant).catch(() => null)
      const stream = await LiveStream.open(tenant, ALL)
      return stream.status === 200 ? stream : null
    })
    const open = (await Promise.all(opening)).filter((each) => each !== null)
    expect([open.length, await gauge(at, 'feed_connections')]).toEqual([count, count])
    return open
  }

  test('by FEED_CONNECTIONS: 503 with Retry-After until one closes', async () => {
    const small = await startTestService({ FEED_CONNECTIONS: '4' })
    const [tenant, other] = [await newTenant(small), await newTenant(small)]
    const open = await fill(small, tenant, 4)
    for (const path of [LIVE, ALL]) {
      const answer = await rejection(small, path, { key: other.workspaceKey })
      expect([path, verdict(answer), answer.headers.get('retry-after')]).toEqual([path, '503 UNAVAILABLE', '10'])
    }
    await open[0].close()
    const again = await eventually(() => LiveSocket.open(other))
    await Promise.all([...open.slice(1), again].map((each) => each.close()))
    await small.stop()
  })

  test('by FEED_CONNECTIONS_PER_WORKSPACE: 429 with Retry-After, other workspaces are not affected', async () => {
    const small = await startTestService({ FEED_CONNECTIONS_PER_WORKSPACE: '3' })
    const [tenant, other] = [await newTenant(small), await newTenant(small)]
    const open = await fill(small, tenant, 3)
    for (const path of [LIVE, ALL]) {
      const answer = await rejection(small, path, { key: tenant.workspaceKey })
      expect([path, verdict(answer), answer.headers.get('retry-after')]).toEqual([path, '429 RATE_LIMITED', '10'])
    }
    const theirs = await openBoth(other)
    await Promise.all([...open, theirs.socket, theirs.stream].map((each) => each.close()))
    await eventually(async () => (await gauge(small, 'feed_connections')) === 0)
    const again = await LiveSocket.open(tenant)
    await again.close()
    await small.stop()
  })
})
