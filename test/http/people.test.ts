import { beforeAll, describe, expect, test } from 'bun:test'
import type { Role } from '../../src/tenants/keys/schema.ts'
import type { Answer } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, LiveStream, newReporter } from '../support/feeds.ts'
import { type Backends, callTurn, startBackends } from '../support/hosted-rig.ts'
import { ADA, BOB, type Browser, EVE, type PeopleRig, startPeople } from '../support/people.ts'
import { OPERATOR_TOKEN } from '../support/service.ts'

/** What people who are signed in may do, and how a sign-in ends (docs/people.md). */

let rig: PeopleRig
let aheadMs = 0
const people: Record<Role, Browser> = {} as Record<Role, Browser>
const backends: Backends = startBackends()
const verdict = ({ status, error }: Answer) => (error === null ? `${status}` : `${status} ${error.code}`)

beforeAll(async () => {
  rig = await startPeople(
    { ...backends.env, OIDC_OPTIONS: '{"idle_seconds": 600}' },
    { clock: { now: () => Date.now() + aheadMs } },
  )
  people.admin = await rig.signedIn(ADA)
  people.approver = await rig.signedIn(BOB)
  people.viewer = await rig.signedIn(EVE)
})

const approvalAgent = () =>
  backends.agent(rig.service, [callTurn(['pay', { n: 7 }]), { text: 'paid' }], {
    tools: [backends.tools.tool('pay', { requires_approval: true })],
  })
const NO_ID = '00000000-0000-7000-8000-000000000000'

test('a score of a person has the source person, and says otherwise if they do', async () => {
  const run = await (await newReporter(rig.service.api)).start()
  const path = `/api/v1/runs/${run}/scores`
  const score = { name: 'thumbs', value: true }
  expect((await people.approver.call('POST', path, score)).status).toBe(200)
  expect((await people.approver.call('POST', path, { ...score, source: 'import' })).status).toBe(200)
  const { items } = (await rig.service.api('GET', path)).data
  expect(items.map(({ source }: { source: string }) => source)).toEqual(['import', 'person'])
})

test('the URL of a webhook is shown as it is called; who may not change it sees only its origin', async () => {
  const body = {
    url: 'https://Hooks.Slack.com:443/services/../services/T0/secret',
    format: 'slack',
    status: 'disabled',
  }
  const { data } = await people.admin.call('POST', '/api/v1/webhooks', body)
  const path = `/api/v1/webhooks/${data.webhook_id}`
  const shown = async (read: (path: string) => Promise<Answer>) => {
    const listed = (await read('/api/v1/webhooks')).data.items
    return [(await read(path)).data.url, listed.find((each: typeof data) => each.webhook_id === data.webhook_id).url]
  }
  const whole = 'https://hooks.slack.com/services/T0/secret'
  expect(data.url).toBe(whole)
  expect(await shown((at) => people.admin.call('GET', at))).toEqual([whole, whole])
  expect(await shown((at) => rig.service.api('GET', at))).toEqual([whole, whole])
  for (const role of ['viewer', 'approver'] as const)
    expect(await shown((at) => people[role].call('GET', at))).toEqual(Array(2).fill('https://hooks.slack.com'))
  const lists = await people.viewer.call('GET', `${path}/deliveries`)
  expect(JSON.stringify(lists.data)).not.toContain('secret')
})

describe('a role', () => {
  const ofViewer: readonly (readonly [string, string, unknown?])[] = [
    ['GET', '/api/v1/runs'],
    ['GET', '/api/v1/keys'],
    ['GET', '/api/v1/people'],
    ['GET', '/api/v1/query/schema'],
    ['POST', '/api/v1/query', { query: 'SELECT 1' }],
    ['GET', '/api/v1/webhooks'],
    ['GET', `/api/v1/webhooks/${NO_ID}/poll`],
  ]
  const ofApprover: readonly (readonly [string, string, unknown?])[] = [
    ['POST', `/api/v1/approvals/${NO_ID}/approve`, {}],
    ['POST', `/api/v1/approvals/${NO_ID}/reject`, {}],
    ['POST', `/api/v1/input-requests/${NO_ID}/answer`, { answer: 'a' }],
    ['POST', `/api/v1/runs/${NO_ID}/cancel`, {}],
    ['POST', `/api/v1/runs/${NO_ID}/scores`, { name: 'n', value: 1 }],
  ]
  const ofAdmin: readonly (readonly [string, string, unknown?])[] = [
    ['POST', '/api/v1/agents', {}],
    ['PATCH', `/api/v1/agents/${NO_ID}`, { name: 'a' }],
    ['PATCH', `/api/v1/runs/${NO_ID}`, { tags: [] }],
    ['DELETE', `/api/v1/agents/${NO_ID}`],
    ['POST', `/api/v1/agents/${NO_ID}/invoke`, {}],
    ['POST', '/api/v1/keys', {}],
    ['POST', `/api/v1/keys/${NO_ID}/revoke`, {}],
    ['PUT', '/api/v1/secrets/A', {}],
    ['POST', '/api/v1/queries', {}],
    ['POST', '/api/v1/webhooks', {}],
    ['POST', `/api/v1/webhooks/${NO_ID}/rotate`],
    ['POST', `/api/v1/webhooks/${NO_ID}/test`],
    ['POST', `/api/v1/webhooks/${NO_ID}/deliveries/a/resend`],
    ['POST', `/api/v1/webhooks/${NO_ID}/recover`, { after: '0' }],
    ['GET', `/api/v1/people/${NO_ID}`],
    ['PATCH', `/api/v1/people/${NO_ID}`, { status: 'active' }],
    ['POST', `/api/v1/sign-ins/${NO_ID}/revoke`, {}],
    ['DELETE', `/api/v1/sessions/${NO_ID}`],
    // The same route in another spelling.
    ['GET', `/api/v1/people/${NO_ID}/`],
    ['POST', '/api/v1/keys/', {}],
  ]
  const cases = { viewer: ofViewer, approver: ofApprover, admin: ofAdmin }
  const order = ['viewer', 'approver', 'admin'] as const

  for (const needed of order)
    test(`${needed} may do what it is for, and no lower role may`, async () => {
      for (const [method, path, body] of cases[needed])
        for (const role of order) {
          const answer = await people[role].call(method, path, body)
          const isAllowed = order.indexOf(role) >= order.indexOf(needed)
          expect([role, method, path, answer.status === 403]).toEqual([role, method, path, !isAllowed])
          if (!isAllowed) expect(answer.error?.message).toBe(`this needs the role ${needed}; you have the role ${role}`)
        }
    })

  test('opens no route that is for agents, for the operator, or for other programs', async () => {
    const { admin } = people
    expect(verdict(await admin.call('POST', '/api/ingest/v1/events', {}))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await admin.call('POST', '/api/ingest/v1/scores', {}))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await admin.call('GET', '/api/v1/workspaces'))).toBe('401 UNAUTHENTICATED')
    expect((await admin.call('POST', '/otlp/v1/traces', {})).status).toBe(401)
    expect((await admin.call('GET', '/clickhouse/?query=SELECT%201')).status).not.toBe(200)
    expect(verdict(await admin.call('POST', '/api/v1/feed-tokens', {}))).toBe('403 FORBIDDEN')
  })

  test('is the one that the provider gave last, in every browser of the person', async () => {
    const account = { sub: 'changing', roles: ['admin'] }
    const first = await rig.signedIn(account)
    expect((await first.call('POST', '/api/v1/keys', { name: 'a' })).status).toBe(200)
    await rig.signedIn({ ...account, roles: ['viewer'] })
    expect(verdict(await first.call('POST', '/api/v1/keys', { name: 'b' }))).toBe('403 FORBIDDEN')
  })
})

describe('a key that a person made', () => {
  const account = { sub: 'leaver', name: 'Lea', roles: ['admin'] }
  const made = async (own: Browser, key = '') => {
    const { data } =
      key === ''
        ? await own.call('POST', '/api/v1/keys', { name: 'script' })
        : await rig.service.api('POST', '/api/v1/keys', { name: 'script' }, { key })
    return data as { key: string; key_id: string; created_by: string; created_by_name: string }
  }
  const reads = async (key: string) => verdict(await rig.service.api('GET', '/api/v1/runs', undefined, { key }))

  test('shows its maker, also where it was made with another key of that person', async () => {
    const own = await rig.signedIn(account)
    const first = await made(own)
    const second = await made(own, first.key)
    const { person } = (await own.call('GET', '/api/v1/sign-in')).data
    for (const each of [first, second]) {
      expect([each.created_by, each.created_by_name]).toEqual([person.person_id, 'Lea'])
      const { items } = (await rig.service.api('GET', '/api/v1/keys')).data
      expect(items.find((key: { key_id: string }) => key.key_id === each.key_id).created_by).toBe(person.person_id)
    }
    const rotated = (await rig.service.api('POST', `/api/v1/keys/${second.key_id}/rotate`, {})).data
    expect([rotated.created_by, rotated.created_by_name]).toEqual([null, null])
  })

  test('is dead, with its feeds, once the person is suspended, unless an admin keeps it', async () => {
    const own = await rig.signedIn(account)
    const { person } = (await own.call('GET', '/api/v1/sign-in')).data
    const path = `/api/v1/people/${person.person_id}`
    const key = await made(own)
    const derived = await made(own, key.key)
    const feed = await LiveStream.open(rig.service, '/api/v1/stream', { key: key.key })
    expect(verdict(await rig.service.api('PATCH', path, { status: 'active', keep_keys: true }))).toBe(
      '400 VALIDATION_ERROR',
    )
    expect((await rig.service.api('PATCH', path, { status: 'suspended', keep_keys: true })).status).toBe(200)
    expect([await reads(key.key), await reads(derived.key)]).toEqual(['200', '200'])
    expect((await rig.service.api('PATCH', path, { status: 'suspended' })).status).toBe(200)
    expect([await reads(key.key), await reads(derived.key)]).toEqual(['401 UNAUTHENTICATED', '401 UNAUTHENTICATED'])
    await eventually(() => feed.ended !== undefined)
    expect((await rig.service.api('PATCH', path, { status: 'active' })).status).toBe(200)
    expect(await reads(key.key)).toBe('401 UNAUTHENTICATED')
  })

  test('cannot be made by somebody who is suspended at the same moment', async () => {
    for (let i = 0; i < 10; i++) {
      const own = await rig.signedIn(account)
      const { person } = (await own.call('GET', '/api/v1/sign-in')).data
      const path = `/api/v1/people/${person.person_id}`
      const key = await made(own)
      const body = { name: 'late' }
      const late = Promise.all([
        ...[1, 2].map(() => own.call('POST', '/api/v1/keys', body)),
        ...[1, 2].map(() => rig.service.api('POST', '/api/v1/keys', body, { key: key.key })),
      ])
      const suspended = rig.service.api('PATCH', path, { status: 'suspended' })
      const answers = await late
      expect((await suspended).status).toBe(200)
      for (const answer of answers)
        if (answer.error === null) expect(await reads(answer.data.key)).toBe('401 UNAUTHENTICATED')
        else expect(['UNAUTHENTICATED', 'FORBIDDEN']).toContain(answer.error.code)
      await rig.service.api('PATCH', path, { status: 'active' })
    }
  })
})

test('answers to a cookie are stored in no cache, and JSON is read as nothing else', async () => {
  const { headers } = await people.viewer.call('GET', '/api/v1/runs')
  expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff'])
  const refused = await people.viewer.call('GET', '/api/v1/runs/x')
  expect([refused.headers.get('cache-control'), refused.status]).toEqual(['no-store', 400])
  expect((await rig.service.api('GET', '/api/v1/runs')).headers.get('x-content-type-options')).toBe('nosniff')
  const csv = await people.viewer.call('POST', '/api/v1/query', { query: 'SELECT 1', format: 'csv' })
  expect(csv.headers.get('cache-control')).toBe('no-store')
})

describe('requests of other pages', () => {
  const change = (headers: Record<string, string>) => people.admin.call('POST', '/api/v1/keys', { name: 'k' }, headers)

  test('change nothing, although the browser adds the cookie', async () => {
    const own = { origin: rig.publicUrl }
    expect((await change({ ...own, 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect((await change({ origin: 'https://evil.example' })).error?.code).toBe('FORBIDDEN')
    expect((await change({ origin: 'null' })).error?.code).toBe('FORBIDDEN')
    // Another port is the same site, to which browsers send SameSite cookies.
    expect((await change({ origin: rig.publicUrl.replace(/\d+$/, '1') })).error?.code).toBe('FORBIDDEN')
    expect((await change({ ...own, 'sec-fetch-site': 'same-site' })).error?.code).toBe('FORBIDDEN')
    const cookie = people.admin.own.header
    const without = await rig.service.api('POST', '/api/v1/keys', { name: 'k' }, { key: null, headers: { cookie } })
    expect(without.error?.code).toBe('FORBIDDEN')
  })

  test('read nothing either, and open no feed', async () => {
    for (const site of ['cross-site', 'same-site'])
      expect(verdict(await people.viewer.call('GET', '/api/v1/runs', undefined, { 'sec-fetch-site': site }))).toBe(
        '403 FORBIDDEN',
      )
    const headers = { ...people.viewer.feedOptions.headers, origin: 'https://evil.example' }
    await expect(LiveSocket.open(rig.service, { key: null, headers })).rejects.toThrow('refused')
    const withoutOrigin = { cookie: people.viewer.own.header }
    await expect(LiveSocket.open(rig.service, { key: null, headers: withoutOrigin })).rejects.toThrow('refused')
    const stream = await LiveStream.open(rig.service, '/api/v1/stream', { key: null, headers })
    expect(stream.status).toBe(403)
  })
})

describe('feeds', () => {
  test('open with the cookie, and end with the sign-in', async () => {
    const own = await rig.signedIn({ sub: 'watcher', roles: ['viewer'] })
    const socket = await LiveSocket.open(rig.service, own.feedOptions)
    await socket.subscribe('s', { filter: { kind: 'run' } })
    const stream = await LiveStream.open(rig.service, '/api/v1/stream', own.feedOptions)
    expect(stream.status).toBe(200)
    const { agentId } = await backends.agent(rig.service, [{ text: 'hello' }])
    await rig.service.api('POST', `/api/v1/agents/${agentId}/invoke`, {})
    await eventually(() => socket.items('s').some(({ agent_id }) => agent_id === agentId))
    expect((await own.call('POST', '/api/v1/sign-out', {})).status).toBe(200)
    expect((await socket.untilClosed()).code).toBe(4001)
    await eventually(() => stream.ended !== undefined)
  })
})

describe('a sign-in ends at once', () => {
  test('when the person signs out, which clears the cookie', async () => {
    const own = await rig.signedIn({ sub: 'leaving', roles: ['viewer'] })
    const before = own.own.header
    const out = await own.call('POST', '/api/v1/sign-out', {})
    expect(out.headers.get('set-cookie')).toBe('agent-run-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax')
    expect(verdict(await own.call('GET', '/api/v1/runs', undefined, { cookie: before }))).toBe('401 UNAUTHENTICATED')
    expect(verdict(await rig.service.api('POST', '/api/v1/sign-out', {}))).toBe('403 FORBIDDEN')
  })

  test('when an admin ends it, or suspends the person, who then cannot come back until they are active again', async () => {
    const account = { sub: 'removed', name: 'Removed', roles: ['approver'] }
    const [first, second] = [await rig.signedIn(account), await rig.signedIn(account)]
    const { data: list } = await people.admin.call('GET', '/api/v1/people')
    const found = list.items.find(({ subject }: { subject: string }) => subject === 'removed')
    expect(found).toMatchObject({ name: 'Removed', role: 'approver', status: 'active' })
    const path = `/api/v1/people/${found.person_id}`
    const { sign_ins } = (await people.admin.call('GET', path)).data
    expect(sign_ins).toHaveLength(2)
    await people.admin.call('POST', `/api/v1/sign-ins/${sign_ins[1].sign_in_id}/revoke`, {})
    expect((await first.call('GET', '/api/v1/runs')).status).toBe(401)
    expect((await second.call('GET', '/api/v1/runs')).status).toBe(200)
    const socket = await LiveSocket.open(rig.service, second.feedOptions)
    // A workspace key may do the same.
    expect((await rig.service.api('PATCH', path, { status: 'suspended' })).data.status).toBe('suspended')
    expect((await second.call('GET', '/api/v1/runs')).status).toBe(401)
    expect((await socket.untilClosed()).code).toBe(4001)
    rig.provider.account = account
    expect(await rig.browser().signIn()).toBe('/?sign-in=suspended')
    await people.admin.call('PATCH', path, { status: 'active' })
    expect(await rig.browser().signIn()).toBe('/')
  })

  test('when its workspace is suspended', async () => {
    const { data } = await rig.service.api('GET', '/api/v1/workspaces', undefined, { key: OPERATOR_TOKEN })
    const path = `/api/v1/workspaces/${data.items[0].workspace_id}`
    const set = (status: string) => rig.service.api('PATCH', path, { status }, { key: OPERATOR_TOKEN })
    await set('suspended')
    expect(verdict(await people.viewer.call('GET', '/api/v1/runs'))).toBe('403 FORBIDDEN')
    expect((await people.viewer.call('GET', '/api/v1/sign-in')).data.person).toBeNull()
    rig.provider.account = EVE
    expect(await rig.browser().signIn()).toBe('/?sign-in=no_workspace')
    await set('active')
    expect((await people.viewer.call('GET', '/api/v1/runs')).status).toBe(200)
  })

  test('when it was not used for too long, and at the end of its life', async () => {
    const own = await rig.signedIn({ sub: 'idle', roles: ['viewer'] })
    expect((await own.call('GET', '/api/v1/runs')).status).toBe(200)
    const used = async () => {
      const { data } = await rig.service.api('GET', `/api/v1/people?limit=200`)
      const { person_id } = data.items.find(({ subject }: { subject: string }) => subject === 'idle')
      const [signIn] = (await rig.service.api('GET', `/api/v1/people/${person_id}`)).data.sign_ins
      return Date.parse(signIn?.last_used_at) - Date.now()
    }
    const isOpen = async () => (await own.call('GET', '/api/v1/runs')).status === 200
    try {
      aheadMs = 500_000
      expect(await isOpen()).toBe(true)
      // Stored some seconds later; another process would otherwise not know.
      await eventually(async () => (await used()) > 400_000)
      aheadMs = 1_000_000
      expect(await isOpen()).toBe(true)
      aheadMs = 1_700_000
      expect(await isOpen()).toBe(false)
    } finally {
      aheadMs = 0
    }
  }, 40_000)

  test('in the oldest browser of somebody who has too many', async () => {
    const account = { sub: 'everywhere', roles: ['viewer'] }
    const first = await rig.signedIn(account)
    for (let i = 0; i < 20; i++) await rig.signedIn(account)
    expect((await first.call('GET', '/api/v1/runs')).status).toBe(401)
  }, 30_000)
})

describe('decisions', () => {
  test('name the person, in the record, in the event, and to whoever is late', async () => {
    const agent = await approvalAgent()
    const { data } = await agent.invoke()
    const path = `/api/v1/approvals/${data.awaiting_approval.approval_id}`
    const decided = await people.approver.call('POST', `${path}/approve`, { comment: 'fine' })
    expect(decided.data).toMatchObject({ status: 'completed' })
    const record = (await people.viewer.call('GET', path)).data
    const { person } = (await people.approver.call('GET', '/api/v1/sign-in')).data
    expect(record).toMatchObject({ decided_by: person.person_id, decided_by_person: BOB.email })
    const late = await people.admin.call('POST', `${path}/reject`, {})
    expect(late.error?.message).toBe(`this was already approved at ${record.decided_at}, by ${BOB.email}`)
    const events = await eventually(async () => {
      const { items } = (await people.viewer.call('GET', `/api/v1/runs/${data.run_id}/events?type=approval.decided`))
        .data
      return items.length > 0 && items
    })
    expect(events[0].payload.decided_by).toEqual({
      person_id: person.person_id,
      name: BOB.name,
      email: BOB.email,
      type: 'person',
    })
  })

  test('of a key name the key, as before', async () => {
    const agent = await approvalAgent()
    const { data } = await agent.invoke()
    const path = `/api/v1/approvals/${data.awaiting_approval.approval_id}`
    await rig.service.api('POST', `${path}/reject`, {})
    const [key] = (await rig.service.api('GET', '/api/v1/keys?type=workspace')).data.items.slice(-1)
    expect((await rig.service.api('GET', path)).data).toMatchObject({ decided_by: key.key_id, decided_by_person: null })
  })
})

test('versions of agents name the person who made them', async () => {
  const sent = { runtime_type: 'hosted', name: 'Ada', model: 'm', prompt: 'p' }
  const made = await people.admin.call('POST', '/api/v1/agents', sent)
  await rig.service.api('PATCH', `/api/v1/agents/${made.data.agent_id}`, { prompt: 'q' })
  const { items } = (await people.viewer.call('GET', `/api/v1/agents/${made.data.agent_id}/versions`)).data
  const { person } = (await people.admin.call('GET', '/api/v1/sign-in')).data
  const [byKey, byPerson] = items
  expect(byPerson).toMatchObject({ version: 1, created_by: person.person_id, created_by_person: person.email })
  expect(byKey).toMatchObject({ version: 2, created_by_person: null })
})

describe('calls of people', () => {
  test('are repeated by an Idempotency-Key like those of keys, for the same sign-in only', async () => {
    const headers = { 'idempotency-key': 'once' }
    const call = (who: Browser) => who.call('POST', '/api/v1/keys', { name: 'idempotent' }, headers)
    const [first, again] = [await call(people.admin), await call(people.admin)]
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.data.key).toBe(first.data.key)
    const other = await rig.signedIn(ADA)
    expect((await call(other)).data.key).not.toBe(first.data.key)
  })

  test('wait for a hosted run and stream its output', async () => {
    const agent = await backends.agent(rig.service, [{ text: 'hello' }])
    const path = `/api/v1/agents/${agent.agentId}/invoke`
    expect((await people.admin.call('POST', path, {})).data).toMatchObject({ status: 'completed' })
    expect((await people.admin.call('POST', path, { stream: true })).text).toContain('event: done')
  })

  test('spend a budget like that of a key', async () => {
    const { signedIn } = await startPeople({ RATE_LIMIT_READS_PER_MINUTE: '20' })
    const own = await signedIn(ADA)
    const first = await own.call('GET', '/api/v1/runs')
    expect(first.headers.get('ratelimit-policy')).toBe('"reads";q=20;w=60')
    const statuses: number[] = []
    for (let i = 0; i < 25; i++) statuses.push((await own.call('GET', '/api/v1/runs')).status)
    expect(statuses.at(-1)).toBe(429)
    expect((await own.call('GET', '/api/v1/sign-in')).status).toBe(429)
    expect((await (await signedIn(BOB)).call('GET', '/api/v1/runs')).status).toBe(200)
  })
})

describe('workspaces', () => {
  test('are those of the claim, and nothing crosses them', async () => {
    const { signedIn, browser, provider, service } = await startPeople({
      OIDC_OPTIONS: '{"workspace_claim": "workspaces"}',
    })
    const create = async (name: string) =>
      (await service.api('POST', '/api/v1/workspaces', { name }, { key: OPERATOR_TOKEN })).data
    const [a, b, c] = [await create('a'), await create('b'), await create('c')]
    const account = { ...ADA, workspaces: [b.workspace_id, 'nonsense', a.workspace_id.toUpperCase()] }
    const own = await signedIn(account)
    const { person } = (await own.call('GET', '/api/v1/sign-in')).data
    expect(person.workspace.name).toBe('b')
    expect(person.workspaces.map(({ name }: { name: string }) => name)).toEqual(['b', 'a'])
    const before = own.own.header
    const enter = (workspace_id: string) => own.call('POST', '/api/v1/sign-in/workspace', { workspace_id })
    expect(verdict(await enter(c.workspace_id))).toBe('403 FORBIDDEN')
    const entered = await enter(a.workspace_id)
    own.own.take(entered.headers)
    const { person: now } = (await own.call('GET', '/api/v1/sign-in')).data
    expect([now.workspace.name, now.workspaces.length, now.role]).toEqual(['a', 2, 'admin'])
    expect((await own.call('GET', '/api/v1/runs', undefined, { cookie: before })).status).toBe(401)
    // Each workspace has people of its own, whom the other cannot see or change.
    const ofB = (await service.api('GET', '/api/v1/people', undefined, { key: b.key })).data.items[0]
    expect(verdict(await own.call('GET', `/api/v1/people/${ofB.person_id}`))).toBe('404 NOT_FOUND')
    const suspend = await own.call('PATCH', `/api/v1/people/${ofB.person_id}`, { status: 'suspended' })
    expect(verdict(suspend)).toBe('404 NOT_FOUND')
    const mine = (await service.api('GET', `/api/v1/people/${now.person_id}`, undefined, { key: a.key })).data
    const end = await service.api('POST', `/api/v1/sign-ins/${mine.sign_ins[0].sign_in_id}/revoke`, {}, { key: b.key })
    expect(verdict(end)).toBe('404 NOT_FOUND')
    expect((await own.call('GET', '/api/v1/runs')).status).toBe(200)
    // Another browser learns of a lower role: it is that of all their sign-ins, and changing the workspace keeps it.
    await signedIn({ ...account, roles: ['viewer'] })
    const role = async () => (await own.call('GET', '/api/v1/sign-in')).data.person.role
    expect(await role()).toBe('viewer')
    own.own.take((await enter(b.workspace_id)).headers)
    expect(await role()).toBe('viewer')
    provider.account = { ...BOB, workspaces: [] }
    expect(await browser().signIn()).toBe('/?sign-in=no_workspace')
    // Also one who is suspended in the workspace that comes first.
    await service.api('PATCH', `/api/v1/people/${now.person_id}`, { status: 'suspended' }, { key: a.key })
    provider.account = { ...account, workspaces: [a.workspace_id, b.workspace_id], roles: ['approver'] }
    expect(await browser().signIn()).toBe('/?sign-in=suspended')
    expect(await role()).toBe('approver')
  })
})
