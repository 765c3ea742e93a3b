import { beforeAll, describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { mint } from '../../src/base/ids.ts'
import { hashKey, isWellFormedKey, mintToken } from '../../src/tenants/keys/token.ts'
import { bootstrapWorkspace } from '../../src/tenants/workspaces/bootstrap.ts'
import { freshDatabase } from '../support/postgres.ts'
import { type AuthApp, authApp, EVENT_RETENTION_DAYS, OPERATOR_TOKEN, verdict } from './auth-app.ts'

/** Workspaces and the operator API (docs/workspaces.md#operator). */

let app: AuthApp

beforeAll(async () => {
  app = await authApp()
})

const operator = (method: string, path: string, body?: unknown) => app.call(method, path, { key: OPERATOR_TOKEN, body })

describe('operator routes', () => {
  const routes = [
    ['POST', '/api/v1/workspaces'],
    ['GET', '/api/v1/workspaces'],
    ['PATCH', `/api/v1/workspaces/${crypto.randomUUID()}`],
  ] as const

  test('are 404 without OPERATOR_TOKEN, whatever key is sent', async () => {
    const closed = await authApp({ operatorToken: undefined })
    for (const [method, path] of routes)
      for (const key of [undefined, 'undefined', OPERATOR_TOKEN, closed.owner.key])
        expect(verdict(await closed.call(method, path, { key }))).toBe('404 NOT_FOUND')
  })

  test('accept only the operator token', async () => {
    for (const [method, path] of routes)
      for (const key of [undefined, 'x', `${OPERATOR_TOKEN}x`, OPERATOR_TOKEN.slice(1), app.owner.key])
        expect(verdict(await app.call(method, path, { key }))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await app.call('GET', '/api/v1/keys', { key: OPERATOR_TOKEN }))).toBe('401 UNAUTHENTICATED')
  })
})

describe('POST /api/v1/workspaces', () => {
  test('creates a workspace with a working key', async () => {
    const { status, data } = await operator('POST', '/api/v1/workspaces', { name: 'acme' })
    expect(status).toBe(200)
    expect(data).toEqual({
      workspace_id: expect.any(String),
      name: 'acme',
      status: 'active',
      retention_days: null,
      created_at: expect.any(String),
      updated_at: data.created_at,
      key_id: expect.any(String),
      key: expect.stringMatching(/^svc_ws_/),
    })
    const caller = await app.call('GET', '/reading', { key: data.key })
    expect(caller.data).toMatchObject({ workspaceId: data.workspace_id, keyId: data.key_id, type: 'workspace' })
  })

  test('rejects a missing, empty or unknown field', async () => {
    for (const body of [{}, { name: '' }, { name: 'a', status: 'active' }, { name: 'x'.repeat(201) }])
      expect(verdict(await operator('POST', '/api/v1/workspaces', body))).toBe('400 VALIDATION_ERROR')
  })

  test('a retry with the same Idempotency-Key creates one workspace', async () => {
    const call = () =>
      app.call('POST', '/api/v1/workspaces', {
        key: OPERATOR_TOKEN,
        body: { name: 'once' },
        headers: { 'idempotency-key': 'a-workspace' },
      })
    const first = await call()
    expect((await call()).text).toBe(first.text)
    await app.sql`update idempotency_keys set status = null, response = null where idem_key = 'a-workspace'`
    const afterCrash = await call()
    expect([afterCrash.data.workspace_id, afterCrash.data.key]).toEqual([first.data.workspace_id, first.data.key])
    expect((await app.call('GET', '/reading', { key: afterCrash.data.key })).status).toBe(200)
    const [row] = await app.sql`select count(*)::int as count from workspaces where name = 'once'`
    expect(row!.count).toBe(1)
  })
})

describe('GET /api/v1/workspaces', () => {
  test('lists all workspaces newest first, in pages', async () => {
    const made: string[] = []
    for (let i = 0; i < 3; i++) made.unshift((await app.newWorkspace()).workspaceId)
    const first = await operator('GET', '/api/v1/workspaces?limit=2')
    const second = await operator('GET', `/api/v1/workspaces?limit=1&cursor=${first.data.next_cursor}`)
    const ids = [...first.data.items, ...second.data.items].map((item: { workspace_id: string }) => item.workspace_id)
    expect(ids).toEqual(made)
    expect(first.data.items[0]).toEqual({
      workspace_id: made[0],
      name: 'another',
      status: 'active',
      retention_days: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
  })
})

describe('PATCH /api/v1/workspaces/:workspace_id', () => {
  test('renames the workspace', async () => {
    const { workspaceId } = await app.newWorkspace()
    app.clock.aheadMs += 1_000
    const { data } = await operator('PATCH', `/api/v1/workspaces/${workspaceId.toUpperCase()}`, { name: 'new name' })
    expect(data).toMatchObject({ workspace_id: workspaceId, name: 'new name', status: 'active' })
    expect(Date.parse(data.updated_at)).toBeGreaterThan(Date.parse(data.created_at))
    const unchanged = await operator('PATCH', `/api/v1/workspaces/${workspaceId}`, {})
    expect(unchanged.data).toEqual(data)
  })

  test('sets and clears retention_days', async () => {
    const { workspaceId } = await app.newWorkspace()
    const path = `/api/v1/workspaces/${workspaceId}`
    app.clock.aheadMs += 1_000
    const { data } = await operator('PATCH', path, { retention_days: 7 })
    expect(data).toMatchObject({ retention_days: 7, name: 'another', status: 'active' })
    expect(Date.parse(data.updated_at)).toBeGreaterThan(Date.parse(data.created_at))
    expect((await operator('PATCH', path, { retention_days: 7 })).data).toEqual(data)
    expect((await operator('PATCH', path, { name: 'b' })).data.retention_days).toBe(7)
    expect((await operator('PATCH', path, { retention_days: null })).data.retention_days).toBeNull()
    for (const retention_days of [0, -1, 1.5, '7', 36_501])
      expect(verdict(await operator('PATCH', path, { retention_days }))).toBe('400 VALIDATION_ERROR')
  })

  test('suspends and reactivates; while suspended its keys are FORBIDDEN from the next request on', async () => {
    const tenant = await app.newWorkspace()
    const agent = await app.newAgentKey(await app.newAgent({}, tenant.key), tenant.key)
    const path = `/api/v1/workspaces/${tenant.workspaceId}`
    expect((await app.call('GET', '/reading', { key: tenant.key })).status).toBe(200)
    expect((await operator('PATCH', path, { status: 'suspended' })).data.status).toBe('suspended')
    for (const { key } of [tenant, agent]) {
      const answer = await app.call('GET', '/reading', { key })
      expect(verdict(answer)).toBe('403 FORBIDDEN')
      expect(answer.error?.message).toContain('no workspace')
    }
    await operator('PATCH', path, { status: 'active' })
    for (const { key } of [tenant, agent]) expect((await app.call('GET', '/reading', { key })).status).toBe(200)
  })

  test('a revoked key of a suspended workspace is still UNAUTHENTICATED', async () => {
    const tenant = await app.newWorkspace()
    await app.call('POST', `/api/v1/keys/${tenant.keyId}/revoke`, { key: tenant.key })
    await operator('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, { status: 'suspended' })
    expect(verdict(await app.call('GET', '/reading', { key: tenant.key }))).toBe('401 UNAUTHENTICATED')
  })

  test('an unknown workspace is NOT_FOUND, and invalid input is a VALIDATION_ERROR', async () => {
    for (const body of [{ name: 'a' }, { status: 'suspended' }])
      expect(verdict(await operator('PATCH', `/api/v1/workspaces/${crypto.randomUUID()}`, body))).toBe('404 NOT_FOUND')
    for (const body of [{ status: 'gone' }, { name: null }, { id: 1 }])
      expect(verdict(await operator('PATCH', `/api/v1/workspaces/${crypto.randomUUID()}`, body))).toBe(
        '400 VALIDATION_ERROR',
      )
    expect(verdict(await operator('PATCH', '/api/v1/workspaces/x', {}))).toBe('400 VALIDATION_ERROR')
  })
})

describe('GET /api/v1/workspace', () => {
  test('returns the workspace of the key, and the shorter of the two times that its events are kept', async () => {
    const { data } = await operator('POST', '/api/v1/workspaces', { name: 'mine' })
    const own = async () => (await app.call('GET', '/api/v1/workspace', { key: data.key })).data
    const { workspace_id, name, created_at } = data
    expect(await own()).toEqual({ workspace_id, name, events_kept_days: EVENT_RETENTION_DAYS, created_at })
    for (const [days, kept] of [
      [7, 7],
      [EVENT_RETENTION_DAYS + 1, EVENT_RETENTION_DAYS],
    ]) {
      await operator('PATCH', `/api/v1/workspaces/${workspace_id}`, { retention_days: days })
      expect((await own()).events_kept_days).toBe(kept)
    }
  })

  test('needs a workspace key', async () => {
    const agent = await app.newAgentKey(await app.newAgent())
    for (const [key, refusal] of [
      [undefined, '401 UNAUTHENTICATED'],
      [OPERATOR_TOKEN, '401 UNAUTHENTICATED'],
      [agent.key, '403 FORBIDDEN'],
    ] as const)
      expect(verdict(await app.call('GET', '/api/v1/workspace', { key }))).toBe(refusal)
  })
})

describe('POST /api/v1/workspaces/:workspace_id/keys', () => {
  const make = (id: string, body: unknown, headers = {}) =>
    app.call('POST', `/api/v1/workspaces/${id}/keys`, { key: OPERATOR_TOKEN, body, headers })

  test('creates a working workspace key when the owner has none left', async () => {
    const tenant = await app.newWorkspace()
    await app.call('POST', `/api/v1/keys/${tenant.keyId}/revoke`, { key: tenant.key, body: {} })
    const { status, data } = await make(tenant.workspaceId.toUpperCase(), { name: 'regained' })
    expect([status, data.type, data.name, data.agent_id]).toEqual([200, 'workspace', 'regained', null])
    const listed = await app.call('GET', '/api/v1/keys', { key: data.key })
    expect(listed.data.items.map((each: { key_id: string }) => each.key_id)).toEqual([data.key_id])
  })

  test('needs neither name nor expiry, and a retry with the same Idempotency-Key returns the same key', async () => {
    const tenant = await app.newWorkspace()
    const headers = { 'idempotency-key': 'regain' }
    const first = await make(tenant.workspaceId, {}, headers)
    const again = await make(tenant.workspaceId, {}, headers)
    expect(again.data).toEqual(first.data)
    expect([first.data.name, first.data.expires_at]).toEqual([null, null])
  })

  test('rejects other keys, unknown workspaces and past expiries', async () => {
    const tenant = await app.newWorkspace()
    const path = `/api/v1/workspaces/${tenant.workspaceId}/keys`
    expect(verdict(await app.call('POST', path, { key: tenant.key, body: {} }))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await make(crypto.randomUUID(), {}))).toBe('404 NOT_FOUND')
    expect(verdict(await make('x', {}))).toBe('400 VALIDATION_ERROR')
    expect(verdict(await make(tenant.workspaceId, { expires_at: '2020-01-01T00:00:00Z' }))).toBe('400 VALIDATION_ERROR')
    expect(verdict(await make(tenant.workspaceId, { expires: 1 }))).toBe('400 VALIDATION_ERROR')
    await app.sql`update workspaces set is_erasing = true where workspace_id = ${tenant.workspaceId}`
    expect(verdict(await make(tenant.workspaceId, {}))).toBe('409 CONFLICT')
  })
})

describe('the first startup', () => {
  const keysOf = (sql: Awaited<ReturnType<typeof freshDatabase>>['sql']) =>
    sql`select hash, workspaces.name, type from api_keys join workspaces using (workspace_id)`

  test('creates the workspace default with one new key; a second startup creates nothing', async () => {
    const { sql } = await freshDatabase()
    const deps = { sql, clock: systemClock, mint, key: undefined }
    const first = await bootstrapWorkspace(deps)
    expect(isWellFormedKey(first.freshKey!)).toBe('workspace')
    expect(await bootstrapWorkspace(deps)).toEqual({ workspaceId: null, freshKey: null, keyIgnored: false })
    const rows = await keysOf(sql)
    expect(rows).toHaveLength(1)
    expect([rows[0]!.name, rows[0]!.type]).toEqual(['default', 'workspace'])
    expect(hashKey(first.freshKey!).equals(rows[0]!.hash)).toBe(true)
  })

  test('uses BOOTSTRAP_WORKSPACE_KEY, and does not return it', async () => {
    const { sql } = await freshDatabase()
    const { text } = mintToken('workspace')
    const first = await bootstrapWorkspace({ sql, clock: systemClock, mint, key: text })
    expect(first.freshKey).toBeNull()
    const rows = await keysOf(sql)
    expect(rows).toHaveLength(1)
    expect(hashKey(text).equals(rows[0]!.hash)).toBe(true)
  })

  test('reports a later BOOTSTRAP_WORKSPACE_KEY as ignored unless the key works', async () => {
    const { sql } = await freshDatabase()
    const start = (key: string | undefined) => bootstrapWorkspace({ sql, clock: systemClock, mint, key })
    const { text } = mintToken('workspace')
    const ignored = async (key: string | undefined) => (await start(key)).keyIgnored
    expect(await ignored(text)).toBe(false)
    expect(await ignored(text)).toBe(false)
    expect(await ignored(undefined)).toBe(false)
    expect(await ignored(mintToken('workspace').text)).toBe(true)
    await sql`update api_keys set revoked_at = now()`
    expect(await ignored(text)).toBe(true)
  })

  test('concurrent startups create one workspace', async () => {
    const { sql } = await freshDatabase()
    const start = () => bootstrapWorkspace({ sql, clock: systemClock, mint, key: undefined })
    const made = await Promise.all([start(), start(), start(), start()])
    expect(made.filter(({ workspaceId }) => workspaceId !== null)).toHaveLength(1)
    expect(await keysOf(sql)).toHaveLength(1)
  })
})
