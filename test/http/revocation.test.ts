import { describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import type { KeyRingDeps } from '../../src/tenants/keys/key-ring.ts'
import type { LeaseTimes } from '../../src/tenants/keys/lease.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase, movableClock } from '../support/postgres.ts'
import { seededRandom } from '../support/random.ts'
import { postgresProxy } from '../support/tcp-proxy.ts'
import { atEnd } from '../support/teardown.ts'
import { type AuthApp, authApp, OPERATOR_TOKEN, verdict } from './auth-app.ts'

/** Once a revocation is acknowledged, no process accepts the key (docs/keys.md#revocation). */

const reads = async (app: AuthApp, key: string) => verdict(await app.call('GET', '/reading', { key }))
const REJECTED = '401 UNAUTHENTICATED'

/** Processes that share one database. */
async function startProcesses(size: number, times: Partial<LeaseTimes> = {}): Promise<AuthApp[]> {
  const { url } = await freshDatabase()
  const apps: AuthApp[] = []
  for (let i = 0; i < size; i++) apps.push(await authApp({ databaseUrl: url, ring: { times } }))
  return apps
}

/** A Postgres client for `url` that closes at the end of the tests. */
function clientOf(url: string, max: number) {
  const sql = connectPostgres(url, { log: createLog('silent'), max })
  atEnd(() => sql.end({ timeout: 0 }))
  return sql
}

/** A process that reaches its database through a proxy, and the database. */
async function startBehindProxy(ring: Partial<KeyRingDeps>, prepare?: (url: string) => Promise<unknown>) {
  const { url } = await freshDatabase()
  await prepare?.(url)
  const proxy = await postgresProxy(url)
  const connections = { sql: clientOf(proxy.url, 2), heartbeat: clientOf(proxy.url, 1), log: createLog('silent') }
  return { url, proxy, app: await authApp({ databaseUrl: url, ring: { ...connections, ...ring } }) }
}

describe('one process', () => {
  test('rejects a revoked key on the very next request', async () => {
    const app = await authApp()
    for (let i = 0; i < 20; i++) {
      const { key, keyId } = await app.newKey()
      expect(await reads(app, key)).toBe('200')
      const revoked = await app.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: app.owner.key })
      expect(revoked.status).toBe(200)
      const next = await app.call('GET', '/reading', { key })
      expect([verdict(next), next.error?.message]).toEqual([REJECTED, 'the key has been revoked'])
    }
  })

  test('a revocation does not wait when no other process is running', async () => {
    const app = await authApp({ ring: { times: { aloneBeatMs: 60_000, settleMaxMs: 0 } } })
    const { keyId } = await app.newKey()
    // Any wait would exceed the limit and return 503.
    const revoked = await app.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: app.owner.key })
    expect(revoked.status).toBe(200)
  })

  test('a lookup that races with the revocation does not cache the key as valid', async () => {
    const { url } = await freshDatabase()
    const proxy = await postgresProxy(url)
    const app = await authApp({ databaseUrl: url, ring: { sql: clientOf(proxy.url, 1) } })
    const other = await authApp({ databaseUrl: url })
    await reads(app, app.owner.key)
    const { key, keyId } = await other
      .call('POST', '/api/v1/keys', { key: app.owner.key, body: { name: 'k' } })
      .then(({ data }) => ({ key: data.key as string, keyId: data.key_id as string }))
    proxy.hold()
    const began = Date.now()
    // Postgres has answered "active", but the answer is held in the proxy.
    const overtaken = reads(app, key)
    await eventually(async () => {
      const answered = await app.sql`
        select pid from pg_stat_activity
        where datname = current_database() and state = 'idle' and query like '%join workspaces using%'
          and state_change > ${new Date(began)}`
      return answered.length > 0
    })
    const revoked = await other.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: app.owner.key })
    expect(revoked.status).toBe(200)
    proxy.release()
    expect(await overtaken).toBe(REJECTED)
    expect(await reads(app, key)).toBe(REJECTED)
  })
})

describe('several processes', () => {
  test('a key revoked by one process is rejected by all on the very next request', async () => {
    const [a, b, c] = (await startProcesses(3, { sharedBeatMs: 50 })) as [AuthApp, AuthApp, AuthApp]
    for (let i = 0; i < 3; i++) {
      const { key, keyId } = await a.newKey()
      for (const app of [a, b, c]) expect(await reads(app, key)).toBe('200')
      await b.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: a.owner.key })
      for (const app of [c, a, b]) expect(await reads(app, key)).toBe(REJECTED)
    }
  })

  test('the same for rotation, an archived agent and a suspended workspace until it is reactivated', async () => {
    const [a, b] = (await startProcesses(2, { sharedBeatMs: 50 })) as [AuthApp, AuthApp]
    const rotated = await a.newKey()
    const agentId = await a.newAgent()
    const ofAgent = await a.newAgentKey(agentId)
    const tenant = await a.newWorkspace()
    for (const { key } of [rotated, ofAgent, tenant]) expect(await reads(b, key)).toBe('200')

    const { data } = await a.call('POST', `/api/v1/keys/${rotated.keyId}/rotate`, { key: a.owner.key })
    expect([await reads(b, rotated.key), await reads(b, data.key)]).toEqual([REJECTED, '200'])
    await a.call('DELETE', `/api/v1/agents/${agentId}`, { key: a.owner.key })
    expect(await reads(b, ofAgent.key)).toBe(REJECTED)
    const setStatus = (status: string) =>
      a.call('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, { key: OPERATOR_TOKEN, body: { status } })
    await setStatus('suspended')
    expect(await reads(b, tenant.key)).toBe('403 FORBIDDEN')
    await setStatus('active')
    expect(await reads(b, tenant.key)).toBe('200')
  })

  test('no request that starts after the acknowledgement is accepted, whatever the timing', async () => {
    const random = seededRandom('revocation race')
    const [a, b] = (await startProcesses(2, { sharedBeatMs: 15 })) as [AuthApp, AuthApp]
    for (let round = 0; round < 12; round++) {
      const { key, keyId } = await a.newKey()
      if (random.bool()) await reads(b, key)
      let answeredAt = Number.POSITIVE_INFINITY
      let accepted = 0
      let late = 0
      let stop = false
      const hammer = async () => {
        while (!stop) {
          const startedAt = performance.now()
          if ((await reads(b, key)) !== '200') continue
          accepted++
          if (startedAt > answeredAt) late++
        }
      }
      const hammering = [hammer(), hammer(), hammer()]
      for (let spin = random.int(0, 3); spin > 0; spin--) await reads(a, a.owner.key)
      await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: a.owner.key })
      answeredAt = performance.now()
      for (let i = 0; i < 5; i++) expect(await reads(b, key)).toBe(REJECTED)
      stop = true
      await Promise.all(hammering)
      expect({ round, late, accepted: accepted >= 0 }).toEqual({ round, late: 0, accepted: true })
    }
  })

  test('a stopped process does not delay a revocation', async () => {
    const [a, b] = (await startProcesses(2, { sharedLeaseMs: 60_000, settleMaxMs: 0 })) as [AuthApp, AuthApp]
    await b.ring.stop()
    const { keyId } = await a.newKey()
    expect((await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: a.owner.key })).status).toBe(200)
  })

  test('a crashed process delays a revocation until its lease expires', async () => {
    const [a] = (await startProcesses(1)) as [AuthApp]
    const { keyId } = await a.newKey()
    const crashed = crypto.randomUUID()
    await a.sql`
      insert into instances (instance_id, started_at, seen_at, beats, lease_ms, applied)
      values (${crashed}, now(), now(), 1, 500, 0)`
    const before = performance.now()
    expect((await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: a.owner.key })).status).toBe(200)
    expect(performance.now() - before).toBeGreaterThan(500)
  })

  test('a process that replaces a crashed one does not wait for its lease', async () => {
    const { url, sql } = await freshDatabase()
    const crashed = crypto.randomUUID()
    await sql`
      insert into instances (instance_id, started_at, seen_at, beats, lease_ms, applied)
      values (${crashed}, now(), now(), 1, 3_600_000, 0)`
    const app = await authApp({ databaseUrl: url, ring: { supersedes: crashed } })
    const { keyId } = await app.newKey()
    expect((await app.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: app.owner.key })).status).toBe(200)
  })
})

describe('when a process cannot reach Postgres', () => {
  const TIMES = { sharedLeaseMs: 600, sharedBeatMs: 50, aloneBeatMs: 50 }

  test('with a shared database, cached keys are valid until its lease ends, and a revocation waits for that', async () => {
    const { url, proxy, app: b } = await startBehindProxy({ times: TIMES })
    const a = await authApp({ databaseUrl: url, ring: { times: TIMES } })
    const { key, keyId } = await b.newKey()
    expect(await reads(b, key)).toBe('200')
    await eventually(async () => (await a.sql`select from instances where lease_ms > 1_000`).length === 0)
    await proxy.cut()
    expect(await reads(b, key)).toBe('200')
    expect((await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: b.owner.key })).status).toBe(200)
    const cutOff = await b.call('GET', '/reading', { key })
    expect([verdict(cutOff), cutOff.headers.get('retry-after')]).toEqual(['503 UNAVAILABLE', '1'])
    await proxy.mend()
    await eventually(async () => (await reads(b, key)) === REJECTED)
    expect(await reads(b, b.owner.key)).toBe('200')
  })

  test("a step of the database's clock ends no lease: a revocation still waits for the process that is cut off", async () => {
    const { url, proxy, app: b } = await startBehindProxy({ times: TIMES }, movableClock)
    const a = await authApp({ databaseUrl: url, ring: { times: TIMES } })
    const { key, keyId } = await b.newKey()
    expect(await reads(b, key)).toBe('200')
    await eventually(async () => (await a.sql`select from instances where lease_ms > 1_000`).length === 0)
    await proxy.cut()
    await a.sql`update clock set ahead = interval '1 hour'`
    expect((await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: b.owner.key })).status).toBe(200)
    expect(await reads(b, key)).toBe('503 UNAVAILABLE')
  })

  test('a single process keeps accepting cached keys and returns 503 for others', async () => {
    const { proxy, app } = await startBehindProxy({ times: TIMES })
    const unseen = await app.newKey()
    expect(await reads(app, app.owner.key)).toBe('200')
    await proxy.cut()
    const cutAt = performance.now()
    await eventually(async () => {
      expect(await reads(app, app.owner.key)).toBe('200')
      return performance.now() > cutAt + 2 * TIMES.sharedLeaseMs
    })
    expect(await reads(app, unseen.key)).toBe('503 UNAVAILABLE')
    await proxy.mend()
    await eventually(async () => (await reads(app, unseen.key)) === '200')
  })

  test('with the embedded database, cached keys stay valid during any outage', async () => {
    const { proxy, app } = await startBehindProxy({ exclusive: true, times: { ...TIMES, aloneLeaseMs: 1 } })
    expect(await reads(app, app.owner.key)).toBe('200')
    await proxy.cut()
    expect(await reads(app, app.owner.key)).toBe('200')
  })

  test('after a second process joins during the outage, a revocation waits for the long lease of the first', async () => {
    // Longer than the second process takes to start on a busy machine, so that the first one's lease still runs then.
    const times = { ...TIMES, aloneLeaseMs: 6_000, settleMaxMs: 300 }
    const { url, proxy, app: b } = await startBehindProxy({ times })
    const { key, keyId } = await b.newKey()
    expect(await reads(b, key)).toBe('200')
    await proxy.cut()
    const a = await authApp({ databaseUrl: url, ring: { times, log: createLog('silent') } })
    const revoke = () => a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: b.owner.key })
    expect(verdict(await revoke())).toBe('503 UNAVAILABLE')
    expect(await reads(a, key)).toBe(REJECTED)
    const confirmed = await eventually(async () => (await revoke()).status === 200)
    expect([confirmed, await reads(b, key)]).toEqual([true, '503 UNAVAILABLE'])
  })

  test('a process whose registration was deleted registers again and drops its cached keys', async () => {
    const [a, b] = (await startProcesses(2, TIMES)) as [AuthApp, AuthApp]
    const { key, keyId } = await a.newKey()
    expect(await reads(b, key)).toBe('200')
    let closed = 0
    b.ring.onKeysInvalidated((isDead) => {
      if (isDead({ keyId, type: 'workspace', workspaceId: a.owner.workspaceId, partition: 0, agentId: null })) closed++
    })
    await a.sql`delete from instances`
    await eventually(() => closed > 0)
    await eventually(async () => (await a.sql`select instance_id from instances`).length === 2)
    await a.call('POST', `/api/v1/keys/${keyId}/revoke`, { key: a.owner.key })
    expect(await reads(b, key)).toBe(REJECTED)
  })
})
