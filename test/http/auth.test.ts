import { beforeAll, describe, expect, test } from 'bun:test'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { type AuthApp, authApp, verdict } from './auth-app.ts'

/** Authentication, and the order of checks on a request (docs/api.md#order-of-checks). */

let app: AuthApp
let agent: { key: string; keyId: string }

beforeAll(async () => {
  app = await authApp()
  agent = await app.newAgentKey(await app.newAgent())
})

describe('the key', () => {
  test('a missing, malformed, mistyped or unknown key is UNAUTHENTICATED, with a helpful message', async () => {
    const mistyped = app.owner.key.slice(0, -1) + (app.owner.key.endsWith('a') ? 'b' : 'a')
    const cases: [Record<string, string>, string][] = [
      [{}, 'send a key: Authorization: Bearer <key>'],
      [{ authorization: '' }, 'send a key: Authorization: Bearer <key>'],
      [{ authorization: app.owner.key }, 'send a key: Authorization: Bearer <key>'],
      [{ authorization: `Basic ${app.owner.key}` }, 'send a key: Authorization: Bearer <key>'],
      [{ authorization: 'Bearer' }, 'send a key: Authorization: Bearer <key>'],
      [{ authorization: `Bearer ${app.owner.key} x` }, 'send a key: Authorization: Bearer <key>'],
      [{ authorization: 'Bearer nonsense' }, 'the key is not valid'],
      [{ authorization: `Bearer ${mistyped}` }, 'the key is not valid'],
      [{ authorization: `Bearer ${mintToken('workspace').text}` }, 'the key is not valid'],
      [{ authorization: `Bearer ${'x'.repeat(8_000)}` }, 'the key is not valid'],
      [{ 'x-api-key': app.owner.key }, 'send a key: Authorization: Bearer <key>'],
    ]
    for (const [headers, message] of cases) {
      const answer = await app.call('GET', '/reading', { headers })
      expect([verdict(answer), answer.error?.message]).toEqual(['401 UNAUTHENTICATED', message])
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
  })

  test('the Bearer scheme is case-insensitive', async () => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer '])
      expect(
        (await app.call('GET', '/reading', { headers: { authorization: `${scheme} ${app.owner.key}` } })).status,
      ).toBe(200)
  })

  test('identifies the caller to the handler', async () => {
    const { data } = await app.call('GET', '/reading', { key: agent.key })
    expect(data).toEqual({
      keyId: agent.keyId,
      type: 'agent',
      partition: 0,
      workspaceId: app.owner.workspaceId,
      agentId: expect.any(String),
    })
  })

  test('an expired key is UNAUTHENTICATED', async () => {
    const { key } = await app.newKey({ expires_at: new Date(app.clock.now() + 10_000).toISOString() })
    expect((await app.call('GET', '/reading', { key })).status).toBe(200)
    app.clock.aheadMs += 10_001
    const answer = await app.call('GET', '/reading', { key })
    expect([verdict(answer), answer.error?.message]).toEqual(['401 UNAUTHENTICATED', 'the key has expired'])
  })
})

describe('the type of key', () => {
  test('ingest accepts only an agent key', async () => {
    expect((await app.call('POST', '/ingest', { key: agent.key })).status).toBe(200)
    const answer = await app.call('POST', '/ingest', { key: app.owner.key })
    expect(verdict(answer)).toBe('403 FORBIDDEN')
    expect(answer.error?.message).toContain('agent key')
  })

  test('management accepts only a workspace key', async () => {
    const id = crypto.randomUUID()
    const routes = [
      ['POST', '/api/v1/keys'],
      ['GET', '/api/v1/keys'],
      ['POST', `/api/v1/keys/${id}/revoke`],
      ['POST', `/api/v1/keys/${id}/rotate`],
      ['POST', `/api/v1/agents/${id}/keys`],
      ['POST', '/api/v1/agents'],
      ['GET', '/api/v1/agents'],
      ['GET', `/api/v1/agents/${id}`],
      ['PATCH', `/api/v1/agents/${id}`],
      ['DELETE', `/api/v1/agents/${id}`],
    ] as const
    for (const [method, path] of routes) {
      expect(verdict(await app.call(method, path, { key: agent.key }))).toBe('403 FORBIDDEN')
      expect(verdict(await app.call(method, path))).toBe('401 UNAUTHENTICATED')
    }
  })

  test('reads accept both', async () => {
    for (const key of [agent.key, app.owner.key]) expect((await app.call('GET', '/reading', { key })).status).toBe(200)
  })
})

describe('the order of checks', () => {
  const rubbish = '{"a":'

  test('checks size before the key, and key and scope before content', async () => {
    const path = '/api/v1/keys'
    expect(verdict(await app.call('POST', path, { body: rubbish }))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await app.call('POST', path, { key: agent.key, body: rubbish }))).toBe('403 FORBIDDEN')
    expect(verdict(await app.call('POST', path, { key: app.owner.key, body: rubbish }))).toBe('400 VALIDATION_ERROR')
    expect(verdict(await app.call('POST', path, { body: 'x'.repeat((1 << 20) + 1) }))).toBe('413 PAYLOAD_TOO_LARGE')
    expect(verdict(await app.call('POST', '/api/v1/agents/no-uuid/keys', { key: 'svc_ws_x' }))).toBe(
      '401 UNAUTHENTICATED',
    )
    expect(verdict(await app.call('POST', '/api/v1/agents/no-uuid/keys', { key: app.owner.key }))).toBe(
      '400 VALIDATION_ERROR',
    )
  })

  test('checks scope before rate and rate before content; authenticated responses carry rate limit headers', async () => {
    const limited = await authApp({ rateLimits: { readsPerMinute: 2 } })
    const { key } = limited.owner
    const first = await limited.call('POST', '/api/v1/keys', { key, body: { name: 'k' } })
    expect(first.headers.get('ratelimit-policy')).toBe('"reads";q=2;w=60')
    expect(first.headers.get('ratelimit')).toStartWith('"reads";r=1;')
    expect(verdict(await limited.call('POST', '/api/v1/keys', { key, body: rubbish }))).toBe('400 VALIDATION_ERROR')
    const rejected = await limited.call('POST', '/api/v1/keys', { key, body: rubbish })
    expect(verdict(rejected)).toBe('429 RATE_LIMITED')
    expect(Number(rejected.headers.get('retry-after'))).toBeWithin(1, 61)
    expect(verdict(await limited.call('POST', '/ingest', { key }))).toBe('403 FORBIDDEN')
    // Another key has its own limit.
    expect((await limited.call('GET', '/reading', { key: first.data.key })).status).toBe(200)
  })
})
