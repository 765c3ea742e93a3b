import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig, toolResultsOf } from '../support/hosted-rig.ts'
import type { Turn } from '../support/model-server.ts'
import { OPERATOR_TOKEN } from '../support/service.ts'

/**
 * `budget_usd` covers a run and the child runs of its agent tools (docs/hosted-agents.md#budgets). A token costs a tenth of
 * a cent.
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
/** A model turn with `count` calls of an agent tool. */
const asking = (count: number, usage: readonly [number, number] = [5, 5]): Turn => ({
  ...callTurn(...Array.from({ length: count }, (_, n) => ['ask', { message: `question ${n}` }] as const)),
  usage,
})
const runOf = async (runId: string) => (await rig.service.api('GET', `/api/v1/runs/${runId}`)).data
const childrenOf = async (runId: string) =>
  (await rig.service.api('GET', `/api/v1/runs/${runId}/children?limit=200`)).data.items

/** A child agent whose model call costs 5 cents; it counts its concurrent model calls. */
async function clerk(instance: Parameters<HostedRig['agent']>[0] = rig.service, settings: object = {}) {
  const seen = { atOnce: 0, most: 0 }
  const gates: (() => void)[] = []
  const agent = await rig.agent(
    instance,
    async () => {
      seen.most = Math.max(seen.most, ++seen.atOnce)
      await new Promise<void>((resolve) => gates.push(resolve))
      seen.atOnce--
      return { text: 'an answer', usage: [40, 10] }
    },
    settings,
  )
  const releaseCalls = () => {
    for (const open of gates.splice(0)) open()
  }
  /** Answers model calls until `call` settles. */
  async function serve<T>(call: Promise<T>): Promise<T> {
    let isOver = false
    void call.finally(() => {
      isOver = true
    })
    await eventually(() => {
      releaseCalls()
      return isOver
    })
    return call
  }
  return { agent, seen, gates, releaseCalls, serve }
}

describe('a budget', () => {
  test('covers child runs that run one after the other', async () => {
    const { agent: child, serve } = await clerk()
    const parent = await rig.agent(rig.service, [asking(1)], { budget_usd: 0.1, tools: [ask(child)] })
    const { data } = await serve(parent.invoke())
    // 1 + 5 + 1 + 5 cents; the third model call of the parent would add to 12.
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

  test('covers concurrent child runs: at most one call exceeds it, and the others fail naming the budget', async () => {
    const { agent: child, seen, serve } = await clerk()
    const parent = await rig.agent(rig.service, [asking(16)], { budget_usd: 0.1, tools: [ask(child)] })
    const { data } = await serve(parent.invoke())
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'budget_exceeded', budget_usd: 0.1 } })
    // The most that two calls may cost together exceeds the budget, so they do not overlap.
    expect([seen.most, child.requests().length]).toEqual([1, 2])
    const children = await childrenOf(data.run_id)
    expect(children).toHaveLength(16)
    const rejected = await Promise.all(
      children.filter(({ status }: never) => status === 'failed').map(({ run_id }: never) => runOf(run_id)),
    )
    expect(rejected).toHaveLength(14)
    for (const run of rejected) {
      expect(run.error_message).toBe(
        `the run would exceed the budget of 0.1 USD of run ${data.run_id}, which it is part of (budget_usd)`,
      )
      expect(run.error_detail).toMatchObject({ reason: 'budget_exceeded', budget_run_id: data.run_id })
      expect(run.error_detail.spent_usd).toBeCloseTo(0.11)
    }
  })

  test('lets child runs work concurrently when it has room for all of them', async () => {
    const { agent: child, seen, gates, releaseCalls } = await clerk(rig.service, { max_output_tokens: 100 })
    const parent = await rig.agent(rig.service, [asking(5), { text: 'done' }], { budget_usd: 10, tools: [ask(child)] })
    const invoking = parent.invoke()
    await eventually(() => gates.length === 5)
    releaseCalls()
    expect((await invoking).data).toMatchObject({ status: 'completed', output: { text: 'done' } })
    expect(seen.most).toBe(5)
  })

  test('covers grandchild runs', async () => {
    const { agent: last, serve } = await clerk()
    const middle = await rig.agent(rig.service, [asking(2), { text: 'from below' }], { tools: [ask(last)] })
    const top = await rig.agent(rig.service, [asking(3)], { budget_usd: 0.13, tools: [ask(middle)] })
    const { data } = await serve(top.invoke())
    expect(data).toMatchObject({ status: 'failed', error_detail: { reason: 'budget_exceeded', budget_usd: 0.13 } })
    // Exceeded by no more than the last call.
    const cents = top.requests().length + middle.requests().length + 5 * last.requests().length
    expect(cents).toBeGreaterThan(13)
    expect(cents).toBeLessThanOrEqual(13 + 5)
  })

  test('of a child run applies together with that of its parent, whichever is exceeded first', async () => {
    const { agent: modest, serve } = await clerk(rig.service, { budget_usd: 0.02 })
    const rich = await rig.agent(rig.service, [asking(1), { text: 'done' }], { budget_usd: 5, tools: [ask(modest)] })
    const { data } = await serve(rich.invoke())
    expect(data.status).toBe('completed')
    expect(toolResultsOf(rich.requests().at(-1))).toEqual([
      { error: "the agent's run ended as failed: the run has exceeded its budget of 0.02 USD (budget_usd)" },
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

  test('does not cover child runs that callers started with parent_run_id', async () => {
    const parent = await rig.agent(rig.service, [{ text: 'done', usage: [5, 5] }], { budget_usd: 0.05 })
    const { data } = await parent.invoke()
    const free = await rig.agent(rig.service, [{ text: 'done', usage: [500, 500] }])
    expect((await free.invoke({ parent_run_id: data.run_id })).data.status).toBe('completed')
  })

  test('a released run does not block runs that wait for the budget', async () => {
    const tenant = await newTenant(rig.service)
    const { agent: child, gates, releaseCalls } = await clerk(tenant)
    const parent = await rig.agent(tenant, [asking(2), { text: 'done' }], { budget_usd: 0.2, tools: [ask(child)] })
    const { data } = await parent.invoke({ background: true })
    await eventually(() => gates.length === 1)
    const setStatus = (status: string) =>
      rig.service.api('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, { status }, { key: OPERATOR_TOKEN })
    const { aborted } = rig.model
    await setStatus('suspended')
    await eventually(() => rig.model.aborted > aborted)
    await setStatus('active')
    releaseCalls()
    await eventually(async () => {
      releaseCalls()
      return (await tenant.api('GET', `/api/v1/runs/${data.run_id}`)).data.status !== 'running'
    })
    expect((await untilStatus(tenant, data.run_id, 'completed')).output).toEqual({ text: 'done' })
  })
})
