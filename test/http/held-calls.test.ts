import { beforeAll, describe, expect, test } from 'bun:test'
import { mintToken } from '../../src/tenants/keys/token.ts'
import type { Answer, CallOptions } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { LiveSocket, newTenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, type HostedRig, type ScriptedAgent, startHostedRig } from '../support/hosted-rig.ts'
import { freshDatabase } from '../support/postgres.ts'
import { OPERATOR_TOKEN, startTestService } from '../support/service.ts'

/** Calls that wait for a hosted run: they end with their key or workspace, and make no decision that they cannot stream. */

let rig: HostedRig
const gates: (() => void)[] = []
const openGates = () => {
  for (const open of gates.splice(0)) open()
}
const atGate = () => new Promise<void>((resolve) => gates.push(resolve))
const stores = async () => ({
  DATABASE_URL: (await freshDatabase()).url,
  CLICKHOUSE_URL: (await freshColumnarDatabase()).url,
  BOOTSTRAP_WORKSPACE_KEY: mintToken('workspace').text,
})
beforeAll(async () => {
  rig = await startHostedRig(await stores())
})

type Tenant = Awaited<ReturnType<typeof newTenant>>
const verdict = ({ status, error }: Answer) => `${status} ${error?.code} ${error?.message}`
const REVOKED = '401 UNAUTHENTICATED the key or feed token is no longer valid'
const SUSPENDED = '403 FORBIDDEN the workspace is suspended'
const setStatus = (tenant: Tenant, status: 'active' | 'suspended') =>
  rig.service.api('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, { status }, { key: OPERATOR_TOKEN })

/** An agent whose model answers on {@link openGates}. */
function slow(tenant: Tenant, before: readonly ReturnType<typeof callTurn>[] = [], settings: object = {}) {
  return rig.agent(
    tenant,
    async (_request, step) => {
      if (step < before.length) return before[step]!
      await atGate()
      return { text: 'done' }
    },
    settings,
  )
}

/** Each prepares an agent or a pause, and returns the call that waits for the run. */
const CALLS: Record<string, (tenant: Tenant) => Promise<(options: CallOptions) => Promise<Answer>>> = {
  async invoke(tenant) {
    const agent = await slow(tenant)
    return (options) => agent.invoke({}, options)
  },
  async approve(tenant) {
    const path = await approvalOf(tenant)
    return (options) => tenant.api('POST', `${path}/approve`, {}, options)
  },
  async reject(tenant) {
    const path = await approvalOf(tenant)
    return (options) => tenant.api('POST', `${path}/reject`, {}, options)
  },
  async answer(tenant) {
    const agent = await slow(tenant, [callTurn(['request_input', { question: 'Which?' }])], {
      allow_input_requests: true,
    })
    const { data } = await agent.invoke()
    const path = `/api/v1/input-requests/${data.awaiting_input.request_id}/answer`
    return (options) => tenant.api('POST', path, { answer: 'this' }, options)
  },
}

/** The path of a pending approval. */
async function approvalOf(tenant: Tenant): Promise<string> {
  const tools = [rig.tools.tool('pay', { requires_approval: true })]
  const { data } = await (await slow(tenant, [callTurn(['pay', { n: 1 }])], { tools })).invoke()
  return `/api/v1/approvals/${data.awaiting_approval.approval_id}`
}

async function newKey(tenant: Tenant, body: object = {}): Promise<{ key: string; key_id: string }> {
  return (await tenant.api('POST', '/api/v1/keys', { name: 'a key', ...body })).data
}

/** Makes one call of each kind, all waiting for the model. @returns their outcomes and runs */
async function holdAll(tenant: Tenant, options: CallOptions) {
  const held = await Promise.all(Object.values(CALLS).map(async (prepare) => prepare(tenant)))
  const answers = held.map((call) => call(options))
  await eventually(() => gates.length === held.length)
  const runs = (await tenant.api('GET', '/api/v1/runs')).data.items.map(({ run_id }: { run_id: string }) => run_id)
  expect(runs).toHaveLength(held.length)
  return { verdicts: () => Promise.all(answers.map(async (answer) => verdict(await answer))), runs }
}

const NAMES = Object.keys(CALLS)

describe(`${NAMES.join(', ')} while waiting for the run`, () => {
  test('get 401 as soon as their key is revoked; the runs continue', async () => {
    const tenant = await newTenant(rig.service)
    const { key, key_id } = await newKey(tenant)
    const { verdicts, runs } = await holdAll(tenant, { key })
    await tenant.api('POST', `/api/v1/keys/${key_id}/revoke`)
    // The model does not answer until the calls have returned.
    expect(await verdicts()).toEqual(NAMES.map(() => REVOKED))
    openGates()
    for (const run of runs) expect((await untilStatus(tenant, run, 'completed')).output).toEqual({ text: 'done' })
  })

  test('get 403 as soon as their workspace is suspended; the runs resume once it is active', async () => {
    const tenant = await newTenant(rig.service)
    const { verdicts, runs } = await holdAll(tenant, {})
    const { aborted } = rig.model
    await setStatus(tenant, 'suspended')
    expect(await verdicts()).toEqual(NAMES.map(() => SUSPENDED))
    // Suspension aborts the model calls.
    await eventually(() => rig.model.aborted === aborted + NAMES.length)
    openGates()
    await setStatus(tenant, 'active')
    await eventually(() => gates.length === NAMES.length)
    openGates()
    for (const run of runs) expect((await untilStatus(tenant, run, 'completed')).output).toEqual({ text: 'done' })
  })
})

describe('a call that waits for its run', () => {
  test('ends when another process revokes its key', async () => {
    const other = await startTestService({
      ...rig.env,
      DATABASE_URL: rig.service.databaseUrl,
      CLICKHOUSE_URL: rig.service.clickhouseUrl,
      BOOTSTRAP_WORKSPACE_KEY: rig.service.workspaceKey,
    })
    const tenant = await newTenant(rig.service)
    const { key, key_id } = await newKey(tenant)
    const agent = await slow(tenant)
    const held = agent.invoke({}, { key })
    await eventually(() => gates.length === 1)
    await other.api('POST', `/api/v1/keys/${key_id}/revoke`, undefined, { key: tenant.workspaceKey })
    expect(verdict(await held)).toBe(REVOKED)
    openGates()
    await other.stop()
  })

  test('ends when its key expires', async () => {
    const tenant = await newTenant(rig.service)
    const agent = await slow(tenant)
    const { key } = await newKey(tenant, { expires_at: new Date(Date.now() + 1_500).toISOString() })
    expect(verdict(await agent.invoke({}, { key }))).toBe(REVOKED)
    openGates()
  })

  test('does not get the output when its key is revoked while the run ends', async () => {
    const tenant = await newTenant(rig.service)
    const agent = await slow(tenant)
    for (let n = 0; n < 10; n++) {
      const { key, key_id } = await newKey(tenant)
      let isRevoked = false
      const held = agent.invoke({}, { key }).then((answer) => ({ answer, wasRevoked: isRevoked }))
      await eventually(() => gates.length === 1)
      const revoking = tenant.api('POST', `/api/v1/keys/${key_id}/revoke`).then(() => {
        isRevoked = true
      })
      openGates()
      const { answer, wasRevoked } = await held
      expect(wasRevoked ? verdict(answer) : '').toBe(wasRevoked ? REVOKED : '')
      await revoking
    }
  })

  test('retried with its Idempotency-Key after a suspension does not start a second run', async () => {
    const tenant = await newTenant(rig.service)
    const agent = await slow(tenant)
    const headers = { 'idempotency-key': 'once' }
    const held = agent.invoke({}, { headers })
    await eventually(() => gates.length === 1)
    await setStatus(tenant, 'suspended')
    expect(verdict(await held)).toBe(SUSPENDED)
    await setStatus(tenant, 'active')
    let again: Answer | undefined
    void agent.invoke({}, { headers }).then((answer) => {
      again = answer
    })
    await eventually(() => {
      openGates()
      return again !== undefined
    })
    expect(again!.data, again!.text).toMatchObject({ status: 'completed', output: { text: 'done' } })
    const { items } = (await tenant.api('GET', '/api/v1/runs')).data
    expect(items.map(({ run_id }: { run_id: string }) => run_id)).toEqual([again!.data.run_id])
  })
})

describe('at the feed limit of a workspace', () => {
  const FULL = '429 RATE_LIMITED a workspace may have 1 open feeds'
  const tools = () => [rig.tools.tool('pay', { requires_approval: true })]
  const start = async () => {
    const service = await startTestService({ ...rig.env, FEED_CONNECTIONS_PER_WORKSPACE: '1' })
    const turns = [callTurn(['pay', { n: 1 }], ['request_input', { question: 'Which?' }]), { text: 'done' }]
    const agent = await rig.agent(service, turns, { tools: tools(), allow_input_requests: true })
    return { service, agent }
  }
  /** The paths of the two pauses of a new run. */
  async function pausesOf(service: Awaited<ReturnType<typeof start>>['service'], agent: ScriptedAgent) {
    const { data } = await agent.invoke()
    const [approval] = (await service.api('GET', `/api/v1/approvals?run_id=${data.run_id}`)).data.items
    const [request] = (await service.api('GET', `/api/v1/input-requests?run_id=${data.run_id}`)).data.items
    return {
      runId: data.run_id as string,
      approval: `/api/v1/approvals/${approval.approval_id}`,
      request: `/api/v1/input-requests/${request.request_id}`,
    }
  }

  test('a decision that cannot be streamed is not made, while decisions without a stream work', async () => {
    const { service, agent } = await start()
    const first = await pausesOf(service, agent)
    const second = await pausesOf(service, agent)
    const feed = await LiveSocket.open(service)
    for (const [path, body] of [
      [`${first.approval}/approve`, {}],
      [`${first.approval}/reject`, {}],
      [`${first.request}/answer`, { answer: 'this' }],
    ] as const) {
      expect(verdict(await service.api('POST', path, { ...body, stream: true }))).toBe(FULL)
    }
    expect(verdict(await agent.invoke({ stream: true }))).toBe(FULL)
    for (const path of [first.approval, first.request])
      expect((await service.api('GET', path)).data.status).toBe('pending')
    const inBackground = await service.api('POST', `${second.approval}/approve`, { background: true })
    expect(inBackground.status).toBe(202)
    const waiting = await service.api('POST', `${second.request}/answer`, { answer: 'this' })
    expect(waiting.data).toMatchObject({ run_id: second.runId, status: 'completed' })
    await feed.close()
    await eventually(async () => {
      const { status } = await service.api('POST', `${first.approval}/approve`, { stream: true })
      return status === 200
    })
    const { text } = await service.api('POST', `${first.request}/answer`, { answer: 'this', stream: true })
    expect(text).toContain('event: done')
    expect((await service.api('GET', '/api/v1/runs')).data.items).toHaveLength(2)
    await service.stop()
  })

  test('of concurrent decisions only those that can be streamed are made', async () => {
    const { service, agent } = await start()
    const pauses = [await pausesOf(service, agent), await pausesOf(service, agent), await pausesOf(service, agent)]
    const answers = await Promise.all(
      pauses.map(({ approval }) => service.api('POST', `${approval}/approve`, { stream: true })),
    )
    for (const [index, { approval }] of pauses.entries()) {
      const { status } = (await service.api('GET', approval)).data
      const answer = answers[index]!
      expect(answer.status === 200 ? status : verdict(answer)).toBe(answer.status === 200 ? 'approved' : FULL)
    }
    expect(answers.some(({ status }) => status === 200)).toBe(true)
    await service.stop()
  })

  test('a rejected call releases its feed slot', async () => {
    const { service, agent } = await start()
    const nothing = '/api/v1/approvals/00000000-0000-4000-8000-000000000000/approve'
    for (let n = 0; n < 3; n++) {
      expect((await service.api('POST', nothing, { stream: true })).status).toBe(404)
      expect((await agent.invoke({ stream: true, session_id: crypto.randomUUID() })).status).toBe(404)
    }
    const { text } = await agent.invoke({ stream: true })
    expect(text).toContain('event: awaiting_approval')
    await service.stop()
  })
})
