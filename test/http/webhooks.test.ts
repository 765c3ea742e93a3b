import { describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import type { StoredWebhook } from '../../src/feeds/webhooks/schema.ts'
import { headersFor, openKeys } from '../../src/feeds/webhooks/signature.ts'
import { WEBHOOKS_MAX } from '../../src/feeds/webhooks/store.ts'
import { createVault } from '../../src/tenants/secrets/vault.ts'
import { type Answer, type Api, newAgent, pagesOf } from '../support/api.ts'
import { newReporter, newTenant } from '../support/feeds.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService } from '../support/service.ts'
import { verdict } from './auth-app.ts'

/** Endpoints of webhooks (docs/webhooks.md). What is sent to them: `webhook-delivery.test.ts`. */

const PATH = '/api/v1/webhooks'
/** Never called: nothing happens in these workspaces, or the endpoint is disabled. */
const URL = 'https://receiver.example/hook'
const { url: databaseUrl, sql } = await freshDatabase()
const service = await startTestService({ DATABASE_URL: databaseUrl, EGRESS_ALLOW: '10.1.2.3:8080' })
const { api, url } = service

function make(body: object = {}, call: Api = api): Promise<Answer> {
  return call('POST', PATH, { url: URL, ...body })
}

async function tenant() {
  return newTenant({ url, api })
}

describe('an endpoint', () => {
  test('can be created, read, listed, edited and deleted', async () => {
    const body = {
      url: `${URL}?a=b`,
      description: 'Größe 📏',
      filter: { kind: 'run', status: ['failed'], tag: 'prod' },
    }
    const { secret, ...made } = (await make({ ...body, format: 'slack', order: 'strict' })).data
    const { webhook_id, created_at, health } = made
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(made).toEqual({
      ...{ webhook_id, ...body, format: 'slack', signing: 'v1', order: 'strict', status: 'active' },
      ...{ disabled_reason: null, public_key: null, version: 1, created_at, updated_at: created_at, health },
    })
    expect(health).toEqual({
      ...{ position: health.position, lag: 0, pending: 0, recovering_until: null },
      ...{ failing_since: null, last_succeeded_at: null, last_failed_at: null },
    })
    expect(health.position).toMatch(/^[\w-]+\.\d+$/)
    const read = (await api('GET', `${PATH}/${webhook_id.toUpperCase()}`)).data
    expect(read).toEqual(made)
    expect((await api('GET', PATH)).data.items).toContainEqual(made)

    const edit = { url: URL, filter: null, description: null, format: 'standard', order: 'run' }
    const edited = (await api('PATCH', `${PATH}/${webhook_id}`, edit)).data
    expect(edited).toEqual({ ...made, ...edit, version: 2, updated_at: edited.updated_at })
    expect((await api('PATCH', `${PATH}/${webhook_id}`, {})).data).toMatchObject(edit)

    expect((await api('DELETE', `${PATH}/${webhook_id}`)).data).toEqual({ webhook_id, deleted: true })
    for (const [method, rest, sent] of CALLS)
      expect(verdict(await api(method, `${PATH}/${webhook_id}${rest}`, sent))).toBe('404 NOT_FOUND')
  })

  test('begins at the present end of the log', async () => {
    const { api: call } = await tenant()
    const agent = await newReporter(call)
    const { last_seq } = await agent.events(await agent.start(), [{ type: 'a' }, { type: 'b' }])
    const { health } = (await make({}, call)).data
    expect(Number(health.position.split('.')[1])).toBeGreaterThanOrEqual(last_seq)
  })

  test('that is active again has a clean record and its position', async () => {
    const { webhook_id, health } = (await make({ status: 'disabled' })).data
    await sql`update webhooks set disabled_reason = 'it fails', failing_since = now(), failed_at = now(), position = 0
      where webhook_id = ${webhook_id}`
    const before = (await api('GET', `${PATH}/${webhook_id}`)).data
    expect(before).toMatchObject({
      status: 'disabled',
      disabled_reason: 'it fails',
      health: { lag: expect.anything() },
    })
    expect(before.health.failing_since).not.toBeNull()
    const after = (await api('PATCH', `${PATH}/${webhook_id}`, { status: 'active' })).data
    expect(after).toMatchObject({ status: 'active', disabled_reason: null, health: { failing_since: null } })
    expect(after.health.position).toBe(health.position.replace(/\d+$/, '0'))
    expect(after.health.last_failed_at).toBe(before.health.last_failed_at)
  })

  test('that has stopped says that it is behind, and how much is pending', async () => {
    const { webhook_id } = (await make({ status: 'disabled' })).data
    await sql`
      insert into webhook_retries (webhook_id, workspace_id, seq, delivery_id, type, body, attempt, created_at)
      select webhook_id, workspace_id, i, 'msg_' || i, 'a', '{}', 0, now() from webhooks, generate_series(1, 3) i
      where webhook_id = ${webhook_id}`
    await sql`update webhooks set is_behind = true where webhook_id = ${webhook_id}`
    expect((await api('GET', `${PATH}/${webhook_id}`)).data).toMatchObject({
      status: 'disabled',
      health: { pending: 3 },
    })
    await sql`update webhooks set status = 'active', version = version + 1 where webhook_id = ${webhook_id}`
    expect(['behind', 'active']).toContain((await api('GET', `${PATH}/${webhook_id}`)).data.status)
    await api('DELETE', `${PATH}/${webhook_id}`)
    const [{ count }] = await sql`select count(*)::int from webhook_retries where webhook_id = ${webhook_id}`
    expect(count).toBe(0)
  })
})

/** Every call on an endpoint, with a body that is valid. */
const CALLS: readonly (readonly [method: string, rest: string, body?: object])[] = [
  ['GET', ''],
  ['PATCH', '', { description: 'mine' }],
  ['POST', '/rotate'],
  ['POST', '/test'],
  ['GET', '/deliveries'],
  ['POST', `/deliveries/msg_${'0'.repeat(32)}_e_1/resend`],
  ['POST', '/recover', { after: '0' }],
  ['GET', '/poll'],
  ['DELETE', ''],
]

describe('access', () => {
  test('an endpoint of another workspace does not exist', async () => {
    const { webhook_id } = (await make({ status: 'disabled' })).data
    const before = (await api('GET', `${PATH}/${webhook_id}`)).data
    const { api: call } = await tenant()
    for (const [method, rest, body] of CALLS)
      expect(verdict(await call(method, `${PATH}/${webhook_id}${rest}`, body))).toBe('404 NOT_FOUND')
    expect((await call('GET', PATH)).data.items).toEqual([])
    expect((await api('GET', `${PATH}/${webhook_id}`)).data).toEqual(before)
  })

  test('an agent key is refused, and so is no key', async () => {
    const { webhook_id } = (await make({ status: 'disabled' })).data
    const { agentKey: key } = await newAgent(api)
    for (const [method, rest, body] of [...CALLS, ['GET', 'list'], ['POST', 'list', { url: URL }]] as const) {
      const path = rest === 'list' ? PATH : `${PATH}/${webhook_id}${rest}`
      expect(verdict(await api(method, path, body, { key }))).toBe('403 FORBIDDEN')
      expect(verdict(await api(method, path, body, { key: null }))).toBe('401 UNAUTHENTICATED')
    }
  })
})

describe('secrets', () => {
  test('are shown once, sealed in the database, and replaced by a rotation', async () => {
    const { webhook_id, secret } = (await make()).data
    const rotated = (await api('POST', `${PATH}/${webhook_id}/rotate`)).data
    expect(rotated.secret).toMatch(/^whsec_/)
    expect(rotated.secret).not.toBe(secret)
    const page = (await api('GET', `${PATH}?limit=200`)).text + (await api('GET', `${PATH}/${webhook_id}`)).text
    expect(page).not.toMatch(/whsec_|whsk_|"secret"/)
    const [row] = await sql`select webhooks::text as text from webhooks where webhook_id = ${webhook_id}`
    for (const each of [secret, rotated.secret])
      for (const form of ['latin1', 'hex'] as const)
        expect(row!.text).not.toContain(Buffer.from(each.slice(6, 40)).toString(form))
  })

  test('that were replaced within a day all sign: rotations at once lose none, and there are not too many', async () => {
    const { webhook_id, secret } = (await make({ status: 'disabled' })).data
    const rotate = () => api('POST', `${PATH}/${webhook_id}/rotate`)
    const answers = await Promise.all(Array.from({ length: 4 }, rotate))
    const secrets = [secret, ...answers.map(({ data }) => data.secret)]
    expect(verdict(await rotate())).toBe('409 CONFLICT')
    const [row] = await sql<[StoredWebhook]>`select * from webhooks where webhook_id = ${webhook_id}`
    const keys = openKeys(createVault({ key: undefined, dataDir: service.dataDir }), row)!
    for (const { until } of keys.previous) expect(Math.abs(until - Date.now() - 86_400_000)).toBeLessThan(60_000)
    expect([keys.secret, ...keys.previous.map((each) => each.secret)].sort()).toEqual(secrets.sort())
    const message = { deliveryId: 'msg_1', body: '{}' }
    const headers = headersFor(keys, message, Date.now())
    for (const each of secrets) expect(new Webhook(each).verify('{}', headers)).toEqual({})
  })

  test('of v1a are never shown; the public key always is, and changes with a rotation', async () => {
    const made = (await make({ signing: 'v1a' })).data
    expect(made).toMatchObject({ signing: 'v1a', secret: null })
    expect(made.public_key).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/)
    const path = `${PATH}/${made.webhook_id}`
    expect((await api('GET', path)).data.public_key).toBe(made.public_key)
    const rotated = (await api('POST', `${path}/rotate`)).data
    expect(rotated.secret).toBeNull()
    expect(rotated.public_key).not.toBe(made.public_key)
    expect((await api('GET', path)).data.public_key).toBe(rotated.public_key)
  })

  test('a retry with the same Idempotency-Key gets the same endpoint and secret', async () => {
    const { api: call } = await tenant()
    const headers = { 'idempotency-key': 'one' }
    const answers = [
      await call('POST', PATH, { url: URL }, { headers }),
      await call('POST', PATH, { url: URL }, { headers }),
    ]
    expect(answers[1]!.data).toEqual(answers[0]!.data)
    expect(answers[1]!.headers.get('idempotent-replayed')).toBe('true')
    expect((await call('GET', PATH)).data.items).toHaveLength(1)
  })
})

describe('a bad request is refused with a message that helps:', () => {
  const listed = 'EGRESS_ALLOW does not list it'
  test.each<[string, object, string]>([
    ['no URL', { url: undefined }, 'url'],
    ['no address', { url: 'receiver' }, 'url: not a valid URL'],
    ['another protocol', { url: 'ftp://receiver.example' }, 'url: ftp: is neither'],
    ['credentials', { url: 'https://a:b@receiver.example' }, 'url: the URL has a user name or password'],
    ['a long URL', { url: `https://receiver.example/${'x'.repeat(2_000)}` }, 'url: expected at most 2000 characters'],
    ['localhost', { url: 'http://localhost:9000' }, listed],
    ['a name of this machine', { url: 'https://api.localhost/' }, listed],
    ['a private address', { url: 'https://10.1.2.3/' }, listed],
    ['an address in other digits', { url: 'http://0x7f.1/' }, listed],
    ['an IPv6 address', { url: 'http://[::1]/' }, listed],
    ['a metadata service', { url: 'http://169.254.169.254/latest' }, listed],
    ['an unknown filter', { filter: { kinds: ['run'] } }, 'filter.kinds: unknown field'],
    ['a level that is none', { filter: { level: 'fatal' } }, 'filter.level: expected one of'],
    ['a filter that nothing matches', { filter: { kind: 'run', type: 'a' } }, 'filter: nothing can match'],
    ['a filter that is no object', { filter: ['run'] }, 'filter'],
    ['a filter for workspace events', { filter: { workspaceEvents: true } }, 'filter.workspaceEvents: unknown field'],
    [
      'a filter that is too long',
      { filter: { type: ['a', 'b', 'c'].map((each) => each.repeat(9_000)) } },
      'filter: expected at most',
    ],
    ['a field with a long name', { filter: { ['x'.repeat(30_000)]: 1 } }, 'filter: expected at most'],
    ['another format', { format: 'teams' }, 'format: expected one of'],
    ['another order', { order: 'none' }, 'order: expected one of'],
    ['an unknown field', { secret: 'whsec_mine' }, 'secret: unknown field'],
    ['a NUL', { description: '\0' }, 'description: expected text without the character U+0000'],
  ])('%s', async (_, body, problem) => {
    const { webhook_id } = (await make({ status: 'disabled' })).data
    const calls = [
      make(body),
      ...('url' in body && body.url === undefined ? [] : [api('PATCH', `${PATH}/${webhook_id}`, body)]),
    ]
    for (const answer of await Promise.all(calls)) {
      expect(verdict(answer)).toBe('400 VALIDATION_ERROR')
      expect(answer.error?.message).toContain(problem)
    }
  })

  test('signing cannot be changed, nor a position be set', async () => {
    const { webhook_id } = (await make()).data
    for (const body of [{ signing: 'v1a' }, { position: 1 }, { status: 'behind' }])
      expect(verdict(await api('PATCH', `${PATH}/${webhook_id}`, body))).toBe('400 VALIDATION_ERROR')
  })

  test('an address that EGRESS_ALLOW lists is taken, at its port', async () => {
    expect(verdict(await make({ url: 'http://10.1.2.3:8080/hook' }))).toBe('200')
  })
})

describe('limits', () => {
  test('the list is sorted newest first and paginates without gaps or repeats', async () => {
    const { api: call } = await tenant()
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.unshift((await make({}, call)).data.webhook_id)
    const pages = await pagesOf<{ webhook_id: string }>((cursor) => call('GET', `${PATH}?limit=2${cursor}`))
    expect(pages.flat().map(({ webhook_id }) => webhook_id)).toEqual(ids)
  })

  test('a workspace has a bounded number of endpoints, however they are created', async () => {
    const { api: call } = await tenant()
    const { webhook_id } = (await make({}, call)).data
    await sql`
      insert into webhooks (webhook_id, workspace_id, url, format, signing, ordering, status, secret, key_id, created_at,
        updated_at, created_cursor, epoch, position)
      select gen_random_uuid(), workspace_id, url, format, signing, ordering, 'disabled', secret, key_id, created_at,
        updated_at, created_cursor, epoch, position
      from webhooks, generate_series(3, ${WEBHOOKS_MAX}::int) where webhook_id = ${webhook_id}`
    const answers = await Promise.all(Array.from({ length: 4 }, () => make({}, call)))
    expect(answers.map(verdict).sort()).toEqual(['200', '409 CONFLICT', '409 CONFLICT', '409 CONFLICT'])
    expect(answers.find(({ status }) => status === 409)?.error?.message).toContain(`at most ${WEBHOOKS_MAX} webhooks`)
  })
})
