import { afterEach, describe, expect, test } from 'bun:test'
import { createEnvelope } from '../../src/base/http/envelope.ts'
import { mint } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { FeedTokens, feedTokenRoutes, sweepFeedTokens } from '../../src/feeds/live/feed-tokens.ts'
import { unavailableOf } from '../../src/stores/postgres/connect.ts'
import type { FeedCaller } from '../../src/tenants/keys/schema.ts'
import { hashKey } from '../../src/tenants/keys/token.ts'
import { type Answer, createApi } from '../support/api.ts'
import { freshDatabase } from '../support/postgres.ts'
import { storesOn } from '../support/runs.ts'
import { atEnd } from '../support/teardown.ts'
import { authApp, verdict } from './auth-app.ts'

/** Feed tokens, and how they end with their key (docs/feeds.md#feed-tokens). */

const INVALID = '401 UNAUTHENTICATED'
const SECOND_MS = 1_000

/** {@link authApp} with the route of feed tokens and a route that returns the caller for `?token=`. */
async function feedApp(options: Parameters<typeof authApp>[0] = {}) {
  const auth = await authApp(options)
  const { sql, clock, guards, ring, owner } = auth
  const { directory, runs } = storesOn(sql)
  const app = createEnvelope({ log: createLog('error'), limits: { body_bytes: 1 << 20 }, unavailableOf })
    .use(feedTokenRoutes({ guards, feedTokens: new FeedTokens({ sql, clock, directory, ring }) }))
    .get('/feed', async ({ query }) => ({ ...(await ring.authenticateFeed(query.token ?? '')) }))
    .listen({ port: 0, hostname: '127.0.0.1' })
  atEnd(() => app.stop(true))
  const api = createApi(`http://127.0.0.1:${app.server!.port}`, owner.key)
  const create = (body: object = {}, key = owner.key, headers = {}) =>
    api('POST', '/api/v1/feed-tokens', body, { key, headers })
  return {
    ...auth,
    directory,
    create,
    async newToken(body: object = {}, key = owner.key): Promise<string> {
      const { data, text } = await create(body, key)
      if (data === null) throw new Error(text)
      return data.token
    },
    feed: (token: string) => api('GET', `/feed?token=${encodeURIComponent(token)}`, undefined, { key: null }),
    async newRun(agentId: string, workspaceId = owner.workspaceId): Promise<string> {
      const caller = { keyId: mint.uuid(), type: 'agent', workspaceId, partition: 0, agentId } as const
      return (await runs.start(caller, { agent_id: agentId }, mint)).run_id
    },
  }
}

const app = await feedApp()

afterEach(() => {
  app.clock.aheadMs = 0
})

/** The scope of a token created with `body`, or the error. */
async function scopeOf(body: object, key = app.owner.key): Promise<unknown> {
  const created = await app.create(body, key)
  if (created.error !== null) return [verdict(created), created.error.message]
  const { data } = (await app.feed(created.data.token)) as { data: FeedCaller }
  expect(data.caller.agentId).toBe(data.agentId)
  return { agentId: data.agentId, runId: data.runId }
}

async function errorOf(answer: Promise<Answer>): Promise<string> {
  const { error } = await answer
  return `${error?.code}: ${error?.message}`
}

describe('creating a feed token', () => {
  test('works with both key types; the token acts for that key and is stored only as a hash', async () => {
    const agentId = await app.newAgent()
    const agentKey = await app.newAgentKey(agentId)
    for (const [key, type] of [
      [app.owner.key, 'workspace'],
      [agentKey.key, 'agent'],
    ] as const) {
      const { status, data } = await app.create({}, key)
      expect([status, Object.keys(data).sort()]).toEqual([200, ['expires_at', 'token']])
      expect(data.token).toMatch(/^svc_feed_[0-9A-Za-z]{49}$/)
      const { keyId } = await app.ring.authenticate(key)
      const opened = await app.feed(data.token)
      expect(opened.data.caller).toMatchObject({ keyId, type, workspaceId: app.owner.workspaceId })
      const [row] = await app.sql`
        select feed_tokens::text as stored from feed_tokens where hash = ${hashKey(data.token)}`
      expect(row!.stored).not.toContain(data.token.slice(-20))
    }
  })

  test('lasts 15 minutes by default and an hour at most', async () => {
    for (const [body, seconds] of [
      [{}, 900],
      [{ ttl_seconds: 1 }, 1],
      [{ ttl_seconds: 3600 }, 3600],
    ] as const) {
      const before = Date.now()
      const { data } = await app.create(body)
      const madeAt = Date.parse(data.expires_at) - seconds * SECOND_MS
      expect([madeAt >= before, madeAt <= Date.now()]).toEqual([true, true])
    }
    for (const ttl_seconds of [0, -1, 3601, 1.5, '900', null])
      expect(await errorOf(app.create({ ttl_seconds }))).toStartWith('VALIDATION_ERROR: ttl_seconds: expected')
    expect(await errorOf(app.create({ ttl: 5 }))).toStartWith('VALIDATION_ERROR: ttl: ')
    expect(await errorOf(app.create({ run_id: 'x' }))).toStartWith('VALIDATION_ERROR: run_id: ')
  })

  test('expires no later than its key', async () => {
    const expires_at = new Date(Date.now() + 60 * SECOND_MS).toISOString()
    const { key } = await app.newKey({ expires_at })
    expect((await app.create({}, key)).data.expires_at).toBe(expires_at)
  })

  test("limits the token to the requested scope, which must be within the caller's", async () => {
    const [agentId, otherId, archivedId] = [await app.newAgent(), await app.newAgent(), await app.newAgent()]
    const { key } = await app.newAgentKey(agentId)
    const [runId, otherRun] = [await app.newRun(agentId), await app.newRun(otherId)]
    await app.call('DELETE', `/api/v1/agents/${archivedId}`, { key: app.owner.key })
    const nowhere = mint.uuid()

    expect(await scopeOf({})).toEqual({ agentId: null, runId: null })
    expect(await scopeOf({ agent_id: agentId.toUpperCase() })).toEqual({ agentId, runId: null })
    expect(await scopeOf({ run_id: runId.toUpperCase() })).toEqual({ agentId: null, runId })
    expect(await scopeOf({ agent_id: agentId, run_id: runId })).toEqual({ agentId, runId })
    expect(await scopeOf({}, key)).toEqual({ agentId, runId: null })
    expect(await scopeOf({ agent_id: agentId }, key)).toEqual({ agentId, runId: null })
    expect(await scopeOf({ run_id: runId }, key)).toEqual({ agentId, runId })

    const noAgent = ['404 NOT_FOUND', 'agent does not exist']
    const noRun = ['404 NOT_FOUND', 'run does not exist']
    for (const as of [app.owner.key, key]) {
      expect(await scopeOf({ agent_id: nowhere }, as)).toEqual(noAgent)
      expect(await scopeOf({ agent_id: archivedId }, as)).toEqual(noAgent)
      expect(await scopeOf({ run_id: nowhere }, as)).toEqual(noRun)
      expect(await scopeOf({ agent_id: agentId, run_id: nowhere }, as)).toEqual(noRun)
    }
    const othersAgent = ['403 FORBIDDEN', 'this key belongs to another agent']
    const othersRun = ['403 FORBIDDEN', 'this run belongs to another agent']
    expect(await scopeOf({ agent_id: otherId }, key)).toEqual(othersAgent)
    expect(await scopeOf({ agent_id: otherId, run_id: otherRun }, key)).toEqual(othersAgent)
    expect(await scopeOf({ run_id: otherRun }, key)).toEqual(othersRun)
    expect(await scopeOf({ agent_id: agentId, run_id: otherRun }, key)).toEqual(othersRun)
    expect(await scopeOf({ agent_id: agentId, run_id: otherRun })).toEqual([
      '400 VALIDATION_ERROR',
      'run_id: expected a run of the agent in agent_id',
    ])
  })

  test('rejects agents and runs of another workspace', async () => {
    const tenant = await app.newWorkspace()
    const agentId = await app.newAgent()
    const runId = await app.newRun(agentId)
    expect(await scopeOf({ agent_id: agentId }, tenant.key)).toEqual(['404 NOT_FOUND', 'agent does not exist'])
    expect(await scopeOf({ run_id: runId }, tenant.key)).toEqual(['404 NOT_FOUND', 'run does not exist'])
    const { caller } = await app.ring.authenticateFeed(await app.newToken({}, tenant.key))
    expect(caller.workspaceId).toBe(tenant.workspaceId)
    expect(await app.directory.find(caller.workspaceId, runId)).toBeNull()
  })
})

describe('using a feed token', () => {
  test('opens feeds only, even when the token is cached', async () => {
    const token = await app.newToken()
    for (const round of ['unknown', 'known']) {
      for (const [method, path] of [
        ['GET', '/reading'],
        ['GET', '/api/v1/agents'],
        ['POST', '/ingest'],
        ['POST', '/api/v1/keys'],
      ] as const)
        expect([round, await errorOf(app.call(method, path, { key: token }))]).toEqual([
          round,
          'UNAUTHENTICATED: a feed token can only open live feeds; send a key',
        ])
      expect(verdict(await app.create({}, token))).toBe(INVALID)
      expect(verdict(await app.feed(token))).toBe('200')
    }
  })

  test('is rejected once expired', async () => {
    const token = await app.newToken({ ttl_seconds: 60 })
    const unseen = await app.newToken({ ttl_seconds: 60 })
    app.clock.aheadMs = 30 * SECOND_MS
    expect(verdict(await app.feed(token))).toBe('200')
    app.clock.aheadMs = 61 * SECOND_MS
    for (const expired of [token, unseen])
      expect(await errorOf(app.feed(expired))).toBe('UNAUTHENTICATED: the feed token has expired')
  })
})

describe('a feed token stops working on the next request', () => {
  test('after its key is revoked', async () => {
    for (let i = 0; i < 10; i++) {
      const { key, keyId } = await app.newKey()
      const [used, unused] = [await app.newToken({}, key), await app.newToken({}, key)]
      expect(verdict(await app.feed(used))).toBe('200')
      await app.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: app.owner.key })
      for (const token of [used, unused])
        expect(await errorOf(app.feed(token))).toBe('UNAUTHENTICATED: the feed token has been revoked')
      expect(verdict(await app.create({}, key))).toBe(INVALID)
    }
  })

  test('after the agent of its key or of its scope is archived', async () => {
    const agentId = await app.newAgent()
    const runId = await app.newRun(agentId)
    const { key } = await app.newAgentKey(agentId)
    const dying = [await app.newToken({}, key), await app.newToken({ agent_id: agentId })]
    const ofRun = await app.newToken({ run_id: runId })
    for (const token of [...dying, ofRun]) expect(verdict(await app.feed(token))).toBe('200')
    await app.call('DELETE', `/api/v1/agents/${agentId}`, { key: app.owner.key })
    for (const token of dying) expect(verdict(await app.feed(token))).toBe(INVALID)
    await app.call('POST', `/api/v1/agents/${agentId}/restore`, { key: app.owner.key, body: {} })
    for (const token of dying) expect(verdict(await app.feed(token))).toBe(INVALID)
    await app.call('DELETE', `/api/v1/agents/${agentId}`, { key: app.owner.key })
    // Runs of an archived agent stay readable.
    expect(verdict(await app.feed(ofRun))).toBe('200')
  })

  test('in every process, whichever process revoked the key', async () => {
    const { url } = await freshDatabase()
    const times = { sharedBeatMs: 50 }
    const a = await feedApp({ databaseUrl: url, ring: { times } })
    const b = await feedApp({ databaseUrl: url, ring: { times } })
    for (let i = 0; i < 3; i++) {
      const { key, keyId } = await a.newKey()
      const token = await a.newToken({}, key)
      for (const process of [a, b]) expect(verdict(await process.feed(token))).toBe('200')
      await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: a.owner.key })
      for (const process of [b, a]) expect(verdict(await process.feed(token))).toBe(INVALID)
    }
  })
})

test('the sweep deletes only expired tokens', async () => {
  const [short, long] = [await app.newToken({ ttl_seconds: 30 }), await app.newToken({ ttl_seconds: 3600 })]
  app.clock.aheadMs = 40 * SECOND_MS
  expect(await sweepFeedTokens(app.sql, app.clock)).toBeGreaterThan(0)
  expect(await sweepFeedTokens(app.sql, app.clock)).toBe(0)
  expect([verdict(await app.feed(short)), verdict(await app.feed(long))]).toEqual([INVALID, '200'])
  const left = await app.sql`select hash from feed_tokens where hash in (${hashKey(short)}, ${hashKey(long)})`
  expect(left.map((row) => Buffer.from(row.hash))).toEqual([hashKey(long)])
})
