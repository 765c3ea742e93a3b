import { beforeAll, describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { newTenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'

/** The list of all pauses, and what a person reads before a decision (docs/hosted-agents.md#pauses). */

let rig: HostedRig
let payer: ScriptedAgent
let asker: ScriptedAgent
/** Pauses in the order in which they began. */
const pauses: { id: string; runId: string; sessionId: string | null }[] = []

const QUESTION = { question: 'Which city?', options: ['Oslo', 'Bergen'] }

beforeAll(async () => {
  rig = await startHostedRig()
  const said = { text: 'I have checked the order.', ...callTurn(['check', { n: 1 }]) }
  const tools = [rig.tools.tool('pay', { requires_approval: true }), rig.tools.tool('check')]
  payer = await rig.agent(rig.service, [said, callTurn(['pay', { n: 7, note: 'x'.repeat(400) }]), { text: 'paid' }], {
    tools,
  })
  asker = await rig.agent(rig.service, [callTurn(['request_input', QUESTION]), { text: 'thanks' }], {
    allow_input_requests: true,
  })
  await begin(payer, { input: { message: 'Pay A-17, please.' }, start_session: true, external_user_id: 'ada' })
  await begin(asker, { input: { city: null } })
  await begin(payer, { input: { message: 'And A-18.' }, start_session: true, external_user_id: 'eve' })
})

async function begin(agent: ScriptedAgent, body: object): Promise<void> {
  const { data } = await agent.invoke(body)
  const id = data.awaiting_approval?.approval_id ?? data.awaiting_input.request_id
  pauses.push({ id, runId: data.run_id, sessionId: data.session_id })
}

const get = (path: string, key?: string) => rig.service.api('GET', `/api/v1/${path}`, undefined, key ? { key } : {})
const idsOf = async (query: string, key?: string) =>
  (await get(`pauses${query}`, key)).data.items.map(({ pause_id }: { pause_id: string }) => pause_id)

describe('the pauses that wait', () => {
  test('are listed together, with who asked, newest or oldest first', async () => {
    const [first, second, third] = pauses.map(({ id }) => id)
    expect(await idsOf('')).toEqual([third, second, first])
    expect(await idsOf('?order=oldest')).toEqual([first, second, third])
    const { items } = (await get('pauses?order=oldest')).data
    expect(items[0]).toEqual({
      pause_id: first,
      type: 'approval',
      status: 'pending',
      run_id: pauses[0]!.runId,
      root_run_id: pauses[0]!.runId,
      agent_id: payer.agentId,
      session_id: pauses[0]!.sessionId,
      external_user_id: 'ada',
      tool: 'pay',
      preview: JSON.stringify({ n: 7, note: 'x'.repeat(400) }).slice(0, 300),
      created_at: expect.any(String),
      expires_at: null,
      decided_at: null,
      decided_by: null,
      decided_by_person: null,
      reply: null,
      is_edited: false,
    })
    expect(items[1]).toMatchObject({ type: 'input', tool: null, preview: QUESTION.question, session_id: null })
  })

  test.each([
    ['type=input', [1]],
    ['type=approval', [2, 0]],
    ['tool=pay', [2, 0]],
    ['tool=other', []],
    ['external_user_id=ada', [0]],
    ['status=pending&status=approved', [2, 1, 0]],
    ['status=approved', []],
  ])('can be filtered by %s', async (query, expected) => {
    expect(await idsOf(`?${query}`)).toEqual(expected.map((index) => pauses[index]!.id))
  })

  test('can be filtered by agent and session, and read page by page in both orders', async () => {
    expect(await idsOf(`?agent_id=${asker.agentId}`)).toEqual([pauses[1]!.id])
    expect(await idsOf(`?session_id=${pauses[2]!.sessionId}`)).toEqual([pauses[2]!.id])
    for (const order of ['newest', 'oldest'])
      expect(await allPages(`order=${order}`)).toEqual(await idsOf(`?order=${order}`))
  })

  test('of other agents are not for an agent key, nor are those of another workspace', async () => {
    expect(await idsOf('', asker.agentKey)).toEqual([pauses[1]!.id])
    expect((await get(`pauses?agent_id=${payer.agentId}`, asker.agentKey)).error!.code).toBe('FORBIDDEN')
    const tenant = await newTenant(rig.service)
    expect((await tenant.api('GET', '/api/v1/pauses')).data).toEqual({ items: [], next_cursor: null })
  })

  test('a wrong filter or cursor is refused with its name', async () => {
    for (const query of [
      'state=open',
      'order=random',
      'status=done',
      'type=pause',
      'agent_id=x',
      'who=me',
      'cursor=x',
    ]) {
      const { status, error } = await get(`pauses?${query}`)
      expect([query, status, error!.code]).toEqual([query, 400, 'VALIDATION_ERROR'])
    }
  })
})

describe('what was said before', () => {
  test('an approval is read with the user, the session, and the last messages of both sides', async () => {
    const { context } = (await get(`approvals/${pauses[0]!.id}`)).data
    expect(context).toEqual({
      session_id: pauses[0]!.sessionId,
      external_user_id: 'ada',
      user_message: 'Pay A-17, please.',
      assistant_message: 'I have checked the order.',
    })
    const asked = (await get(`input-requests/${pauses[1]!.id}`)).data
    expect(asked).toMatchObject({ ...QUESTION, status: 'pending' })
    expect(asked.context).toEqual({
      session_id: null,
      external_user_id: null,
      user_message: '{"city":null}',
      assistant_message: null,
    })
  })

  test('a later turn of a session is still that of its user', async () => {
    const later = await payer.invoke({
      input: { message: 'Again.' },
      session_id: pauses[0]!.sessionId,
      background: true,
    })
    await decide(pauses[0]!.id, 'reject', {})
    const run = await untilStatus(rig.service, later.data.run_id, 'awaiting_approval')
    const { context } = (await get(`approvals/${run.pending.id}`)).data
    expect(context).toMatchObject({ external_user_id: 'ada', user_message: 'Again.' })
    expect(await idsOf('?external_user_id=ada')).toEqual([run.pending.id])
    await rig.service.api('POST', `/api/v1/runs/${later.data.run_id}/cancel`, {})
  })

  test("a child run's agent key does not learn session and user of the run above", async () => {
    const child = await rig.agent(rig.service, [callTurn(['request_input', QUESTION]), { text: 'asked' }], {
      allow_input_requests: true,
    })
    const parent = await rig.agent(rig.service, [callTurn(['ask', { message: 'Ask where to.' }]), { text: 'done' }], {
      tools: [{ type: 'agent', name: 'ask', description: 'asks', agent_id: child.agentId }],
    })
    const { data } = await parent.invoke({ input: { message: 'go' }, start_session: true, external_user_id: 'kim' })
    const id = data.awaiting_input.request_id
    const contextFor = async (key?: string) => (await get(`input-requests/${id}`, key)).data.context
    expect(await contextFor()).toMatchObject({ external_user_id: 'kim', user_message: 'Ask where to.' })
    expect(await contextFor(child.agentKey)).toMatchObject({ session_id: null, external_user_id: null })
    expect((await get('pauses', child.agentKey)).data.items).toMatchObject([{ pause_id: id, external_user_id: null }])
    expect(await idsOf('?external_user_id=kim', child.agentKey)).toEqual([])
    expect(await idsOf('?external_user_id=kim')).toEqual([id])
    await rig.service.api('POST', `/api/v1/runs/${data.run_id}/cancel`, {})
  })
})

describe('the decisions', () => {
  test('are listed by the time of the decision, with who decided what and why', async () => {
    await decide(pauses[2]!.id, 'approve', { comment: 'within our terms', edited_input: { n: 8 } })
    await rig.service.api('POST', `/api/v1/input-requests/${pauses[1]!.id}/answer`, { answer: 'Oslo' })
    const keys = (await get('keys?type=workspace')).data.items
    const { items } = (await get('pauses?state=decided&status=approved&status=rejected&status=answered')).data
    expect(items.map(({ pause_id }: { pause_id: string }) => pause_id)).toEqual([1, 2, 0].map((at) => pauses[at]!.id))
    expect(items).toMatchObject([
      { status: 'answered', reply: 'Oslo', is_edited: false, decided_by: keys[0].key_id },
      { status: 'approved', reply: 'within our terms', is_edited: true, external_user_id: 'eve' },
      { status: 'rejected', reply: null, is_edited: false },
    ])
    expect((await get('pauses?state=decided&status=cancelled')).data.items).toMatchObject([
      { status: 'cancelled', decided_by: null },
      { status: 'cancelled', decided_by: null },
    ])
    expect(await idsOf('?state=pending')).toEqual([])
    for (const order of ['newest', 'oldest'])
      expect(await allPages(`state=decided&order=${order}`)).toEqual(await idsOf(`?state=decided&order=${order}`))
  })

  test('with a filter, end a page after 10,000: it may be empty while others follow', async () => {
    const wanted = await idsOf('?state=decided&tool=pay')
    expect(wanted).not.toEqual([])
    const { databaseUrl } = rig.service
    const sql = connectPostgres(databaseUrl, { log: createLog('error'), max: 1, statementTimeoutMs: 60_000 })
    await sql`
      insert into pauses
      select c.* from pauses p, generate_series(1, 10100) n, jsonb_populate_record(p, jsonb_build_object(
        'pause_id', gen_random_uuid(), 'tool', 'other', 'decided_at', now() + n * interval '1 ms'
      )) c
      where p.pause_id = ${wanted[0]}`
    await sql.end()
    for (const filter of ['tool=pay', `tool=pay&agent_id=${payer.agentId}`, 'tool=pay&session_id=none']) {
      const { items, next_cursor } = (await get(`pauses?state=decided&${filter}`)).data
      expect(items).toEqual([])
      expect(next_cursor).not.toBeNull()
      const next = (await get(`pauses?state=decided&${filter}&cursor=${next_cursor}`)).data
      const ids = next.items.map(({ pause_id }: { pause_id: string }) => pause_id)
      expect(ids).toEqual(filter.includes('none') ? [] : wanted)
      expect(next.next_cursor).toBeNull()
    }
    expect(await allPages('state=decided&order=oldest&tool=pay')).toEqual(wanted.toReversed())
  })
})

function decide(id: string, decision: 'approve' | 'reject', body: object) {
  return rig.service.api('POST', `/api/v1/approvals/${id}/${decision}`, body)
}

async function allPages(query: string): Promise<string[]> {
  const ids: string[] = []
  for (let cursor = ''; cursor !== null; ) {
    const { data } = await get(`pauses?${query}&limit=1${cursor && `&cursor=${cursor}`}`)
    ids.push(...data.items.map(({ pause_id }: { pause_id: string }) => pause_id))
    cursor = data.next_cursor
  }
  return ids
}

test('a pause expires although the rows of one that has expired before are locked', async () => {
  const sql = connectPostgres(rig.service.databaseUrl, { log: createLog('error'), max: 2 })
  const [locked, other] = await Promise.all([asker.invoke({}), asker.invoke({})])
  const at = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const idOf = ({ data }: typeof locked) => data.awaiting_input.request_id
  await sql.begin(async (tx) => {
    await tx`select from hosted_runs where run_id = ${locked.data.run_id} for update`
    await sql`update pauses set expires_at = ${at(2)} where pause_id = ${idOf(locked)}`
    await sql`update pauses set expires_at = ${at(1)} where pause_id = ${idOf(other)}`
    await untilStatus(rig.service, other.data.run_id, 'timed_out')
  })
  await untilStatus(rig.service, locked.data.run_id, 'timed_out')
  await sql.end()
})
