import { beforeAll, describe, expect, test } from 'bun:test'
import { isWellFormedKey } from '../../src/tenants/keys/token.ts'
import { pagesOf } from '../support/api.ts'
import { type AuthApp, authApp, verdict } from './auth-app.ts'

/** Managing the keys of a workspace (docs/keys.md#managing-keys). */

let app: AuthApp
let owner: string

beforeAll(async () => {
  app = await authApp()
  owner = app.owner.key
})

const post = (path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
  app.call('POST', path, { key: owner, body, headers })
const inAnHour = () => new Date(app.clock.now() + 3_600_000).toISOString()
const listed = async (query: string, key = owner) => {
  const { data } = await app.call('GET', `/api/v1/keys?${query}`, { key })
  return (data.items as { key_id: string }[]).map((item) => item.key_id)
}

describe('POST /api/v1/keys', () => {
  test('creates a workspace key that works immediately', async () => {
    const expiresAt = inAnHour()
    const { status, data } = await post('/api/v1/keys', { name: 'ci', expires_at: expiresAt })
    expect(status).toBe(200)
    expect(data).toEqual({
      key_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      type: 'workspace',
      name: 'ci',
      agent_id: null,
      key: expect.stringMatching(/^svc_ws_[0-9A-Za-z]{49}$/),
      prefix: data.key.slice(0, 11),
      last4: data.key.slice(-4),
      status: 'active',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      created_by: null,
      created_by_name: null,
      last_used_at: null,
      expires_at: expiresAt,
      revoked_at: null,
      replaced_by: null,
    })
    expect(isWellFormedKey(data.key)).toBe('workspace')
    expect((await app.call('GET', '/api/v1/keys', { key: data.key })).status).toBe(200)
  })

  test('shows the key once: neither the list nor the database contains it', async () => {
    const { data } = await post('/api/v1/keys', { name: 'secret' })
    const { text } = await app.call('GET', '/api/v1/keys', { key: owner })
    expect(text).toContain(data.key_id)
    expect(text).not.toContain(data.key)
    const [row] = await app.sql`select api_keys::text as row from api_keys where key_id = ${data.key_id}`
    expect(row!.row).not.toContain(data.key.slice(12, -4))
    expect(row!.row).toContain(new Bun.CryptoHasher('sha256').update(data.key).digest('hex'))
  })

  const rejected: [string, unknown, string][] = [
    ['no name', {}, 'name: required'],
    ['a long name', { name: 'x'.repeat(201) }, 'name: expected at most 200 characters'],
    [
      'an expiry in the past',
      { name: 'a', expires_at: '2020-01-31T09:30:00Z' },
      'expires_at: expected a time in the future',
    ],
    ['an expiry that is not a timestamp', { name: 'a', expires_at: 'tomorrow' }, 'expires_at: expected'],
  ]
  test.each(rejected)('rejects %s', async (_, body, message) => {
    const answer = await post('/api/v1/keys', body)
    expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
    expect(answer.error?.message).toStartWith(message)
  })

  test('accepts any RFC 3339 expiry, and null', async () => {
    const { data } = await post('/api/v1/keys', { name: 'a', expires_at: '2290-01-31T11:30:00.5+02:00' })
    expect(data.expires_at).toBe('2290-01-31T09:30:00.500Z')
    expect((await post('/api/v1/keys', { name: 'a', expires_at: null })).data.expires_at).toBeNull()
  })

  test('a repeat after an answer that was not stored returns the same key', async () => {
    const headers = { 'idempotency-key': 'lost-answer' }
    const lost = await post('/api/v1/keys', { name: 'lost' }, headers)
    // Simulates a crash between storing the key and storing the response.
    await app.sql`update idempotency_keys set status = null, response = null where idem_key = 'lost-answer'`
    const { data } = await post('/api/v1/keys', { name: 'lost' }, headers)
    expect([data.key_id, data.key]).toEqual([lost.data.key_id, lost.data.key])
    expect((await app.call('GET', '/reading', { key: data.key })).status).toBe(200)
    const another = await post('/api/v1/keys', { name: 'lost' }, { 'idempotency-key': 'another' })
    expect(another.data.key).not.toBe(data.key)
  })
})

describe('POST /api/v1/agents/:agent_id/keys', () => {
  test('creates a key for that agent, with or without a name', async () => {
    const agentId = await app.newAgent()
    const { data } = await post(`/api/v1/agents/${agentId.toUpperCase()}/keys`)
    expect(data).toMatchObject({ type: 'agent', agent_id: agentId, name: null, status: 'active' })
    expect(isWellFormedKey(data.key)).toBe('agent')
    expect((await app.call('POST', '/ingest', { key: data.key })).data.agentId).toBe(agentId)
    const named = await post(`/api/v1/agents/${agentId}/keys`, { name: 'prod', expires_at: inAnHour() })
    expect([named.data.name, named.data.status]).toEqual(['prod', 'active'])
  })

  test('an unknown, archived or foreign agent is NOT_FOUND', async () => {
    const archived = await app.newAgent()
    await app.call('DELETE', `/api/v1/agents/${archived}`, { key: owner })
    const tenant = await app.newWorkspace()
    const foreign = await app.newAgent({}, tenant.key)
    for (const id of [crypto.randomUUID(), archived, foreign])
      expect(verdict(await post(`/api/v1/agents/${id}/keys`))).toBe('404 NOT_FOUND')
  })
})

describe('GET /api/v1/keys', () => {
  test('filters by type, agent and status, and sorts newest first', async () => {
    const tenant = await app.newWorkspace()
    const call = (path: string, body: unknown = {}) => app.call('POST', path, { key: tenant.key, body })
    const agentId = await app.newAgent({}, tenant.key)
    const ofAgent = (await call(`/api/v1/agents/${agentId}/keys`)).data.key_id
    const revoked = (await call('/api/v1/keys', { name: 'r' })).data.key_id
    await call(`/api/v1/keys/${revoked}/revoke`)
    const expiring = (
      await call('/api/v1/keys', { name: 'e', expires_at: new Date(app.clock.now() + 1_000).toISOString() })
    ).data
    app.clock.aheadMs += 1_001
    const expired = expiring.key_id
    expect(await listed('', tenant.key)).toEqual([expired, ofAgent, tenant.keyId])
    expect(await listed('type=agent', tenant.key)).toEqual([ofAgent])
    expect(await listed('type=workspace', tenant.key)).toEqual([expired, tenant.keyId])
    expect(await listed(`agent_id=${agentId.toUpperCase()}`, tenant.key)).toEqual([ofAgent])
    expect(await listed('status=active', tenant.key)).toEqual([ofAgent, tenant.keyId])
    expect(await listed('status=revoked', tenant.key)).toEqual([revoked])
    expect(await listed('status=expired', tenant.key)).toEqual([expired])
    expect(await listed(`type=agent&status=revoked&agent_id=${agentId}`, tenant.key)).toEqual([])
  })

  test('paginates without gaps or repeats', async () => {
    const tenant = await app.newWorkspace()
    for (let i = 0; i < 6; i++) await app.call('POST', '/api/v1/keys', { key: tenant.key, body: { name: `${i}` } })
    const pages = await pagesOf<{ name: string }>((cursor) =>
      app.call('GET', `/api/v1/keys?limit=3${cursor}`, { key: tenant.key }),
    )
    expect(pages.map((page) => page.map(({ name }) => name))).toEqual([['5', '4', '3'], ['2', '1', '0'], ['first key']])
  })

  test('rejects invalid query parameters', async () => {
    for (const query of ['status=dead', 'type=any', 'agent_id=x', 'limit=0', 'limit=201', 'cursor=x', 'page=2'])
      expect(verdict(await app.call('GET', `/api/v1/keys?${query}`, { key: owner }))).toBe('400 VALIDATION_ERROR')
  })

  test('shows when a key was last used', async () => {
    const second = await authApp({ databaseUrl: app.url })
    expect((await second.call('GET', '/reading', { key: owner })).status).toBe(200)
    await second.ring.stop()
    const { data } = await app.call('GET', '/api/v1/keys?limit=200', { key: owner })
    const own = data.items.find((item: { name: string }) => item.name === 'first key')
    expect(Math.abs(Date.parse(own.last_used_at) - Date.now())).toBeLessThan(60_000)
  })
})

describe('POST /api/v1/keys/:key_id/revoke', () => {
  test('returns the key record, and is idempotent', async () => {
    const { keyId } = await app.newKey()
    const first = await post(`/api/v1/keys/${keyId}/revoke`)
    expect(first.data).toMatchObject({ key_id: keyId, status: 'revoked', revoked_at: expect.any(String) })
    app.clock.aheadMs += 5_000
    const again = await post(`/api/v1/keys/${keyId.toUpperCase()}/revoke`)
    expect([again.status, again.data]).toEqual([200, first.data])
  })

  test('a workspace key can revoke itself', async () => {
    const { key, keyId } = await app.newKey()
    expect((await app.call('POST', `/api/v1/keys/${keyId}/revoke`, { key })).status).toBe(200)
    expect(verdict(await app.call('POST', `/api/v1/keys/${keyId}/revoke`, { key }))).toBe('401 UNAUTHENTICATED')
  })

  test('an unknown or foreign key is NOT_FOUND, and a foreign key keeps working', async () => {
    const tenant = await app.newWorkspace()
    expect(verdict(await post(`/api/v1/keys/${crypto.randomUUID()}/revoke`))).toBe('404 NOT_FOUND')
    expect(verdict(await post(`/api/v1/keys/${tenant.keyId}/revoke`))).toBe('404 NOT_FOUND')
    expect((await app.call('GET', '/reading', { key: tenant.key })).status).toBe(200)
    expect(await app.sql`select change_id from credential_changes where id = ${tenant.keyId}`).toHaveLength(0)
    expect(verdict(await post('/api/v1/keys/x/revoke'))).toBe('400 VALIDATION_ERROR')
    expect(verdict(await post(`/api/v1/keys/${tenant.keyId}/revoke`, { why: 'x' }))).toBe('400 VALIDATION_ERROR')
  })
})

describe('POST /api/v1/keys/:key_id/rotate', () => {
  test('without a grace period the old key stops working immediately; the new one has its settings', async () => {
    const expiresAt = inAnHour()
    const { key, keyId } = await app.newKey({ name: 'deploy', expires_at: expiresAt })
    const { status, data } = await post(`/api/v1/keys/${keyId}/rotate`)
    expect(status).toBe(200)
    expect(data).toMatchObject({ name: 'deploy', type: 'workspace', expires_at: expiresAt, status: 'active' })
    expect(data.key_id).not.toBe(keyId)
    expect(verdict(await app.call('GET', '/reading', { key }))).toBe('401 UNAUTHENTICATED')
    expect((await app.call('GET', '/reading', { key: data.key })).status).toBe(200)
  })

  test('with a grace period both keys work until it ends', async () => {
    const agentId = await app.newAgent()
    const { key, keyId } = await app.newAgentKey(agentId)
    const { data } = await post(`/api/v1/keys/${keyId}/rotate`, { grace_seconds: 60 })
    expect(data).toMatchObject({ type: 'agent', agent_id: agentId, expires_at: null })
    app.clock.aheadMs += 59_000
    for (const either of [key, data.key]) expect((await app.call('GET', '/reading', { key: either })).status).toBe(200)
    app.clock.aheadMs += 1_001
    expect(verdict(await app.call('GET', '/reading', { key }))).toBe('401 UNAUTHENTICATED')
    expect((await app.call('GET', '/reading', { key: data.key })).status).toBe(200)
    expect(await listed(`agent_id=${agentId}&status=expired`)).toEqual([keyId])
  })

  test('a grace period never extends the expiry of a key', async () => {
    const expiresAt = new Date(app.clock.now() + 5_000).toISOString()
    const { keyId } = await app.newKey({ expires_at: expiresAt })
    await post(`/api/v1/keys/${keyId}/rotate`, { grace_seconds: 86_400 })
    const { data } = await app.call('GET', '/api/v1/keys', { key: owner })
    const old = data.items.find((item: { key_id: string }) => item.key_id === keyId)
    expect(old.expires_at).toBe(expiresAt)
  })

  test('a revoked, expired or already rotated key is CONFLICT', async () => {
    const revoked = await app.newKey()
    await post(`/api/v1/keys/${revoked.keyId}/revoke`)
    expect(verdict(await post(`/api/v1/keys/${revoked.keyId}/rotate`))).toBe('409 CONFLICT')
    const expired = await app.newKey({ expires_at: new Date(app.clock.now() + 1_000).toISOString() })
    app.clock.aheadMs += 1_001
    expect(verdict(await post(`/api/v1/keys/${expired.keyId}/rotate`))).toBe('409 CONFLICT')
    const rotated = await app.newKey()
    const { data } = await post(`/api/v1/keys/${rotated.keyId}/rotate`, { grace_seconds: 60 })
    const again = await post(`/api/v1/keys/${rotated.keyId}/rotate`, { grace_seconds: 60 })
    expect(verdict(again)).toBe('409 CONFLICT')
    expect(again.error?.message).toContain(data.key_id)
  })

  test('a repeat after an answer that was not stored returns the same key, which works', async () => {
    const { keyId } = await app.newKey()
    const headers = { 'idempotency-key': 'lost-rotation' }
    const lost = await post(`/api/v1/keys/${keyId}/rotate`, {}, headers)
    await app.sql`update idempotency_keys set status = null, response = null where idem_key = 'lost-rotation'`
    const { data } = await post(`/api/v1/keys/${keyId}/rotate`, {}, headers)
    expect([data.key_id, data.key]).toEqual([lost.data.key_id, lost.data.key])
    expect((await app.call('GET', '/reading', { key: data.key })).status).toBe(200)
  })

  test('rejects an invalid grace period, and an unknown or foreign key', async () => {
    const { keyId } = await app.newKey()
    for (const grace_seconds of [-1, 86_401, 1.5, '60', null])
      expect(verdict(await post(`/api/v1/keys/${keyId}/rotate`, { grace_seconds }))).toBe('400 VALIDATION_ERROR')
    const tenant = await app.newWorkspace()
    for (const id of [crypto.randomUUID(), tenant.keyId])
      expect(verdict(await post(`/api/v1/keys/${id}/rotate`))).toBe('404 NOT_FOUND')
  })
})
