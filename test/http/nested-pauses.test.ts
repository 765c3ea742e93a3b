import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import {
  type Backends,
  callTurn,
  eventsOf,
  type ScriptedAgent,
  startBackends,
  toolResultsOf,
} from '../support/hosted-rig.ts'
import { freshDatabase } from '../support/postgres.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Agents as tools whose runs pause for a person (docs/hosted-agents.md#pauses). */

let service: TestService
const { url: databaseUrl, sql } = await freshDatabase()
const gates: (() => void)[] = []
const backends: Backends = startBackends((call) => {
  if (call.tool !== 'slow') return { took: call.input }
  return new Promise((resolve) => gates.push(() => resolve({ slowly: call.input })))
})
beforeAll(async () => {
  service = await startTestService({ ...backends.env, DATABASE_URL: databaseUrl, PAUSE_EXPIRES_SECONDS: '600' })
})

const pay = () => [backends.tools.tool('pay', { requires_approval: true }), backends.tools.tool('slow')]
const child = (turns = [callTurn(['pay', { n: 1 }]), { text: 'child paid' }]) =>
  backends.agent(service, turns, { name: 'child', tools: pay() })
const asTool = ({ agentId }: ScriptedAgent, name: string, more: object = {}) => ({
  type: 'agent',
  name,
  description: 'a colleague',
  agent_id: agentId,
  ...more,
})
/** An agent that calls each of these once, concurrently. */
const parentOf = (children: readonly ScriptedAgent[], more: object = {}, text = 'all done') => {
  const names = children.map((_, index) => `ask_${index}`)
  const turns = [callTurn(...names.map((name) => [name, { message: `for ${name}` }] as const)), { text }]
  const tools = children.map((each, index) => asTool(each, names[index]!, more))
  return backends.agent(service, turns, { name: 'parent', tools })
}
const decide = (id: string, decision: 'approve' | 'reject' = 'approve', options: object = {}) =>
  service.api('POST', `/api/v1/approvals/${id}/${decision}`, {}, options)
/** The approval that a run of this agent waits for, as soon as there is one. */
const pendingOf = ({ agentId }: ScriptedAgent) =>
  eventually(
    async () => {
      const { data } = await service.api('GET', `/api/v1/approvals?status=pending&agent_id=${agentId}`)
      return data.items[0] ?? false
    },
    { intervalMs: 1 },
  )
const record = async (runId: string) => (await service.api('GET', `/api/v1/runs/${runId}`)).data
const childrenOf = async (runId: string) => (await service.api('GET', `/api/v1/runs/${runId}/children`)).data.items

describe('a child run that requests an approval', () => {
  test('pauses its parent; the decision returns the outcome of the parent', async () => {
    const below = await child()
    const above = await parentOf([below])
    const { status, data } = await above.invoke()
    expect([status, data.status]).toEqual([202, 'awaiting_approval'])
    const { approval_id, tool, input } = data.awaiting_approval
    expect([tool, input]).toEqual(['pay', { n: 1 }])
    const [run] = await childrenOf(data.run_id)
    expect(run).toMatchObject({ status: 'awaiting_approval', parent_run_id: data.run_id, agent_id: below.agentId })
    const parent = await record(data.run_id)
    expect(parent).toMatchObject({ status: 'awaiting_approval' })
    expect(parent.pending).toEqual((await record(run.run_id)).pending)
    expect(parent.pending).toMatchObject({ id: approval_id, run_id: run.run_id })
    const approval = (await service.api('GET', `/api/v1/approvals/${approval_id}`)).data
    expect(approval).toMatchObject({ run_id: run.run_id, root_run_id: data.run_id, agent_id: below.agentId })
    const answer = await decide(approval_id)
    expect([answer.status, answer.data.run_id, answer.data.output]).toEqual([200, data.run_id, { text: 'all done' }])
    expect(toolResultsOf(above.requests().at(-1))).toEqual([{ text: 'child paid' }])
    expect(below.requests()[0]!.body.messages.at(-1)).toEqual({ role: 'user', content: 'for ask_0' })
    expect((await record(run.run_id)).status).toBe('completed')
    const types = (await eventsOf(service, data.run_id, 'run.completed')).map(({ type }) => type)
    expect(types).toEqual([
      'run.started',
      'llm.call',
      'tool.call.started',
      'run.paused',
      'tool.call.finished',
      'llm.call',
      'run.completed',
    ])
  })

  test('three levels deep, pauses and resumes every run above it', async () => {
    const bottom = await child()
    const middle = await parentOf([bottom], {}, 'middle done')
    const top = await parentOf([middle], {}, 'top done')
    const { data } = await top.invoke()
    const [middleRun] = await childrenOf(data.run_id)
    expect(await record(middleRun.run_id)).toMatchObject({ status: 'awaiting_approval' })
    const answer = await decide(data.awaiting_approval.approval_id)
    expect(answer.data).toMatchObject({ run_id: data.run_id, status: 'completed', output: { text: 'top done' } })
    expect(toolResultsOf(top.requests().at(-1))).toEqual([{ text: 'middle done' }])
    expect([bottom, middle, top].map((agent) => agent.requests().length)).toEqual([2, 2, 2])
  })

  test('two at once can be decided in any order, and the parent resumes after both', async () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ] as const) {
      const children = [await child(), await child()]
      const above = await parentOf(children)
      const { data } = await above.invoke()
      const { items } = (await service.api('GET', '/api/v1/approvals?status=pending')).data
      const ids = children.map(
        ({ agentId }) => items.find((item: { agent_id: string }) => item.agent_id === agentId).approval_id,
      )
      expect(data.awaiting_approval.approval_id).toBe(ids[0])
      const first = await decide(ids[order[0]]!)
      expect([first.status, first.data.run_id]).toEqual([202, data.run_id])
      expect(first.data.awaiting_approval.approval_id).toBe(ids[order[1]])
      expect((await record(data.run_id)).pending.id).toBe(ids[order[1]])
      const second = await decide(ids[order[1]]!, 'reject')
      expect([second.status, second.data.output]).toEqual([200, { text: 'all done' }])
      expect(above.requests()).toHaveLength(2)
    }
  })

  test('pauses the parent only when no other child is still running', async () => {
    const asking = await child()
    const working = await child([callTurn(['slow', { n: 1 }]), { text: 'worked' }])
    const above = await parentOf([asking, working])
    const invoking = above.invoke()
    await eventually(() => gates.length > 0)
    const pending = await pendingOf(asking)
    await untilStatus(service, pending.run_id, 'awaiting_approval')
    expect((await record(pending.root_run_id)).status).toBe('running')
    for (const open of gates.splice(0)) open()
    const { status, data } = await invoking
    expect([status, data.awaiting_approval?.approval_id]).toEqual([202, pending.approval_id])
    expect((await decide(pending.approval_id)).data.output).toEqual({ text: 'all done' })
    expect(toolResultsOf(above.requests().at(-1))).toEqual([{ text: 'child paid' }, { text: 'worked' }])
  })

  test('resumes its parent even when decided while the parent is pausing', async () => {
    const below = await child()
    const above = await parentOf([below])
    for (let round = 0; round < 10; round++) {
      const run = (await above.invoke({ background: true })).data.run_id
      const { data } = await decide((await pendingOf(below)).approval_id)
      expect(data).toMatchObject({ run_id: run, status: 'completed', output: { text: 'all done' } })
    }
  })

  test('an agent tool can require approval: its run starts only then, and edited arguments are validated', async () => {
    const below = await child([{ text: 'child said' }])
    const above = await parentOf([below], { requires_approval: true })
    const { data } = await above.invoke()
    const { approval_id } = data.awaiting_approval
    expect(await childrenOf(data.run_id)).toEqual([])
    const path = `/api/v1/approvals/${approval_id}/approve`
    const rejected = await service.api('POST', path, { edited_input: { n: 1 } })
    expect([rejected.status, rejected.error!.code]).toEqual([400, 'VALIDATION_ERROR'])
    const answer = await service.api('POST', path, { edited_input: { message: 'something else' } })
    expect(answer.data.output).toEqual({ text: 'all done' })
    expect(below.requests()[0]!.body.messages.at(-1)!.content).toBe('something else')
  })
})

describe('the end of a parent run', () => {
  test('cancelling it cancels its descendants and their pauses, with one event each', async () => {
    const bottom = await child()
    const middle = await parentOf([bottom])
    const top = await parentOf([middle])
    const { data } = await top.invoke()
    const { approval_id } = data.awaiting_approval
    const [middleRun] = await childrenOf(data.run_id)
    const [bottomRun] = await childrenOf(middleRun.run_id)
    expect((await service.api('POST', `/api/v1/runs/${data.run_id}/cancel`)).data.status).toBe('cancelled')
    for (const run of [middleRun, bottomRun]) {
      const ended = await record(run.run_id)
      expect(ended).toMatchObject({ status: 'cancelled', error_message: 'its parent was cancelled', pending: null })
      const events = await eventsOf(service, run.run_id, 'run.cancelled')
      expect(events.filter(({ type }) => type === 'run.cancelled')).toHaveLength(1)
    }
    expect((await service.api('GET', `/api/v1/approvals/${approval_id}`)).data.status).toBe('cancelled')
    expect((await decide(approval_id)).status).toBe(409)
  })

  test('cancelling it while its child is running or starting leaves nothing running', async () => {
    const below = await child([callTurn(['pay', { n: 1 }])])
    const above = await parentOf([below])
    const runs: string[] = []
    for (let round = 0; round < 15; round++) {
      const requests = above.requests().length
      const run = (await above.invoke({ background: true })).data.run_id
      runs.push(run)
      await eventually(() => above.requests().length > requests, { intervalMs: 1 })
      await Bun.sleep(round)
      await service.api('POST', `/api/v1/runs/${run}/cancel`)
    }
    await eventually(async () => {
      const left = await sql`
        select run_id from hosted_runs where root_run_id = any(${runs}::uuid[]) and phase <> 'ended'`
      expect([...left]).toEqual([])
      const pending = await sql`
        select pause_id from pauses p join hosted_runs h using (run_id)
        where h.root_run_id = any(${runs}::uuid[]) and p.status = 'pending'`
      expect([...pending]).toEqual([])
    })
  })

  test("a timeout cancels its child and aborts the child's tool call", async () => {
    const below = await child([callTurn(['slow', { n: 1 }])])
    const above = await backends.agent(service, [callTurn(['ask', { message: 'hurry' }])], {
      tools: [asTool(below, 'ask')],
      timeout_seconds: 1,
    })
    const { status, data } = await above.invoke()
    expect([status, data.status]).toEqual([200, 'timed_out'])
    const [run] = await childrenOf(data.run_id)
    expect(run).toMatchObject({ status: 'cancelled', error_message: 'its parent has ended' })
    await eventually(async () => {
      const executing = await sql`select from hosted_runs where phase = 'executing' and root_run_id = ${data.run_id}`
      return executing.length === 0
    })
    for (const open of gates.splice(0)) open()
  })

  test('an expired approval of its own cancels a waiting child', async () => {
    const below = await child()
    const above = await backends.agent(service, [callTurn(['ask', { message: 'x' }], ['pay', { n: 9 }])], {
      tools: [asTool(below, 'ask'), ...pay()],
    })
    const { data } = await above.invoke()
    expect(data.awaiting_approval.input).toEqual({ n: 9 })
    await sql`update pauses set expires_at = now() where pause_id = ${data.awaiting_approval.approval_id}`
    await untilStatus(service, data.run_id, 'timed_out')
    const [run] = await childrenOf(data.run_id)
    expect(run).toMatchObject({ status: 'cancelled' })
    const left = await sql`select from pauses where run_id = ${run.run_id} and status = 'pending'`
    expect(left).toHaveLength(0)
  })
})

test('an expired pause of a child ends the child; its parent gets the error and continues', async () => {
  const above = await parentOf([await child()])
  const { data } = await above.invoke()
  await sql`update pauses set expires_at = now() where pause_id = ${data.awaiting_approval.approval_id}`
  expect((await untilStatus(service, data.run_id, 'completed')).output).toEqual({ text: 'all done' })
  expect(toolResultsOf(above.requests().at(-1))).toEqual([
    { error: "the agent's run ended as timed_out: not approved in time" },
  ])
})

test("a key of the child's agent can decide, and gets the child run, as it may not read the parent", async () => {
  const below = await child()
  const above = await parentOf([below])
  const { data } = await above.invoke()
  const [run] = await childrenOf(data.run_id)
  const { approval_id } = data.awaiting_approval
  expect((await decide(approval_id, 'approve', { key: above.agentKey })).error!.code).toBe('FORBIDDEN')
  const answer = await decide(approval_id, 'approve', { key: below.agentKey })
  expect(answer.data).toMatchObject({ run_id: run.run_id, status: 'completed', output: { text: 'child paid' } })
  await untilStatus(service, data.run_id, 'completed')
})
