import { describe, expect, test } from 'bun:test'
import { FailureLimit } from '../../src/base/http/rate-limit.ts'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { OPERATOR_TOKEN as SERVICE_TOKEN, startTestService, type TestService } from '../support/service.ts'
import { type AuthApp, authApp, OPERATOR_TOKEN, verdict } from './auth-app.ts'

/** Guesses of the operator token and of keys are limited per address, without affecting valid keys. */

/** A clock that stands still until the test advances it. */
function stoppedTime() {
  const time = { ms: 0, monotonicMs: () => time.ms }
  return time
}

describe('the operator token', () => {
  async function limitedApp(perMinute: number, totalPerMinute?: number) {
    const time = stoppedTime()
    const totals = totalPerMinute === undefined ? {} : { totalPerMinute }
    const app = await authApp({ operatorAttempts: { perMinute, ...totals, monotonicMs: time.monotonicMs } })
    const call = (key: string, address: string) =>
      app.call('GET', '/api/v1/workspaces', { key, headers: { 'x-test-address': address } })
    return { app, time, call, ask: async (key: string, address: string) => verdict(await call(key, address)) }
  }

  test('after 10 wrong tokens an address is blocked, even with the right one; other addresses are not', async () => {
    const { time, call, ask } = await limitedApp(10)
    for (let i = 0; i < 10; i++) expect(await ask(`wrong-token-${i}`, 'a')).toBe('401 UNAUTHENTICATED')
    expect(await ask(OPERATOR_TOKEN, 'a')).toBe('429 RATE_LIMITED')
    expect(await ask(OPERATOR_TOKEN, 'b')).toBe('200')
    const rejected = await call('x', 'a')
    expect([rejected.error!.message, rejected.headers.get('retry-after')]).toEqual([
      'too many wrong operator tokens from this address; retry in 6 s',
      '6',
    ])
    time.ms = 6_001
    expect(await ask(OPERATOR_TOKEN, 'a')).toBe('200')
  })

  test('the right token, a missing token and keys do not count as guesses', async () => {
    const { app, ask } = await limitedApp(2)
    for (let i = 0; i < 5; i++) {
      expect(await ask(OPERATOR_TOKEN, 'a')).toBe('200')
      expect(await ask(app.owner.key, 'a')).toBe('401 UNAUTHENTICATED')
      expect(await ask('', 'a')).toBe('401 UNAUTHENTICATED')
    }
  })

  test('over the total limit, addresses that failed are blocked and the right token works from others', async () => {
    const { ask } = await limitedApp(10, 20)
    for (let i = 0; i < 20; i++) expect(await ask('wrong', `guesser ${i}`)).toBe('401 UNAUTHENTICATED')
    for (let i = 0; i < 20; i++) expect(await ask('wrong-again', `guesser ${i}`)).toBe('429 RATE_LIMITED')
    for (let i = 0; i < 5; i++) expect(await ask(OPERATOR_TOKEN, 'elsewhere')).toBe('200')
  })

  test('counts guesses before the body is read', async () => {
    const { app } = await limitedApp(1)
    const create = (key: string) => app.call('POST', '/api/v1/workspaces', { key, body: 'rubbish' })
    expect(verdict(await create('wrong'))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await create('wrong'))).toBe('429 RATE_LIMITED')
  })
})

describe('unknown keys', () => {
  async function guardedApp(perMinute = 5) {
    const time = stoppedTime()
    const unknownKeys = new FailureLimit({ what: 'unknown keys', perMinute, monotonicMs: time.monotonicMs })
    const app = await authApp({ ring: { unknownKeys } })
    const ask = async (key: string, address = 'a') =>
      verdict(await app.call('GET', '/reading', { key, headers: { 'x-test-address': address } }))
    const guess = (address?: string) => ask(mintToken('agent').text, address)
    const exhaust = async () => {
      for (let i = 0; i < perMinute; i++) expect(await guess()).toBe('401 UNAUTHENTICATED')
      expect(await guess()).toBe('429 RATE_LIMITED')
    }
    return { app, time, ask, guess, exhaust }
  }

  test('over the limit they are 429 without a database lookup, from that address only', async () => {
    const { app, time, guess, exhaust } = await guardedApp()
    await exhaust()
    const before = await lookups(app)
    for (let i = 0; i < 20; i++) expect(await guess()).toBe('429 RATE_LIMITED')
    expect(await lookups(app)).toBe(before)
    expect(await guess('b')).toBe('401 UNAUTHENTICATED')
    time.ms = 12_001
    expect(await guess()).toBe('401 UNAUTHENTICATED')
  })

  test('concurrent guesses cannot exceed the limit', async () => {
    const { guess } = await guardedApp()
    const verdicts = await Promise.all(Array.from({ length: 50 }, () => guess()))
    expect(verdicts.filter((each) => each === '401 UNAUTHENTICATED')).toHaveLength(5)
  })

  test('valid keys still work: cached, new, or created before this process started', async () => {
    const { app, ask, exhaust } = await guardedApp()
    const early = await app.newKey()
    expect(await ask(app.owner.key)).toBe('200')
    await exhaust()
    expect(await ask(app.owner.key)).toBe('200')
    expect(await ask(early.key)).toBe('200')
    expect(await ask((await app.newKey()).key)).toBe('200')
    expect(await ask((await app.newWorkspace()).key)).toBe('200')

    const restarted = await guardedAppOn(app.url)
    const guess = () => restarted.call('GET', '/reading', { key: mintToken('agent').text })
    while (verdict(await guess()) !== '429 RATE_LIMITED');
    expect(verdict(await restarted.call('GET', '/reading', { key: early.key }))).toBe('200')
  })

  test('valid keys and keys with a wrong checksum do not count as guesses', async () => {
    const { app, ask, guess } = await guardedApp(2)
    for (let i = 0; i < 10; i++) {
      const { key } = await app.newKey()
      expect(await ask(key)).toBe('200')
      expect(await ask(`${key}x`)).toBe('401 UNAUTHENTICATED')
    }
    expect(await guess()).toBe('401 UNAUTHENTICATED')
  })

  test('repeating the same unknown key does not count again', async () => {
    const { ask } = await guardedApp(2)
    const { text } = mintToken('agent')
    for (let i = 0; i < 10; i++) expect(await ask(text)).toBe('401 UNAUTHENTICATED')
  })
})

async function guardedAppOn(databaseUrl: string) {
  const unknownKeys = new FailureLimit({ what: 'unknown keys', perMinute: 3, monotonicMs: () => 0 })
  const app = await authApp({ databaseUrl, ring: { unknownKeys } })
  await app.ring.noteIssued()
  return app
}

/** Key lookups as counted by Postgres: index scans on `api_keys`. */
async function lookups(app: AuthApp): Promise<number> {
  await app.sql`select pg_stat_force_next_flush()`
  const [row] = (await app.sql`
    select coalesce(sum(idx_scan), 0)::int as scans from pg_stat_user_indexes where relname = 'api_keys'`) as unknown as [
    { scans: number },
  ]
  return row.scans
}

test('the service counts by the address of the connection, or the one a trusted proxy reports', async () => {
  const bounds = { guessing: { operatorTokensPerMinute: 1 } }
  const direct = await startTestService({}, { bounds })
  const proxied = await startTestService({ TRUSTED_PROXIES: '127.0.0.1,::1' }, { bounds })
  const ask = async ({ api }: TestService, key: string, from: string) =>
    (await api('GET', '/api/v1/workspaces', undefined, { key, headers: { 'x-forwarded-for': from } })).status
  expect(await ask(direct, 'wrong', '9.9.9.1')).toBe(401)
  expect(await ask(direct, SERVICE_TOKEN, '9.9.9.2')).toBe(429)
  expect(await ask(proxied, 'wrong', '9.9.9.1')).toBe(401)
  expect(await ask(proxied, SERVICE_TOKEN, '1.1.1.1, 9.9.9.1')).toBe(429)
  expect(await ask(proxied, SERVICE_TOKEN, '9.9.9.1, 9.9.9.2')).toBe(200)
})
