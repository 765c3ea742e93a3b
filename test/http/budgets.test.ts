import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig, toldOf } from '../support/hosted-rig.ts'
import type { Turn } from '../support/model-server.ts'
import { OPERATOR_TOKEN } from '../support/service.ts'

/**
 * `budget_usd` covers a run and the runs that carry out its calls (docs/specification.md#budgets). A token costs a tenth
 * of a cent.
 */

let rig: HostedRig
beforeAll(async () => {
  const prices = Array.from({ length: 100 }, (_, n) => [`model-${n + 1}`, { input: 1_000, output: 1_000 }])
  rig = await startHostedRig({ MODEL_PRICES: JSON.stringify(Object.fromEntries(prices)) })
})

const ask = (agent: ScriptedAgent, name = 'ask') => ({
  type: 'agent',
  name,
  description: 'Asks.',
  agent_id: agent.agentId,
})
/** A turn with so many calls of an agent. */
const asking = (count: number, usage: readonly [number, number] = [5, 5]): Turn => ({
  ...callTurn(...Array.from({ length: count }, (_, n) => ['ask', { message: `question ${n}` }] as const)),
  usage,
})
const runOf = async (runId: string) => (await rig.service.api('GET', `/api/v1/runs/${runId}`)).data
const childrenOf = async (runId: string) =>
  (await rig.service.api('GET', `/api/v1/runs/${runId}/children?limit=200`)).data.items

/** Its model costs 5 cents a question, and notes how many questions it is asked at once. */
async function clerk(place: Parameters<HostedRig['agent']>[0] = rig.service, settings: object = {}) {
  const seen = { atOnce: 0, most: 0 }
  const gates: (() => void)[] = []
  const agent = await rig.agent(
    place,
    async () => {
      seen.most = Math.max(seen.most, ++seen.atOnce)
      await new Promise<void>((resolve) => gates.push(resolve))
      seen.atOnce--
      return { text: 'an answer', usage: [40, 10] }
    },
    settings,
  )
  const letGo = () => {
    for (const open of gates.splice(0)) open()
  }
  /** Answers whatever is asked until the call is over. */
  async function serve<T>(call: Promise<T>): Promise<T> {
    let isOver = false
    void call.finally(() => {
      isOver = true
    })
    await eventually(() => {
      letGo()
      return isOver
    })
    return call
  }
  return { agent, seen, gates, letGo, serve }
}

describe('a budget', () => {
  test('covers the runs that carry out the calls, one after the other', async () => {
    const { agent: child, serve } = await clerk()
    const parent = await rig.agent(rig.service, [asking(1)], { budget_usd: 0.1, tools: [ask(child)] })
    const { data } = await serve(parent.invoke())
    // 1 + 5 + 1 + 5 cents; a third question of the parent would come on top of 12.
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'budget_exceeded', budget_usd: 0.1 } })
    expect(data.error_message).toBe('the run would exceed its budget of 0.1 USD (budget_usd)')
    expect(data.error_detail.spent_usd).toBeCloseTo(0.13)
    expect((await runOf(data.run_id)).cost_usd).toBeCloseTo(0.02)
    const children = await childrenOf(data.run_id)
    expect(children.map(({ status, cost_usd }: never) => [status, cost_usd])).toEqual([
      ['completed', 0.05],
      ['completed', 0.05],
    ])
  })

  test('covers runs at once: no more than its last call passes it, and the others are told whose budget it is', async () => {
    const { agent: child, seen, serve } = await clerk()
    const parent = await rig.agent(rig.service, [asking(16)], { budget_usd: 0.1, tools: [ask(child)] })
    const { data } = await serve(parent.invoke())
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'budget_exceeded', budget_usd: 0.1 } })
    // What a call may come to does not fit beside another one.
    expect([seen.most, child.requests().length]).toEqual([1, 2])
    const children = await childrenOf(data.run_id)
    expect(children).toHaveLength(16)
    const refused = await Promise.all(
      children.filter(({ status }: never) => status === 'failed').map(({ run_id }: never) => runOf(run_id)),
    )
    expect(refused).toHaveLength(14)
    for (const run of refused) {
      expect(run.error_message).toBe(
        `the run would exceed the budget of 0.1 USD of run ${data.run_id}, which it is part of (budget_usd)`,
      )
      expect(run.error_detail).toMatchObject({ reason: 'budget_exceeded', budget_run_id: data.run_id })
      expect(run.error_detail.spent_usd).toBeCloseTo(0.11)
    }
  })

  test('with room for all of them lets runs work at once', async () => {
    const { agent: child, seen, gates, letGo } = await clerk(rig.service, { max_output_tokens: 100 })
    const parent = await rig.agent(rig.service, [asking(5), { text: 'done' }], { budget_usd: 10, tools: [ask(child)] })
    const invoking = parent.invoke()
    await eventually(() => gates.length === 5)
    letGo()
    expect((await invoking).data).toMatchObject({ status: 'completed', output: { text: 'done' } })
    expect(seen.most).toBe(5)
  })

  test('covers runs below those below', async () => {
    const { agent: last, serve } = await clerk()
    const middle = await rig.agent(rig.service, [asking(2), { text: 'from below' }], { tools: [ask(last)] })
    const top = await rig.agent(rig.service, [asking(3)], { budget_usd: 0.13, tools: [ask(middle)] })
    const { data } = await serve(top.invoke())
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'budget_exceeded', budget_usd: 0.13 } })
    // By no more than its last call.
    const cents = top.requests().length + middle.requests().length + 5 * last.requests().length
    expect(cents).toBeGreaterThan(13)
    expect(cents).toBeLessThanOrEqual(13 + 5)
  })

  test('of a run below holds beside that of the run above, whichever is passed first', async () => {
    const { agent: modest, serve } = await clerk(rig.service, { budget_usd: 0.02 })
    const rich = await rig.agent(rig.service, [asking(1), { text: 'done' }], { budget_usd: 5, tools: [ask(modest)] })
    const { data } = await serve(rich.invoke())
    expect(data.status).toBe('completed')
    expect(toldOf(rich.requests().at(-1))).toEqual([
      { error: 'the run of the agent has ended as failed: the run has exceeded its budget of 0.02 USD (budget_usd)' },
    ])
    const { agent: spender, serve: serveOther } = await clerk(rig.service, { budget_usd: 5 })
    const poor = await rig.agent(rig.service, [asking(3), { text: 'done' }], {
      budget_usd: 0.05,
      tools: [ask(spender)],
    })
    const other = (await serveOther(poor.invoke())).data
    expect(other).toMatchObject({ status: 'failed', error_detail: { reason: 'budget_exceeded', budget_usd: 0.05 } })
    expect(spender.requests()).toHaveLength(1)
  })

  test('is no concern of runs that callers have begun below it, which carry out none of its calls', async () => {
    const parent = await rig.agent(rig.service, [{ text: 'done', usage: [5, 5] }], { budget_usd: 0.05 })
    const { data } = await parent.invoke()
    const free = await rig.agent(rig.service, [{ text: 'done', usage: [500, 500] }])
    expect((await free.invoke({ parent_run_id: data.run_id })).data.status).toBe('completed')
  })

  test('makes no run wait for ever for one that was let go of', async () => {
    const tenant = await newTenant(rig.service)
    const { agent: child, gates, letGo } = await clerk(tenant)
    const parent = await rig.agent(tenant, [asking(2), { text: 'done' }], { budget_usd: 0.2, tools: [ask(child)] })
    const { data } = await parent.invoke({ background: true })
    await eventually(() => gates.length === 1)
    const setStatus = (status: string) =>
      rig.service.api('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, { status }, { key: OPERATOR_TOKEN })
    const { aborted } = rig.model
    await setStatus('suspended')
    await eventually(() => rig.model.aborted > aborted)
    await setStatus('active')
    letGo()
    await eventually(async () => {
      letGo()
      return (await tenant.api('GET', `/api/v1/runs/${data.run_id}`)).data.status !== 'running'
    })
    expect((await untilStatus(tenant, data.run_id, 'completed')).output).toEqual({ text: 'done' })
  })
})
