import { describe, expect, test } from 'bun:test'
import { RunDirectory } from '../../src/activity/runs/directory.ts'
import { ApiError } from '../../src/base/errors.ts'
import { mint } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { FeedTokens } from '../../src/feeds/live/feed-tokens.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { KeyRing, type KeyRingDeps } from '../../src/tenants/keys/key-ring.ts'
import { CredentialLease } from '../../src/tenants/keys/lease.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'
import { KeyStore } from '../../src/tenants/keys/store.ts'
import { hashKey, mintToken } from '../../src/tenants/keys/token.ts'
import { bootstrapWorkspace } from '../../src/tenants/workspaces/bootstrap.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/postgres.ts'
import { postgresProxy } from '../support/tcp-proxy.ts'
import { atEnd } from '../support/teardown.ts'

// Each test takes its own database, which can take a while on a busy machine.
const log = createLog('silent')

/** A ring on its own database, with one workspace and its key; `statements` counts the statements sent to Postgres. */
async function ringOnDatabase(options: Partial<KeyRingDeps> = {}) {
  const { sql: real } = await freshDatabase()
  const clock = { aheadMs: 0, now: () => Date.now() + clock.aheadMs }
  const counted = countStatements(real)
  const ring = new KeyRing({
    sql: counted.sql,
    heartbeat: real,
    clock,
    log,
    instanceId: crypto.randomUUID(),
    exclusive: true,
    ...options,
  })
  await ring.start()
  atEnd(() => ring.stop())
  const first = await bootstrapWorkspace({ sql: real, clock, mint, key: undefined })
  const owner: Caller = {
    keyId: crypto.randomUUID(),
    type: 'workspace',
    workspaceId: first.workspaceId!,
    partition: 0,
    agentId: null,
  }
  const store = new KeyStore({ sql: real, ring, clock })
  const newKey = async (body: object = {}) => store.createForWorkspace(owner, { name: 'k', ...body }, mint)
  return { ring, clock, sql: real, counted, owner, store, newKey, key: first.freshKey! }
}

function countStatements(real: Sql) {
  const counted = { statements: 0, sql: real }
  counted.sql = new Proxy(real, {
    apply(target, self, args) {
      counted.statements++
      return Reflect.apply(target, self, args)
    },
  })
  return counted
}

async function refusal(attempt: () => unknown): Promise<string> {
  try {
    await attempt()
  } catch (error) {
    if (error instanceof ApiError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'accepted'
}

describe('key ring', () => {
  test('a cached key authenticates synchronously, without Postgres', async () => {
    const { ring, counted, key, owner } = await ringOnDatabase()
    const first = ring.authenticate(key)
    expect(first).toBeInstanceOf(Promise)
    expect((await first).workspaceId).toBe(owner.workspaceId)
    const before = counted.statements
    for (let i = 0; i < 1_000; i++) expect(ring.authenticate(key)).not.toBeInstanceOf(Promise)
    expect(counted.statements).toBe(before)
  })

  test.each([
    ['agent', 'the key is not valid', (ring: KeyRing, text: string) => ring.authenticate(text)],
    ['feed', 'the key or feed token is not valid', (ring: KeyRing, text: string) => ring.authenticateFeed(text)],
  ] as const)(
    'rejects a mistyped %s token without Postgres, and looks up an unknown one once per minute',
    async (type, message, authenticate) => {
      const { ring, counted, clock, key } = await ringOnDatabase()
      const refused = (text: string) => refusal(() => authenticate(ring, text))
      const broken = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
      for (const text of [broken, '', 'svc_ws_', 'x'.repeat(100_000), `${key} `])
        expect(await refused(text)).toBe(`UNAUTHENTICATED: ${message}`)
      expect(counted.statements).toBe(0)
      const madeUp = mintToken(type).text
      for (let i = 0; i < 10; i++) expect(await refused(madeUp)).toBe(`UNAUTHENTICATED: ${message}`)
      expect(counted.statements).toBe(1)
      clock.aheadMs += 60_000
      await refused(madeUp)
      expect(counted.statements).toBe(2)
    },
  )

  test('unknown keys take bounded memory and never evict valid ones', async () => {
    const { ring, counted, key } = await ringOnDatabase({ limits: { unknownTokens: 8 } })
    await ring.authenticate(key)
    await Promise.all(Array.from({ length: 100 }, () => refusal(() => ring.authenticate(mintToken('workspace').text))))
    const before = counted.statements
    expect(ring.authenticate(key)).not.toBeInstanceOf(Promise)
    expect(counted.statements).toBe(before)
  })

  test('a thousand requests with one new key make one look-up; a hundred new keys make a few statements', async () => {
    const { ring, counted, key, newKey } = await ringOnDatabase()
    const callers = await Promise.all(Array.from({ length: 1_000 }, () => ring.authenticate(key)))
    expect(new Set(callers.map((caller) => caller.keyId)).size).toBe(1)
    expect(counted.statements).toBe(1)
    const keys = await Promise.all(Array.from({ length: 100 }, () => newKey()))
    counted.statements = 0
    const many = await Promise.all(keys.map(({ key }) => ring.authenticate(key)))
    expect(many.map((caller) => caller.keyId)).toEqual(keys.map((made) => made.key_id))
    expect(counted.statements).toBeLessThanOrEqual(3)
  })

  test('keys beyond the size of the cache still work', async () => {
    const { ring, newKey } = await ringOnDatabase({ limits: { keys: 4 } })
    const keys = await Promise.all(Array.from({ length: 20 }, () => newKey()))
    for (let round = 0; round < 2; round++)
      for (const { key, key_id } of keys) expect((await ring.authenticate(key)).keyId).toBe(key_id)
  })

  test('checks the expiry of a cached key on every use', async () => {
    const { ring, clock, newKey } = await ringOnDatabase()
    const { key } = await newKey({ expires_at: new Date(clock.now() + 60_000).toISOString() })
    await ring.authenticate(key)
    clock.aheadMs = 59_000
    expect(await refusal(() => ring.authenticate(key))).toBe('accepted')
    clock.aheadMs = 60_001
    expect(await refusal(() => ring.authenticate(key))).toBe('UNAUTHENTICATED: the key has expired')
  })

  test('writes last_used_at in batches, not per request', async () => {
    const { ring, counted, sql, newKey } = await ringOnDatabase()
    const keys = await Promise.all([newKey(), newKey(), newKey()])
    for (const { key } of keys) await ring.authenticate(key)
    const before = counted.statements
    for (let i = 0; i < 100; i++) for (const { key } of keys) ring.authenticate(key)
    expect(counted.statements).toBe(before)
    await ring.stop()
    expect(counted.statements).toBeLessThanOrEqual(before + 4)
    const used = await sql`select key_id from api_keys where last_used_at is not null order by key_id`
    expect(used.map((row) => row.key_id)).toEqual(keys.map((key) => key.key_id).sort())
  })

  test('accepts no key after stop', async () => {
    const { ring, key } = await ringOnDatabase()
    await ring.authenticate(key)
    await ring.stop()
    expect(await refusal(() => ring.authenticate(key))).toStartWith('UNAVAILABLE')
  })

  test('listeners learn exactly which callers are no longer valid', async () => {
    const { ring, store, owner, newKey } = await ringOnDatabase()
    const [a, b] = await Promise.all([newKey(), newKey()])
    const open = [await ring.authenticate(a.key), await ring.authenticate(b.key)]
    const dead: string[] = []
    const deaths: unknown[] = []
    const unsubscribe = ring.onKeysInvalidated((reasonOf) => {
      dead.push(...open.filter(reasonOf).map((caller) => caller.keyId))
      deaths.push(...open.map(reasonOf))
    })
    await store.rotate(owner, a.key_id, { grace_seconds: 60 }, mint)
    expect(dead).toEqual([])
    await store.revoke(owner, a.key_id)
    expect(dead).toEqual([a.key_id])
    await ring.change({ scope: 'workspace', id: owner.workspaceId, invalidates: true }, async () => {})
    expect(dead).toEqual([a.key_id, a.key_id, b.key_id])
    expect(deaths).toEqual(['key', null, 'workspace', 'workspace'])
    unsubscribe()
    await store.revoke(owner, b.key_id)
    expect(dead).toHaveLength(3)
  })

  test('answers UNAVAILABLE for an uncached key or token while Postgres is down, never UNAUTHENTICATED', async () => {
    const nowhere = connectPostgres('postgres://nobody@127.0.0.1:1/none', { log, max: 1 })
    atEnd(() => nowhere.end({ timeout: 0 }))
    const { ring } = await ringOnDatabase({ sql: nowhere })
    expect(await refusal(() => ring.authenticate(mintToken('agent').text))).toStartWith('UNAVAILABLE')
    const { text, hash } = mintToken('feed')
    expect(await refusal(() => ring.credentialState(hash.toString('base64')))).toStartWith('UNAVAILABLE')
    expect(await refusal(() => ring.authenticateFeed(text))).toStartWith('UNAVAILABLE')
  })

  test('removes credential changes that every process has applied', async () => {
    const { ring, sql, store, owner, newKey } = await ringOnDatabase({
      exclusive: false,
      times: { aloneBeatMs: 10 },
    })
    for (let i = 0; i < 5; i++) {
      await store.revoke(owner, (await newKey()).key_id)
      await eventually(async () => {
        const [row] =
          await sql`select min(applied) as applied, (select max(change_id) from credential_changes) as newest from instances`
        return row!.applied === row!.newest
      })
    }
    const [{ count }] = (await sql`select count(*)::int as count from credential_changes`) as unknown as [
      { count: number },
    ]
    expect(count).toBeLessThanOrEqual(1)
    await ring.stop()
    expect(await sql`select instance_id from instances`).toHaveLength(0)
  })
})

/** {@link ringOnDatabase}, plus feed tokens created with its keys. */
async function ringWithTokens(options: Partial<KeyRingDeps> = {}) {
  const setup = await ringOnDatabase(options)
  const { ring, sql, clock, key } = setup
  const tokens = new FeedTokens({ sql, clock, directory: new RunDirectory(sql), ring })
  const newToken = async (body: object = {}, of = key) => (await tokens.create(await ring.authenticate(of), body)).token
  return { ...setup, newToken }
}

describe('feed credentials', () => {
  test('a cached feed token authenticates synchronously, like a key, without Postgres', async () => {
    const { ring, counted, key, owner, newToken } = await ringWithTokens()
    const token = await newToken()
    for (const text of [token, key]) {
      const first = await ring.authenticateFeed(text)
      const before = counted.statements
      for (let i = 0; i < 100; i++) {
        const again = ring.authenticateFeed(text)
        expect(again).not.toBeInstanceOf(Promise)
        expect(again).toEqual(first)
      }
      expect(counted.statements).toBe(before)
      expect(first).toMatchObject({ agentId: null, runId: null, caller: { workspaceId: owner.workspaceId } })
      expect(first.credential).toBe(hashKey(text).toString('base64'))
    }
  })

  test('liveness comes from memory and does not count as a use of the key', async () => {
    const { ring, counted, sql, newKey, newToken } = await ringWithTokens()
    const { key, key_id } = await newKey()
    const token = await newToken({}, key)
    const { credential } = await ring.authenticateFeed(token)
    await ring.stop()
    const [used] = await sql`select last_used_at from api_keys where key_id = ${key_id}`
    expect(used!.last_used_at).not.toBeNull()

    const later = new KeyRing({
      sql: counted.sql,
      heartbeat: sql,
      clock: { now: () => Date.now() + 60_000 },
      log,
      instanceId: crypto.randomUUID(),
      exclusive: true,
    })
    await later.start()
    expect(await later.credentialState(credential)).toBe('valid')
    const before = counted.statements
    for (let i = 0; i < 1_000; i++) expect(later.credentialState(credential)).toBe('valid')
    expect(counted.statements).toBe(before)
    await later.stop()
    expect(await sql`select last_used_at from api_keys where key_id = ${key_id}`).toEqual([used!] as never)
    expect(await refusal(() => later.credentialState(credential))).toStartWith('UNAVAILABLE')
  })

  test('are looked up again after eviction, and dead once deleted from Postgres', async () => {
    const { ring, sql, newToken } = await ringWithTokens({ limits: { keys: 4 } })
    const tokens = await Promise.all(Array.from({ length: 10 }, () => newToken()))
    const credentials: string[] = []
    for (const token of tokens) credentials.push((await ring.authenticateFeed(token)).credential)
    for (const credential of credentials) expect(await ring.credentialState(credential)).toBe('valid')
    await sql`delete from feed_tokens`
    expect(await ring.credentialState(credentials[0]!)).toBe('invalid')
  })
})

describe('lease', () => {
  test('a node of a cluster has a short one from its start, even alone', async () => {
    const { url, sql } = await freshDatabase()
    const heartbeat = connectPostgres(url, { log, max: 1 })
    const instanceId = crypto.randomUUID()
    const lease = new CredentialLease({ heartbeat, log, instanceId, exclusive: false, isNode: true }, () => {})
    await lease.start()
    const [row] = await sql`select lease_ms / 1000.0::float8 as seconds from instances`
    expect(row!.seconds).toBeLessThan(2)
    await lease.stop()
    await heartbeat.end()
  })

  test('a long lease stays in the database even when the response to the statement that shortens it is lost', async () => {
    const { url, sql } = await freshDatabase()
    const proxy = await postgresProxy(url)
    const heartbeat = connectPostgres(proxy.url, { log, max: 1 })
    const times = { sharedLeaseMs: 100, aloneLeaseMs: 60_000, aloneBeatMs: 60_000 }
    const instanceId = crypto.randomUUID()
    const lease = new CredentialLease({ heartbeat, log, instanceId, exclusive: false, times }, () => {})
    await lease.start()
    const leaseSeconds = async () => {
      const [row] = await sql`
        select lease_ms / 1000.0::float8 as seconds, seen_at from instances
        where instance_id = ${instanceId}`
      return { seconds: row!.seconds as number, at: (row!.seen_at as Date).getTime() }
    }
    const alone = await leaseSeconds()
    expect(alone.seconds).toBe(60)
    await sql`
      insert into instances (instance_id, started_at, seen_at, beats, lease_ms, applied)
      values (${crypto.randomUUID()}, now(), now(), 1, 60_000, 0)`
    proxy.hold()
    const renewal = lease.renew()
    const written = await eventually(async () => {
      const row = await leaseSeconds()
      return row.at > alone.at && row
    })
    // It still trusts its cache, so other processes must keep waiting for it.
    expect([lease.fresh, written.seconds > 50]).toEqual([true, true])
    proxy.release()
    await renewal
    await lease.renew()
    expect((await leaseSeconds()).seconds).toBeLessThan(2)
    await lease.stop()
    await heartbeat.end({ timeout: 1 })
  })
})
