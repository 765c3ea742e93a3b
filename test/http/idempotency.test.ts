import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import { Idempotency, sweepIdempotencyKeys } from '../../src/stores/idempotency/store.ts'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import type { Sign } from '../../src/stores/postgres/liveness.ts'
import { eventually } from '../support/eventually.ts'
import { errorOf, type HttpApp, post, startHttpApp } from '../support/http-app.ts'
import { freshDatabase } from '../support/postgres.ts'

const KEY_A = '0197f3a0-0000-7000-8000-00000000000a'
const KEY_B = '0197f3a0-0000-7000-8000-00000000000b'
const HOUR_MS = 3_600_000
const log = createLog('silent')
const clock = { nowMs: Date.UTC(2026, 0, 31), now: () => clock.nowMs }

interface Thing {
  name: string
  id: string
}

let sql: Sql
let app: HttpApp
/** Another process on the same database. */
let other: HttpApp
/** The handler of the route, and the calls it has received. */
let onThing: (thing: Thing) => unknown
let calls: Thing[]

beforeAll(async () => {
  sql = (await freshDatabase()).sql
  app = await startInstance()
  other = await startInstance()
})

beforeEach(() => {
  calls = []
  onThing = (thing) => thing
})

async function startInstance(instanceId: string = crypto.randomUUID()): Promise<HttpApp> {
  await register(instanceId)
  return startHttpApp({
    idempotency: idempotencyOf(instanceId),
    onThing(thing) {
      calls.push(thing)
      return onThing(thing)
    },
  })
}

async function register(instanceId: string): Promise<void> {
  await sql`insert into instances (instance_id, started_at, seen_at, beats, applied)
    values (${instanceId}, now(), now(), ${BEATS}, 0)`
}

/** Processes that are gone, as another one has noticed. */
let gone: Sign[] = []
const BEATS = 1
const idempotencyOf = (instanceId: string) =>
  new Idempotency({ sql, clock, expiryClock: clock, log, instanceId, gone: () => gone })

function send(idemKey: string, name: string, { at = app, key = KEY_A, token = 'token-a', path = '/things' } = {}) {
  return post(
    at.url + path,
    { name },
    { 'idempotency-key': idemKey, 'x-test-key': key, authorization: `Bearer ${token}` },
  )
}

async function dataOf(response: Response): Promise<Thing> {
  expect(response.status).toBe(200)
  return ((await response.json()) as { data: Thing }).data
}

describe('a retry', () => {
  test('replays the first status and body without running the handler again', async () => {
    const first = await send('repeat', 'a')
    const again = await send('repeat', 'a')
    const elsewhere = await send('repeat', 'a', { at: other })
    const text = await first.text()
    expect([await again.text(), await elsewhere.text()]).toEqual([text, text])
    expect([first, again, elsewhere].map((response) => response.headers.get('idempotent-replayed'))).toEqual([
      null,
      'true',
      'true',
    ])
    expect(again.headers.get('content-type')).toBe('application/json')
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    expect(calls).toHaveLength(1)
  })

  test('with another body, path or query is CONFLICT', async () => {
    await send('other', 'a')
    for (const response of [
      await send('other', 'b'),
      await send('other', 'a', { path: '/things?x=1' }),
      await send('other', 'a', { path: '/echo' }),
    ])
      expect(await errorOf(response)).toMatchObject({
        status: 409,
        code: 'CONFLICT',
        message: 'this Idempotency-Key was used for another request',
      })
  })

  test('with another Content-Encoding is the same request', async () => {
    await send('gzip', 'a')
    const response = await post(`${app.url}/things`, Bun.gzipSync('{"name":"a"}'), {
      'idempotency-key': 'gzip',
      'content-encoding': 'gzip',
      'x-test-key': KEY_A,
      authorization: 'Bearer token-a',
    })
    expect(response.headers.get('idempotent-replayed')).toBe('true')
  })

  test('while the first request is running is CONFLICT, in this and in another process', async () => {
    const gate = Promise.withResolvers<void>()
    onThing = (thing) => gate.promise.then(() => thing)
    const first = send('running', 'a')
    await eventually(() => calls.length === 1)
    for (const at of [app, other]) {
      const response = await send('running', 'a', { at })
      expect(response.headers.get('retry-after')).toBe('1')
      expect(await errorOf(response)).toMatchObject({
        status: 409,
        code: 'CONFLICT',
        message: 'a request with this Idempotency-Key is still running',
      })
    }
    gate.resolve()
    expect((await first).status).toBe(200)
    expect((await send('running', 'a')).headers.get('idempotent-replayed')).toBe('true')
  })

  test('of fifty concurrent requests one runs, and all successful responses are equal', async () => {
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => send('crowd', 'a', { at: index % 2 === 0 ? app : other })),
    )
    expect(calls).toHaveLength(1)
    for (const response of responses) expect([200, 409]).toContain(response.status)
    const texts = await Promise.all(responses.filter(({ status }) => status === 200).map((response) => response.text()))
    expect(new Set(texts).size).toBe(1)
  })

  test('with another API key is a new request', async () => {
    await send('scope', 'a')
    const response = await send('scope', 'a', { key: KEY_B, token: 'token-b' })
    expect(response.headers.get('idempotent-replayed')).toBeNull()
    expect(calls).toHaveLength(2)
  })

  test('after 24 hours is a new request, even before the sweep', async () => {
    await send('old', 'a')
    clock.nowMs += 25 * HOUR_MS
    expect((await send('old', 'b')).status).toBe(200)
    expect(calls).toHaveLength(2)
  })
})

describe('a failed request', () => {
  test('with a client error releases the key for a corrected request', async () => {
    onThing = () => {
      throw new ApiError('NOT_FOUND', 'no such parent')
    }
    expect((await send('corrected', 'a')).status).toBe(404)
    onThing = (thing) => thing
    expect((await dataOf(await send('corrected', 'b'))).name).toBe('b')
  })

  test('with an unknown outcome keeps the key, and the retry mints the same ids', async () => {
    onThing = () => {
      throw new Error('half way')
    }
    expect((await send('crash', 'a')).status).toBe(500)
    expect((await errorOf(await send('crash', 'b'))).code).toBe('CONFLICT')
    onThing = (thing) => thing
    const { id } = await dataOf(await send('crash', 'a'))
    expect(calls.map((call) => call.id)).toEqual([id, id])
  })

  test('whose client has left keeps the key: what failed may have had its effect', async () => {
    const leaving = new AbortController()
    const left = Promise.withResolvers<void>()
    onThing = async () => {
      await left.promise
      throw new Error('the connection broke before the answer came')
    }
    const given = fetch(`${app.url}/things`, {
      method: 'POST',
      body: '{"name":"a"}',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': 'left',
        'x-test-key': KEY_A,
        authorization: 'Bearer token-a',
      },
      signal: leaving.signal,
    })
    await eventually(() => calls.length === 1)
    leaving.abort()
    await expect(given).rejects.toThrow()
    await Bun.sleep(50)
    left.resolve()
    onThing = (thing) => thing
    await eventually(async () => (await send('left', 'a')).status === 200)
    expect(calls.map(({ id }) => id)).toEqual([calls[0].id, calls[0].id])
  })

  test('whose process died is retried with the same ids once its lease is gone', async () => {
    const dyingId = crypto.randomUUID()
    const dying = await startInstance(dyingId)
    onThing = () => new Promise(() => {})
    send('died', 'a', { at: dying }).catch(() => {})
    await eventually(() => calls.length === 1)
    expect((await errorOf(await send('died', 'a'))).message).toContain('still running')
    // It has given a sign of life since it was thought to be gone.
    gone = [{ instanceId: dyingId, beats: BEATS - 1, leaseMs: 1 }]
    expect((await errorOf(await send('died', 'a'))).message).toContain('still running')
    gone = [{ instanceId: dyingId, beats: BEATS, leaseMs: 1 }]
    onThing = (thing) => thing
    expect((await errorOf(await send('died', 'b'))).message).toContain('used for another request')
    const { id } = await dataOf(await send('died', 'a'))
    expect(calls.map((call) => call.id)).toEqual([id, id])
  })

  test('with an invalid body does not use up the key', async () => {
    const response = await post(`${app.url}/things`, {}, { 'idempotency-key': 'refused', 'x-test-key': KEY_A })
    expect(response.status).toBe(400)
    expect((await send('refused', 'a')).status).toBe(200)
  })
})

describe('the Idempotency-Key', () => {
  test.each(['', 'x'.repeat(256), 'é', 'a\tb'])('%p is rejected', async (idemKey) => {
    const response = await post(`${app.url}/things`, { name: 'a' }, { 'idempotency-key': idemKey })
    expect(await errorOf(response)).toMatchObject({
      status: 400,
      code: 'VALIDATION_ERROR',
      message: 'header Idempotency-Key: expected 1 to 255 printable ASCII characters',
    })
    expect(calls).toHaveLength(0)
  })

  test('of 255 printable characters is accepted', async () => {
    const idemKey = `"{ ~!${'x'.repeat(250)}`
    expect((await send(idemKey, 'a')).status).toBe(200)
    expect((await send(idemKey, 'a')).headers.get('idempotent-replayed')).toBe('true')
  })

  test('is ignored on GET', async () => {
    const response = await fetch(`${app.url}/things`, { headers: { 'idempotency-key': '' } })
    expect(response.status).toBe(200)
  })

  test('writes no row when absent', async () => {
    const [{ count: before }] = await sql<[{ count: number }]>`select count(*) from idempotency_keys`
    await post(`${app.url}/things`, { name: 'a' })
    const [{ count: after }] = await sql<[{ count: number }]>`select count(*) from idempotency_keys`
    expect(after).toBe(before)
  })
})

describe('the stored response', () => {
  test('is sealed: it cannot be read from the database or opened with another token', async () => {
    onThing = () => ({ key: 'svc_ws_secret' })
    const first = await send('sealed', 'a', { token: 'the-token' })
    expect(await first.text()).toContain('svc_ws_secret')
    const [row] = await sql<[{ response: Uint8Array }]>`select response from idempotency_keys where idem_key = 'sealed'`
    expect(Buffer.from(row.response).includes('svc_ws_secret')).toBe(false)
    expect((await errorOf(await send('sealed', 'a', { token: 'another-token' }))).code).toBe('CONFLICT')
    expect(await (await send('sealed', 'a', { token: 'the-token' })).text()).toContain('svc_ws_secret')
  })

  test('is deleted after 24 hours', async () => {
    await sql`delete from idempotency_keys`
    await send('sweep-1', 'a')
    clock.nowMs += 23 * HOUR_MS
    await send('sweep-2', 'a')
    expect(await sweepIdempotencyKeys(sql, clock)).toBe(0)
    clock.nowMs += 2 * HOUR_MS
    expect(await sweepIdempotencyKeys(sql, clock)).toBe(1)
    expect(await sql`select idem_key from idempotency_keys`).toMatchObject([{ idem_key: 'sweep-2' }])
  })

  test('is omitted when too large: the retry runs again with the same ids', async () => {
    onThing = ({ id }) => ({ id, text: 'x'.repeat(2 << 20) })
    await send('long', 'a')
    expect((await send('long', 'a')).headers.get('idempotent-replayed')).toBeNull()
    expect(calls).toHaveLength(2)
    expect(calls[0]!.id).toBe(calls[1]!.id)
  })
})

test('a request whose outcome is unknown may be run again by another process, although the first one is alive', async () => {
  const instanceId = crypto.randomUUID()
  await register(instanceId)
  const [first, second] = [idempotencyOf(instanceId), idempotencyOf(crypto.randomUUID())]
  const headers = { 'idempotency-key': 'handed over', authorization: 'Bearer operator' }
  const request = new Request('http://localhost/x', { method: 'POST', headers })
  const call = { request, bytes: new Uint8Array([1, 2, 3]) }
  const begun = await first.begin(call)
  if (!('reservation' in begun)) throw new Error('expected a reservation')
  await expect(second.begin(call)).rejects.toThrow('still running')
  await begun.reservation.suspend()
  const again = await second.begin(call)
  if (!('reservation' in again)) throw new Error('expected a reservation')
  const [before, after] = [begun.reservation.mint, again.reservation.mint]
  expect([after.ulid(), after.secret()]).toEqual([before.ulid(), before.secret()])
  await again.reservation.finish(200, '{}')
  expect(await first.begin(call)).toEqual({ replay: { status: 200, text: '{}' } })
  await sql`delete from instances where instance_id = ${instanceId}`
})
