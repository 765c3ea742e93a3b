import { beforeAll, describe, expect, test } from 'bun:test'
import type { ScoreRecord } from '../../src/activity/scores/schema.ts'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** Scores that pages write with feed tokens: docs/feeds.md#feed-tokens. */

const PAGE = 'https://shop.example'
let service: TestService
let tenant: Tenant
let agent: Reporter

beforeAll(async () => {
  service = await startTestService({ FEED_ORIGINS: PAGE })
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
})

async function newToken(scores: object, more: object = {}, key?: string): Promise<string> {
  const answer = await tenant.api('POST', '/api/v1/feed-tokens', { scores, ...more }, key === undefined ? {} : { key })
  expect(verdict(answer)).toBe('200')
  return answer.data.token
}

function score(token: string, runId: string, body: object, headers: Record<string, string> = {}) {
  return tenant.api('POST', `/api/v1/runs/${runId}/scores`, body, { key: token, headers })
}

async function listed(runId: string): Promise<ScoreRecord[]> {
  return (await tenant.api('GET', `/api/v1/runs/${runId}/scores`)).data.items
}

test('a feed token spends a budget of its own, also by calls that are refused', async () => {
  const limited = await startTestService({ RATE_LIMIT_READS_PER_MINUTE: '40' })
  const { api } = limited
  const reporter = await newReporter(api)
  const [runId, other] = [await reporter.start(), await reporter.start()]
  const { token } = (await api('POST', '/api/v1/feed-tokens', { scores: { run_id: runId, names: ['thumbs'] } })).data
  const before = Number(/r=(\d+)/.exec((await api('GET', '/api/v1/runs')).headers.get('ratelimit')!)?.[1])
  expect(before).toBeGreaterThan(10)
  const refused = await Promise.all(
    Array.from({ length: 60 }, () =>
      api('POST', `/api/v1/runs/${other}/scores`, { name: 'thumbs', value: true }, { key: token }),
    ),
  )
  expect(new Set(refused.map(verdict))).toEqual(new Set(['403 FORBIDDEN', '429 RATE_LIMITED']))
  const feeds = await Promise.all(Array.from({ length: 5 }, () => fetch(`${limited.url}/api/v1/stream?token=${token}`)))
  expect(feeds.map(({ status }) => status)).toEqual([429, 429, 429, 429, 429])
  const after = Number(/r=(\d+)/.exec((await api('GET', '/api/v1/runs')).headers.get('ratelimit')!)?.[1])
  expect(after).toBeGreaterThanOrEqual(before - 1)
})

describe('a feed token with scores', () => {
  test('writes scores of its names for its run, with the source person and ids of its subject', async () => {
    const runId = await agent.start()
    const thumbs = { run_id: runId, names: ['thumbs'], subject: 'u1' }
    const token = await newToken(thumbs)
    expect((await score(token, runId, { name: 'thumbs', value: true })).data).toMatchObject({ accepted: 1 })
    // The same person in another tab, who changes their mind; then somebody else, and one without a name.
    expect((await score(await newToken(thumbs), runId, { name: 'thumbs', value: false })).status).toBe(200)
    await score(await newToken({ ...thumbs, subject: 'u2' }), runId, { name: 'thumbs', value: true })
    const nameless = await newToken({ run_id: runId, names: ['thumbs'] }, {}, agent.agentKey)
    await score(nameless, runId, { name: 'thumbs', value: true, comment: 'nice' })
    await score(nameless, runId, { name: 'thumbs', value: false, event_id: 'e' })
    const scores = (await listed(runId)).toReversed()
    expect(scores.map(({ value, source, metadata }) => [value, source, metadata])).toEqual([
      [false, 'person', { subject: 'u1' }],
      [true, 'person', { subject: 'u2' }],
      [true, 'person', {}],
      [false, 'person', {}],
    ] as never)
    expect(new Set(scores.map(({ id }) => id)).size).toBe(4)
    for (const { id } of scores) expect(id).toMatch(/^feed:[\w.]+:[0-9a-f]{24}$/)
  })

  test('writes nothing else: no other run or name, and nothing that would let it replace scores of others', async () => {
    const [runId, other] = [await agent.start(), await agent.start()]
    const token = await newToken({ run_id: runId, names: ['thumbs'], subject: 'u1' })
    const up = { name: 'thumbs', value: true }
    expect(verdict(await score(token, other, up))).toBe('403 FORBIDDEN')
    expect(verdict(await score(token, runId, { ...up, name: 'quality' }))).toBe('403 FORBIDDEN')
    for (const more of [
      { id: 'a' },
      { source: 'judge' },
      { metadata: {} },
      { session_id: 's' },
      { created_at: '2026-01-31T00:00:00Z' },
    ])
      expect([more, verdict(await score(token, runId, { ...up, ...more }))]).toEqual([more, '400 VALIDATION_ERROR'])
    expect(verdict(await score(token, runId, { name: 'thumbs' }))).toBe('400 VALIDATION_ERROR')
    const call = (method: 'GET' | 'POST', path: string, body?: object) => tenant.api(method, path, body, { key: token })
    expect(verdict(await call('GET', `/api/v1/runs/${runId}/scores`))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await call('POST', '/api/ingest/v1/scores', { scores: [{ run_id: runId, ...up }] }))).toBe(
      '401 UNAUTHENTICATED',
    )
    expect(verdict(await call('POST', '/api/v1/feed-tokens', {}))).toBe('401 UNAUTHENTICATED')
    const reading = (await tenant.api('POST', '/api/v1/feed-tokens', { run_id: runId })).data.token
    expect(verdict(await score(reading, runId, up))).toBe('403 FORBIDDEN')
    expect(await listed(runId)).toEqual([])
  })

  test('reads no more than its run', async () => {
    const [runId, other] = [await agent.start(), await agent.start()]
    const token = await newToken({ run_id: runId, names: ['thumbs'] })
    const open = async (path: string) => {
      const response = await fetch(`${tenant.url}/api/v1/${path}token=${token}`)
      await response.body?.cancel()
      return response.status
    }
    expect(await open(`runs/${runId}/stream?`)).toBe(200)
    expect(await open(`runs/${other}/stream?`)).toBe(403)
    expect(await open(`stream?run_id=${other}&`)).toBe(403)
  })

  test('is created only for runs of the key', async () => {
    const runId = await agent.start()
    const sibling = await newReporter(tenant.api)
    const stranger = await newTenant(service)
    const create = (body: object, { api, key }: { api: Tenant['api']; key?: string }) =>
      api('POST', '/api/v1/feed-tokens', body, key === undefined ? {} : { key })
    const scores = { run_id: runId, names: ['thumbs'] }
    expect(verdict(await create({ scores }, stranger))).toBe('404 NOT_FOUND')
    expect(verdict(await create({ scores }, { api: tenant.api, key: sibling.agentKey }))).toBe('403 FORBIDDEN')
    for (const wrong of [
      { scores: { ...scores, names: [] } },
      { scores: { ...scores, subject: 'a:b' } },
      { scores: { ...scores, subject: '' } },
      { scores: { names: ['thumbs'] } },
      { scores, run_id: await agent.start() },
    ])
      expect([wrong, verdict(await create(wrong, tenant))]).toEqual([wrong, '400 VALIDATION_ERROR'])
  })

  test('ends with its key, at once', async () => {
    const runId = await agent.start()
    const { data: key } = await tenant.api('POST', '/api/v1/keys', { name: 'page' })
    const token = await newToken({ run_id: runId, names: ['thumbs'] }, {}, key.key)
    const up = { name: 'thumbs', value: true }
    expect((await score(token, runId, up)).status).toBe(200)
    expect((await tenant.api('POST', `/api/v1/keys/${key.key_id}/revoke`, {})).status).toBe(200)
    expect(verdict(await score(token, runId, up))).toBe('401 UNAUTHENTICATED')
  })

  test('writes a limited number of scores', async () => {
    const runId = await agent.start()
    const token = await newToken({ run_id: runId, names: ['thumbs'] })
    const answers = await Promise.all(
      Array.from({ length: 105 }, (_, n) => score(token, runId, { name: 'thumbs', value: n, event_id: `${n}` })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(100)
    expect(new Set(answers.map(verdict))).toEqual(new Set(['200', '403 FORBIDDEN']))
  })

  test('is accepted from pages of FEED_ORIGINS, whose browsers ask first', async () => {
    const runId = await agent.start()
    const token = await newToken({ run_id: runId, names: ['thumbs'] })
    const url = `${tenant.url}/api/v1/runs/${runId}/scores`
    const preflight = (origin: string) => fetch(url, { method: 'OPTIONS', headers: { origin } })
    const allowed = await preflight(PAGE)
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect(allowed.headers.get('access-control-allow-methods')).toBe('POST')
    expect(allowed.headers.get('access-control-allow-headers')).toContain('authorization')
    expect((await preflight('https://evil.example')).status).toBe(403)
    const up = { name: 'thumbs', value: true }
    const sent = await score(token, runId, up, { origin: PAGE })
    expect([sent.status, sent.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    const refused = await score(token, runId, { name: 'x', value: 1 }, { origin: PAGE })
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([403, '*'])
    expect(verdict(await score(token, runId, up, { origin: 'https://evil.example' }))).toBe('403 FORBIDDEN')
    // Only tokens are for other origins.
    const keyed = await tenant.api('POST', `/api/v1/runs/${runId}/scores`, up, { headers: { origin: PAGE } })
    expect(keyed.headers.get('access-control-allow-origin')).toBeNull()
  })
})
