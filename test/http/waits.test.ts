import { beforeAll, describe, expect, test } from 'bun:test'
import { EXAMPLES } from '../../src/sql/analytics/examples.ts'
import { eventually } from '../support/eventually.ts'
import { LiveStream } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { type Backends, callTurn, type ScriptedAgent, startBackends } from '../support/hosted-rig.ts'
import { rowsInSql, startTestService, type TestService } from '../support/service.ts'

/** How long runs wait for people, and what SQL says about what they waited for (docs/runs.md#waits). */

const MINUTE_MS = 60_000

let service: TestService
const backends: Backends = startBackends(() => ({ paid: true }))
/** The service's clock, so that a wait takes no time. */
let aheadMs = 0
beforeAll(async () => {
  const clock = { now: () => Date.now() + aheadMs }
  service = await startTestService({ ...backends.env, PAUSE_EXPIRES_SECONDS: '86400' }, { clock })
})

const pay = () => backends.tools.tool('pay', { requires_approval: true })
const payer = (turns = [callTurn(['pay', { n: 1 }]), { text: 'paid' }]) =>
  backends.agent(service, turns, { name: 'payer', tools: [pay()], allow_input_requests: true })
const record = async (runId: string) => (await service.api('GET', `/api/v1/runs/${runId}`)).data
const decide = (id: string, decision: 'approve' | 'reject', body: object = {}) =>
  service.api('POST', `/api/v1/approvals/${id}/${decision}`, body)
const waits = ({ duration_ms, active_ms, waiting_ms, waiting_since }: Record<string, unknown>) => ({
  ...{ duration_ms, active_ms, waiting_ms, waiting_since },
})

const rowsOf = (query: string, runId: string) => rowsInSql(service.api, query, { params: { run: runId } })

/** Expects the figures of a run that has ended in the API, its feed and SQL. */
async function expectWaited(runId: string, waitingMs: number) {
  const run = await untilStatus(service, runId, 'completed', 'cancelled', 'timed_out')
  expect(run.waiting_ms).toBeGreaterThanOrEqual(waitingMs)
  expect(run.waiting_ms).toBeLessThan(waitingMs + MINUTE_MS / 2)
  expect(waits(run)).toEqual({
    duration_ms: run.duration_ms,
    active_ms: run.duration_ms - run.waiting_ms,
    waiting_ms: run.waiting_ms,
    waiting_since: null,
  })
  const stream = await LiveStream.open(service, `/api/v1/runs/${runId}/stream?after=0`)
  await stream.untilEnded()
  expect(waits(stream.items.findLast(({ kind }) => kind === 'run')!.run!)).toEqual(waits(run))
  await eventually(async () => {
    const query = `SELECT duration_ms, active_ms, waiting_ms, waiting_since FROM runs
      WHERE run_id = {run:UUID} AND duration_ms IS NOT NULL`
    const [row] = await rowsOf(query, runId)
    if (row === undefined) return false
    expect(row).toEqual(waits(run))
    return true
  })
}

const PAUSES = 'SELECT * FROM pauses WHERE run_id = {run:UUID} ORDER BY requested_at, tool'
/** The pauses of a run once none is pending. */
const decidedPauses = (runId: string) =>
  eventually(async () => {
    const rows = await rowsOf(PAUSES, runId)
    return rows.length > 0 && rows.every(({ status }) => status !== 'pending') && rows
  })

/** Invokes the agent, whose run then waits for an approval. */
async function waiting(agent: ScriptedAgent) {
  const { data } = await agent.invoke()
  return { runId: data.run_id as string, approvalId: data.awaiting_approval.approval_id as string }
}

describe('the waits of a run', () => {
  test('count every pause until it is decided, and not the time in between', async () => {
    const { runId, approvalId } = await waiting(
      await payer([callTurn(['pay', { n: 1 }]), callTurn(['request_input', { question: 'Sure?' }]), { text: 'paid' }]),
    )
    const paused = await record(runId)
    expect(waits(paused)).toEqual({
      duration_ms: null,
      active_ms: null,
      waiting_ms: 0,
      waiting_since: expect.stringMatching(/Z$/),
    })
    aheadMs += 3 * MINUTE_MS
    const { data } = await decide(approvalId, 'approve')
    expect(waits(await record(runId))).toMatchObject({ waiting_since: expect.any(String) })
    aheadMs += 4 * MINUTE_MS
    await service.api('POST', `/api/v1/input-requests/${data.awaiting_input.request_id}/answer`, { answer: 'yes' })
    await expectWaited(runId, 7 * MINUTE_MS)
  })

  test('count overlapping pauses of child runs only once, also for the parent', async () => {
    const children = [await payer(), await payer()]
    const names = ['ask_0', 'ask_1']
    const parent = await backends.agent(
      service,
      [callTurn(...names.map((name) => [name, { message: 'go' }] as const)), { text: 'all done' }],
      {
        name: 'parent',
        tools: children.map(({ agentId }, i) => ({
          type: 'agent',
          name: names[i],
          description: 'x',
          agent_id: agentId,
        })),
      },
    )
    const { runId, approvalId } = await waiting(parent)
    const below = (await service.api('GET', `/api/v1/runs/${runId}/children`)).data.items
    aheadMs += 2 * MINUTE_MS
    const { data } = await decide(approvalId, 'approve')
    aheadMs += 5 * MINUTE_MS
    await decide(data.awaiting_approval.approval_id, 'approve')
    await expectWaited(runId, 7 * MINUTE_MS)
    const waited = await Promise.all(
      below.map(async (run: { run_id: string }) => (await record(run.run_id)).waiting_ms),
    )
    expect(waited.map((ms) => Math.floor(ms / MINUTE_MS)).sort()).toEqual([2, 7])
  })

  test('end with a run that is cancelled while it waits', async () => {
    const { runId } = await waiting(await payer())
    aheadMs += 6 * MINUTE_MS
    await service.api('POST', `/api/v1/runs/${runId}/cancel`, {})
    await expectWaited(runId, 6 * MINUTE_MS)
  })

  test('are none for external runs', async () => {
    const { data } = await service.api('POST', '/api/v1/agents', { name: 'external' })
    const { key } = (await service.api('POST', `/api/v1/agents/${data.agent_id}/keys`, {})).data
    const started = await service.api('POST', '/api/ingest/v1/run/start', { agent_id: data.agent_id }, { key })
    const { run_id } = started.data
    expect(waits(await record(run_id))).toEqual({
      ...{ duration_ms: null, active_ms: null, waiting_ms: 0, waiting_since: null },
    })
    aheadMs += MINUTE_MS
    await service.api('POST', '/api/ingest/v1/run/complete', { run_id }, { key })
    const { duration_ms, active_ms } = await record(run_id)
    expect([duration_ms >= MINUTE_MS, active_ms === duration_ms]).toEqual([true, true])
  })
})

/** An id that the arguments of a tool may contain. */
const OTHER_ID = '33333333-3333-4333-8333-333333333333'

describe('the table pauses', () => {
  test('has approvals with what was shown, edited and said, and who decided', async () => {
    const forged = { key_id: OTHER_ID, person_id: OTHER_ID, requested_at: '2020-01-01T00:00:00Z', email: 'not@me' }
    const input = { n: 12_345, note: 'a "b" \\ é', comment: 'not this', decision: 'nor that', ...forged }
    const { runId, approvalId } = await waiting(await payer([callTurn(['pay', input]), { text: 'paid' }]))
    const [asked] = await eventually(async () => {
      const rows = await rowsOf(PAUSES, runId)
      return rows.length > 0 && rows
    })
    const { data: api } = await service.api('GET', `/api/v1/approvals/${approvalId}`)
    expect(asked).toEqual({
      pause_id: approvalId,
      run_id: runId,
      agent_id: api.agent_id,
      kind: 'approval',
      status: 'pending',
      tool: 'pay',
      input,
      edited_input: null,
      question: null,
      options: [],
      answer: null,
      comment: null,
      requested_at: api.created_at,
      expires_at: api.expires_at,
      decided_at: null,
      waiting_ms: null,
      decided_by: null,
      decided_by_person: null,
    })
    aheadMs += MINUTE_MS
    await decide(approvalId, 'approve', { edited_input: { n: 2, input: 'x' }, comment: 'less "is" more' })
    const { data: after } = await service.api('GET', `/api/v1/approvals/${approvalId}`)
    const decided = await decidedPauses(runId)
    expect(decided).toEqual([
      {
        ...asked,
        status: 'approved',
        edited_input: { n: 2, input: 'x' },
        comment: 'less "is" more',
        decided_at: after.decided_at,
        decided_by: after.decided_by,
        waiting_ms: Date.parse(after.decided_at) - Date.parse(after.created_at),
      },
    ])
    const example = EXAMPLES.find(({ title }) => title === 'Decisions of people')!
    const { data } = await service.api('POST', '/api/v1/query', { query: example.query, params: example.params })
    expect(data.rows).toContainEqual(
      expect.objectContaining({ tool: 'pay', status: 'approved', edited: 1, p50_seconds: expect.any(Number) }),
    )
    expect(await rowsOf('SELECT edited_input.n AS n FROM pauses WHERE run_id = {run:UUID}', runId)).toEqual([{ n: 2 }])
  })

  test('has questions with their answers', async () => {
    const asking = await payer([callTurn(['request_input', { question: 'Who?', options: ['a', 'b'] }]), { text: 'ok' }])
    const { data } = await asking.invoke()
    const { request_id } = data.awaiting_input
    await service.api('POST', `/api/v1/input-requests/${request_id}/answer`, { answer: 'b' })
    const expected = { kind: 'input', question: 'Who?', options: ['a', 'b'], answer: 'b', tool: null, input: null }
    expect(await decidedPauses(data.run_id)).toMatchObject([{ ...expected, pause_id: request_id, status: 'answered' }])
  })

  test('says of pauses that nobody decided whether they expired, or were cancelled with their run', async () => {
    const two = () =>
      payer([callTurn(['pay', { n: 1, key_id: OTHER_ID }], ['request_input', { question: 'Who?' }]), { text: 'ok' }])
    const cancelled = (await waiting(await two())).runId
    await service.api('POST', `/api/v1/runs/${cancelled}/cancel`, {})
    const late = await waiting(await two())
    aheadMs += 86_400_000
    await untilStatus(service, late.runId, 'timed_out')
    const statuses = async (runId: string) => (await decidedPauses(runId)).map(({ status }) => status).sort()
    expect(await statuses(cancelled)).toEqual(['cancelled', 'cancelled'])
    const deciders = (await decidedPauses(cancelled)).map((pause) => pause.decided_by)
    expect(deciders).toEqual([null, null])
    expect(await statuses(late.runId)).toEqual(['cancelled', 'expired'])
    const { items } = (await service.api('GET', `/api/v1/runs/${late.runId}/events?limit=200`)).data
    const types = items.map(({ type }: { type: string }) => type).slice(-3)
    expect(types.toSorted()).toEqual(['approval.expired', 'input.cancelled', 'run.timed_out'])
    await expectWaited(late.runId, 86_400_000)
  })
})
