import { beforeAll, describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { type Backends, callTurn, eventsOf, startBackends, toolResultsOf } from '../support/hosted-rig.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'
import type { ToolServerCall } from '../support/tool-server.ts'

/** Approval decisions that race with each other, with a running or ending run, and with restarts. */

let service: TestService
let sql: Sql
const gates: (() => void)[] = []
/** Answers the waiting calls of `slow`. */
const releaseCalls = () => {
  for (const open of gates.splice(0)) open()
}
const backends: Backends = startBackends((call: ToolServerCall) => {
  if (call.tool !== 'slow') return { took: call.input }
  return new Promise((resolve) => gates.push(() => resolve({ slowly: call.input })))
})

beforeAll(async () => {
  service = await startTestService(backends.env)
  sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 2 })
  atEnd(() => sql.end({ timeout: 1 }))
})

const tools = () => [backends.tools.tool('pay', { requires_approval: true }), backends.tools.tool('slow')]
const approvalAgent = (turns = [callTurn(['pay', { n: 7 }]), { text: 'paid' }], settings: object = {}) =>
  backends.agent(service, turns, { tools: tools(), ...settings })
const decide = (id: string, decision: 'approve' | 'reject', body: object = {}, instance = service) =>
  instance.api('POST', `/api/v1/approvals/${id}/${decision}`, body)
const approvalsOf = async (runId: string, instance = service) =>
  (await instance.api('GET', `/api/v1/approvals?run_id=${runId}`)).data.items
const cancel = (runId: string) => service.api('POST', `/api/v1/runs/${runId}/cancel`, { reason: 'enough' })

describe('a second decision', () => {
  test('is CONFLICT, and the error names the first decision', async () => {
    const agent = await approvalAgent()
    const { data } = await agent.invoke()
    const { approval_id } = data.awaiting_approval
    await decide(approval_id, 'reject')
    const { decided_at, decided_by } = (await service.api('GET', `/api/v1/approvals/${approval_id}`)).data
    for (const second of ['approve', 'reject'] as const) {
      const { status, error } = await decide(approval_id, second)
      expect([status, error!.code]).toEqual([409, 'CONFLICT'])
      expect(error!.message).toBe(`this was already rejected at ${decided_at}, with key ${decided_by}`)
    }
  })

  test('loses when decisions are concurrent: one wins, and the call is made at most once', async () => {
    const agent = await approvalAgent()
    for (let round = 0; round < 10; round++) {
      const before = backends.tools.of('pay').length
      const { data } = await agent.invoke()
      const { approval_id } = data.awaiting_approval
      const decisions = ['approve', 'reject', 'approve', 'reject', 'approve'] as const
      const answers = await Promise.all(decisions.map((decision) => decide(approval_id, decision)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
      const winner = decisions[answers.findIndex(({ status }) => status === 200)]
      const approval = (await service.api('GET', `/api/v1/approvals/${approval_id}`)).data
      expect(approval.status).toBe(winner === 'approve' ? 'approved' : 'rejected')
      expect(backends.tools.of('pay')).toHaveLength(before + (winner === 'approve' ? 1 : 0))
      const events = await eventsOf(service, data.run_id, 'run.completed')
      expect(events.filter(({ type }) => type === 'approval.decided')).toHaveLength(1)
    }
  })
})

test('a decision made while other calls of the same model turn are running takes effect without a pause', async () => {
  const agent = await approvalAgent([callTurn(['slow', { n: 1 }], ['pay', { n: 2 }]), { text: 'both' }])
  const run = (await agent.invoke({ background: true })).data.run_id
  const approval = await eventually(async () => (await approvalsOf(run))[0] ?? false)
  await eventually(() => gates.length > 0)
  const paid = backends.tools.of('pay').length
  const deciding = decide(approval.approval_id, 'approve', { edited_input: { n: 5 } })
  await eventually(async () => (await approvalsOf(run))[0].status === 'approved')
  releaseCalls()
  const { status, data } = await deciding
  expect([status, data.output]).toEqual([200, { text: 'both' }])
  expect(backends.tools.of('pay').slice(paid)).toMatchObject([{ input: { n: 5 } }])
  expect(toolResultsOf(agent.requests().at(-1))).toEqual([{ slowly: { n: 1 } }, { took: { n: 5 } }])
  const types = (await eventsOf(service, run, 'run.completed')).map(({ type }) => type)
  expect(types).not.toContain('run.paused')
})

describe('a run that ends cancels its pauses', () => {
  test('cancelling a waiting run cancels its approval, which can no longer be decided', async () => {
    const agent = await approvalAgent()
    const { data } = await agent.invoke()
    const { approval_id } = data.awaiting_approval
    expect((await cancel(data.run_id)).data).toMatchObject({ status: 'cancelled', already: false })
    const run = (await service.api('GET', `/api/v1/runs/${data.run_id}`)).data
    expect(run).toMatchObject({ status: 'cancelled', pending: null, error_message: 'enough' })
    expect((await service.api('GET', `/api/v1/approvals/${approval_id}`)).data.status).toBe('cancelled')
    expect((await decide(approval_id, 'approve')).error).toMatchObject({
      code: 'CONFLICT',
      message: 'this was cancelled: its run has ended',
    })
  })

  test('when cancel and approve race, the approval is either decided or cancelled, and the run ends', async () => {
    const agent = await approvalAgent()
    for (let round = 0; round < 10; round++) {
      const { data } = await agent.invoke()
      const { approval_id } = data.awaiting_approval
      const [ended, decided] = await Promise.all([cancel(data.run_id), decide(approval_id, 'approve')])
      const run = await untilStatus(service, data.run_id, 'completed', 'cancelled')
      expect(run.pending).toBeNull()
      const approval = (await service.api('GET', `/api/v1/approvals/${approval_id}`)).data
      expect(approval.status).toBe(decided.status === 409 ? 'cancelled' : 'approved')
      if (ended.status === 200) expect(run.status).toBe('cancelled')
      else expect([ended.status, run.status]).toEqual([409, 'completed'])
    }
  })

  test('cancelling a running run aborts its tool call and cancels pending approvals', async () => {
    const agent = await approvalAgent([callTurn(['slow', { n: 1 }], ['pay', { n: 2 }]), { text: 'both' }])
    const invoking = agent.invoke()
    await eventually(() => gates.length > 0)
    const approval = await eventually(async () => {
      const { data } = await service.api('GET', `/api/v1/approvals?agent_id=${agent.agentId}`)
      return data.items[0] ?? false
    })
    await cancel(approval.run_id)
    const { status, data } = await invoking
    expect([status, data.status, data.error_message]).toEqual([200, 'cancelled', 'enough'])
    expect((await approvalsOf(approval.run_id))[0].status).toBe('cancelled')
    releaseCalls()
  })

  test('cancelling a run while it requests an approval leaves nothing pending', async () => {
    const agent = await approvalAgent()
    const runs: string[] = []
    for (let round = 0; round < 20; round++) {
      const requests = agent.requests().length
      const run = (await agent.invoke({ background: true })).data.run_id
      runs.push(run)
      await eventually(() => agent.requests().length > requests, { intervalMs: 1 })
      await Bun.sleep((round % 10) / 2)
      await cancel(run)
    }
    for (const run of runs) {
      expect((await untilStatus(service, run, 'cancelled')).pending).toBeNull()
      const [pending] = await sql`select from pauses where run_id = ${run} and status = 'pending'`
      expect(pending).toBeUndefined()
    }
  })
})

describe('expiry and timeouts', () => {
  test('an undecided pause expires, is not treated as rejected, and the run is timed_out', async () => {
    const instance = await startTestService({ ...backends.env, PAUSE_EXPIRES_SECONDS: '1' })
    const agent = await backends.agent(instance, [callTurn(['pay', { n: 1 }], ['pay', { n: 2 }])], { tools: tools() })
    const before = backends.tools.of('pay').length
    const { data } = await agent.invoke()
    const { approval_id, expires_at } = data.awaiting_approval
    expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(0)
    const run = await untilStatus(instance, data.run_id, 'timed_out')
    expect(run).toMatchObject({ pending: null, error_message: 'not approved in time' })
    expect(run.error_detail).toEqual({ reason: 'approval_expired', approval_id })
    const statuses = (await approvalsOf(data.run_id, instance)).map(({ status }: { status: string }) => status)
    expect(statuses.sort()).toEqual(['cancelled', 'expired'])
    const late = await decide(approval_id, 'approve', {}, instance)
    expect(late.error).toMatchObject({
      code: 'CONFLICT',
      message: `this expired at ${expires_at}: it was not decided in time`,
    })
    expect(backends.tools.of('pay')).toHaveLength(before)
    const events = await eventsOf(instance, data.run_id, 'run.timed_out')
    expect(events.map(({ type }) => type)).not.toContain('approval.decided')
    await instance.stop()
  })

  test('an expired approval cannot be decided, even before the expiry is processed', async () => {
    const agent = await approvalAgent()
    const { data } = await agent.invoke()
    const { approval_id } = data.awaiting_approval
    await sql`update pauses set expires_at = now() - interval '1 millisecond' where pause_id = ${approval_id}`
    expect((await decide(approval_id, 'approve')).error!.message).toContain('it was not decided in time')
    await untilStatus(service, data.run_id, 'timed_out')
  })

  test('time spent waiting for a person does not count towards timeout_seconds', async () => {
    const agent = await approvalAgent(undefined, { timeout_seconds: 5 })
    const { data } = await agent.invoke()
    // Simulates a wait of one day.
    await sql`update runs set started_at = started_at - interval '1 day' where run_id = ${data.run_id}`
    await eventually(async () => {
      const [{ used_ms: used }] = await sql<[{ used_ms: number }]>`
        select used_ms from hosted_runs where run_id = ${data.run_id}`
      return used < 4_000
    })
    await Bun.sleep(5_100)
    const { status, data: ended } = await decide(data.awaiting_approval.approval_id, 'approve')
    expect([status, ended.status]).toEqual([200, 'completed'])
  })
})
