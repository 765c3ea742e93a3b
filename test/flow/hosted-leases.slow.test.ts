import { beforeAll, describe, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { RawJson } from '../../src/base/raw-json.ts'
import { type Call, type HostedRun, type Pause, pendingOf } from '../../src/hosted/run/run.ts'
import { systemEvent } from '../../src/hosted/store/events.ts'
import { loadProgress } from '../../src/hosted/store/load.ts'
import { OwnershipLost, type StoredAnswer, storeAnswer } from '../../src/hosted/store/progress.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { createApi } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { type Backends, callTurn, startBackends } from '../support/hosted-rig.ts'
import { stepOf, type Turn } from '../support/model-server.ts'
import { freshDatabase, movableClock } from '../support/postgres.ts'
import { OPERATOR_TOKEN, spawnService, startTestService, type TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** Processes that share one database: one process executes a run at a time, and another takes over when it dies. */

let sql: Sql
let stores: Record<string, string>
let backends: Backends
const gates: (() => void)[] = []
const openGates = () => {
  for (const open of gates.splice(0)) open()
}
const gate = <T>(value: T) => new Promise<T>((resolve) => gates.push(() => resolve(value)))

/** Conversations being answered, and the most concurrent requests for any one of them. */
const open = new Map<string, number>()
let mostAtOnce = 0

beforeAll(async () => {
  const [database, columnar] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  sql = connectPostgres(database.url, { log: createLog('error'), max: 2 })
  atEnd(() => sql.end({ timeout: 1 }))
  backends = startBackends(({ tool, input }) => (tool === 'slow' ? gate({ slowly: input }) : { took: input }))
  const key = { BOOTSTRAP_WORKSPACE_KEY: mintToken('workspace').text }
  stores = { DATABASE_URL: database.url, CLICKHOUSE_URL: columnar.url, ...key, ...backends.env }
})

/** An agent whose model takes a moment for each turn; counts concurrent requests for the same conversation. */
function watched(tenant: Pick<TestService, 'url' | 'workspaceKey' | 'api'>, turns: readonly Turn[], takesMs = 40) {
  const { tool } = backends.tools
  const script = async (request: Parameters<typeof stepOf>[0]) => {
    const conversation = JSON.stringify([request.body.model, request.body.messages])
    const count = (open.get(conversation) ?? 0) + 1
    open.set(conversation, count)
    mostAtOnce = Math.max(mostAtOnce, count)
    await Bun.sleep(takesMs)
    open.set(conversation, open.get(conversation)! - 1)
    return turns[stepOf(request)]!
  }
  return backends.agent(tenant, script, { tools: [tool('fetch'), tool('slow')] })
}

const inProcess = (more: Record<string, string> = {}) => startTestService({ ...stores, ...more })

const STEPS = [
  { ...callTurn(['fetch', { n: 1 }]), extra: { reasoning_content: 'First the first.' } },
  callTurn(['fetch', { n: 2 }]),
  callTurn(['fetch', { n: 3 }]),
  { text: 'done' },
]
const TWICE = [callTurn(['fetch', { tag: 'twice' }]), { text: 'done' }] as const
const workspaceOf = async (run: string) => {
  const [row] = await sql<[{ workspace_id: string }]>`select workspace_id from hosted_runs where run_id = ${run}`
  return row.workspace_id
}

/** The answer to the first step, with one call that has been started. */
function fetchAnswer(run: HostedRun, attempt: string, callId: string): StoredAnswer {
  const toolCall = { id: 'a', name: 'fetch', arguments: '{"tag":"twice"}' }
  const call: Call = {
    callId,
    step: 1,
    position: 0,
    toolCallId: toolCall.id,
    tool: toolCall.name,
    input: new RawJson(toolCall.arguments),
    status: 'started',
    childRunId: null,
    output: null,
    startedFrame: 1,
    finishedFrame: null,
    durationMs: null,
  }
  const step = { step: 1, attempt, content: null, toolCalls: [toolCall], remark: null, inputTokens: 1, outputTokens: 1 }
  const at = Date.now()
  const event = systemEvent(run, at, 'llm.call', { step: 1 })
  const cost = { costUsd: 0, spentUsd: 0 }
  return { step, cost, event, calls: [call], pauses: [], pending: null, usedMs: 1, at, events: [] }
}

function heldCall(callId: string): Pause {
  const asks = { type: 'approval', tool: 'fetch', input: RawJson.of({}), question: null, options: null } as const
  return { pauseId: crypto.randomUUID(), callId, ...asks, expiresAt: null, frame: 1 }
}

const ownersOf = async (runs: readonly string[]) => {
  const rows = await sql<{ owner: string }[]>`
    select distinct owner from hosted_runs where run_id = any(${[...runs]}::uuid[]) and phase = 'executing'`
  return rows.map(({ owner }) => owner)
}
const phasesOf = async (runs: readonly string[]) => {
  const rows = await sql<{ phase: string }[]>`select phase from hosted_runs where run_id = any(${[...runs]}::uuid[])`
  return rows.map(({ phase }) => phase)
}

describe('two processes', () => {
  test("a killed process's runs are taken over by the other, which repeats nothing that is stored", async () => {
    // The first has a long lease, as a process that was alone; the other's is short.
    const second = await inProcess()
    const first = await spawnService({ ...stores, LOG_LEVEL: 'silent' })
    const agent = await watched(first, STEPS)
    const invoked = await Promise.all(
      Array.from({ length: 8 }, (_, n) => agent.invoke({ background: true, input: { message: `m${n}` } })),
    )
    const runs: string[] = invoked.map(({ data }) => data.run_id)
    await eventually(() => agent.requests().length > 12, { intervalMs: 1 })
    expect(await ownersOf(runs)).toHaveLength(1)
    first.kill('SIGKILL')
    await first.exited
    const stored = new Set(
      (
        await sql<{ name: string }[]>`
        select (h.plan->>'user') || ' ' || s.step as name from run_steps s join hosted_runs h using (run_id)`
      ).map(({ name }) => name),
    )
    const before = agent.requests().length
    await eventually(async () => (await phasesOf(runs)).every((phase) => phase === 'ended'))
    for (const run of runs) await untilStatus(second, run, 'completed')
    const again = agent
      .requests()
      .slice(before)
      .map((request) => {
        const message = request.body.messages.find(({ role }) => role === 'user')!.content
        return `${message} ${stepOf(request) + 1}`
      })
    expect(again.filter((step) => stored.has(step))).toEqual([])
    expect(new Set(again).size).toBe(again.length)
    for (const { body } of agent.requests()) {
      const said = body.messages.find(({ role }) => role === 'assistant')
      if (said !== undefined) expect(said.reasoning_content).toBe('First the first.')
    }
    expect(mostAtOnce).toBe(1)
    expect(backends.tools.effects('fetch')).toBe(8 * 3)
    await second.stop()
  })

  test('of two answers to one step, the first that is stored counts: no call of the other is made', async () => {
    const service = await inProcess()
    let asked = 0
    const agent = await backends.agent(service, () => (asked++ === 0 ? gate(TWICE[0]) : TWICE[1]), {
      tools: [backends.tools.tool('fetch')],
    })
    const { data } = await agent.invoke({ background: true, input: { message: 'twice' } })
    await eventually(() => asked === 1)
    const { run } = (await loadProgress(sql, { workspaceId: await workspaceOf(data.run_id), runId: data.run_id }))!
    const [{ owner }] = await sql<[{ owner: string }]>`select owner from hosted_runs where run_id = ${data.run_id}`
    const store = (attempt: string, callId: string) => storeAnswer(sql, run, owner, fetchAnswer(run, attempt, callId))
    const callId = crypto.randomUUID()
    await store('first', callId)
    // The response to the first may have been lost: storing it again changes nothing.
    await store('first', callId)
    expect(await store('second', crypto.randomUUID()).catch((error) => error)).toBeInstanceOf(OwnershipLost)
    // The answer of the service's own executor is the second, too.
    openGates()
    await untilStatus(service, data.run_id, 'completed')
    // As far as the service knows, the first one was made by another process.
    expect(backends.tools.calls.filter(({ input }) => input.tag === 'twice')).toEqual([])
    await service.stop()
  })

  test('an answer that has paused its run is not stored again once the run continues', async () => {
    const service = await inProcess()
    let asked = 0
    const agent = await backends.agent(service, () => gate(TWICE[asked++]!), { tools: [backends.tools.tool('fetch')] })
    const { data } = await agent.invoke({ background: true, input: { message: 'pauses' } })
    await eventually(() => asked === 1)
    const { run } = (await loadProgress(sql, { workspaceId: await workspaceOf(data.run_id), runId: data.run_id }))!
    const [{ owner }] = await sql<[{ owner: string }]>`select owner from hosted_runs where run_id = ${data.run_id}`
    const pause = heldCall(crypto.randomUUID())
    const { calls, ...answer } = fetchAnswer(run, 'first', pause.callId)
    const held = calls.map((call) => ({ ...call, status: 'held' as const, startedFrame: null }))
    const store = () =>
      storeAnswer(sql, run, owner, { ...answer, calls: held, pauses: [pause], pending: pendingOf(run.runId, pause) })
    await store()
    expect(await phasesOf([run.runId])).toEqual(['paused'])
    // The response was lost, and a decision has given the run back to this process before the second attempt.
    await sql`update hosted_runs set phase = 'executing', owner = ${owner} where run_id = ${run.runId}`
    expect(await store().catch((error) => error)).toBeInstanceOf(OwnershipLost)
    expect(await phasesOf([run.runId])).toEqual(['executing'])
    openGates()
    await service.api('POST', `/api/v1/runs/${run.runId}/cancel`, {})
    await service.stop()
  })

  test("a stopped process's runs continue in the other at once; a waiting caller gets their status", async () => {
    const first = await inProcess()
    const second = await inProcess()
    const agent = await watched(first, STEPS)
    const waiting = agent.invoke()
    await eventually(() => agent.requests().length > 0, { intervalMs: 1 })
    await first.stop()
    const { status, data } = await waiting
    expect([status, data.status, data.output]).toEqual([202, 'running', null])
    expect((await untilStatus(second, data.run_id, 'completed')).output).toEqual({ text: 'done' })
    await second.stop()
  })

  test('runs of a suspended workspace, and their child runs, are not executed until it is active again', async () => {
    const first = await inProcess()
    const second = await inProcess({ HOSTED_RUNS_AT_ONCE: '1' })
    const tenant = await newTenant(first)
    let isHanging = true
    const child = await backends.agent(tenant, () => (isHanging ? { hangs: true } : { text: 'four' }))
    const parent = await backends.agent(tenant, [callTurn(['ask', { message: 'x' }]), { text: 'done' }], {
      tools: [{ type: 'agent', name: 'ask', description: 'Asks.', agent_id: child.agentId }],
    })
    const { data } = await parent.invoke({ background: true })
    await eventually(() => child.requests().length === 1)
    const setStatus = (status: string) =>
      second.api('PATCH', `/api/v1/workspaces/${tenant.workspaceId}`, { status }, { key: OPERATOR_TOKEN })
    await setStatus('suspended')
    isHanging = false
    await first.stop()
    const phases = async () =>
      (await sql`select phase from hosted_runs where workspace_id = ${tenant.workspaceId}`).map(({ phase }) => phase)
    expect(await phases()).toEqual(['queued', 'queued'])
    // Some of these are queued, so that the queue is read.
    const other = await watched(second, [{ text: 'done' }])
    for (const { data } of await Promise.all([other.invoke(), other.invoke(), other.invoke()]))
      expect(data.status).toBe('completed')
    expect(await phases()).toEqual(['queued', 'queued'])
    expect(child.requests()).toHaveLength(1)
    await setStatus('active')
    await untilStatus({ api: createApi(second.url, tenant.workspaceKey) }, data.run_id, 'completed')
    await second.stop()
  })

  test("a run stays with its process when the database's clock steps forward", async () => {
    const { url } = await freshDatabase()
    const stepClock = await movableClock(url)
    const own = { ...stores, DATABASE_URL: url, HOSTED_RUNS_AT_ONCE: '2' }
    const [first, second] = [await startTestService(own), await startTestService(own)]
    const agent = await watched(first, [callTurn(['slow', { n: 9 }]), { text: 'done' }])
    const { data } = await agent.invoke({ background: true, input: { message: 'step' } })
    await eventually(() => gates.length > 0)
    // Each lease seems to be over until its next renewal; the second process looks for such runs every three seconds.
    for (let n = 0; n < 40; n++) {
      await stepClock(3_600_000)
      await Bun.sleep(100)
    }
    expect(gates).toHaveLength(1)
    openGates()
    await untilStatus(second, data.run_id, 'completed')
    expect(backends.tools.of('slow')).toHaveLength(1)
    for (const service of [first, second]) await service.stop()
  })

  test('a run is executed by one process only, however many look for runs', async () => {
    const few = { HOSTED_RUNS_AT_ONCE: '2' }
    const first = await inProcess(few)
    const others = [await inProcess(few), await inProcess(few)]
    const agent = await watched(first, STEPS, 5)
    const all = [first, ...others]
    const runs: string[] = []
    for (let n = 0; n < 30; n++) {
      const { api } = all[n % all.length]!
      const path = `/api/v1/agents/${agent.agentId}/invoke`
      const { data } = await api('POST', path, { background: true, input: { message: `x${n}` } })
      runs.push(data.run_id)
    }
    for (const run of runs) await untilStatus(others[0]!, run, 'completed')
    const steps = await sql`select run_id from run_steps where run_id = any(${runs}::uuid[])`
    expect(steps).toHaveLength(runs.length * STEPS.length)
    expect(mostAtOnce).toBe(1)
    for (const service of all) await service.stop()
  })

  test('any process can resume a paused run', async () => {
    const first = await inProcess()
    const second = await inProcess()
    const agent = await backends.agent(first, [callTurn(['pay', { n: 1 }]), { text: 'paid' }], {
      tools: [backends.tools.tool('pay', { requires_approval: true })],
    })
    const { data } = await agent.invoke()
    const path = `/api/v1/approvals/${data.awaiting_approval.approval_id}/approve`
    const [here, there] = await Promise.all([first.api('POST', path, {}), second.api('POST', path, {})])
    expect([here.status, there.status].sort()).toEqual([200, 409])
    expect((here.status === 200 ? here : there).data.output).toEqual({ text: 'paid' })
    expect(backends.tools.of('pay')).toHaveLength(1)
    for (const service of [first, second]) await service.stop()
  })

  test('a parent and its child in different processes pause and end together', async () => {
    const first = await inProcess()
    const child = await backends.agent(first, [callTurn(['pay', { n: 2 }]), { text: 'paid' }], {
      tools: [backends.tools.tool('pay', { requires_approval: true })],
    })
    const ask = { type: 'agent', name: 'ask', description: 'a colleague', agent_id: child.agentId }
    const parent = await backends.agent(first, [callTurn(['ask', { message: 'm' }]), { text: 'all' }], { tools: [ask] })
    const { data } = await parent.invoke()
    const second = await inProcess()
    const [{ run_id: childRun }] = (await second.api('GET', `/api/v1/runs/${data.run_id}/children`)).data.items
    const path = `/api/v1/approvals/${data.awaiting_approval.approval_id}/approve`
    const answer = await second.api('POST', path, {})
    expect(answer.data).toMatchObject({ run_id: data.run_id, status: 'completed', output: { text: 'all' } })
    expect((await first.api('GET', `/api/v1/runs/${childRun}`)).data.status).toBe('completed')
    // A cancellation reaches an executor in the other process.
    const slow = await watched(first, [callTurn(['slow', { n: 1 }])])
    const run = (await slow.invoke({ background: true })).data.run_id
    await eventually(() => gates.length > 0)
    const aborted = backends.tools.aborted
    await second.api('POST', `/api/v1/runs/${run}/cancel`)
    await untilStatus(first, run, 'cancelled')
    await eventually(() => backends.tools.aborted > aborted)
    openGates()
    for (const service of [first, second]) await service.stop()
  })
})

describe('a process that was considered dead', () => {
  test('stops when another process owns its run, and writes nothing more', async () => {
    const service = await inProcess()
    const agent = await backends.agent(service, [callTurn(['slow', { n: 1 }], ['slow', { n: 2 }]), { text: 'done' }], {
      tools: [backends.tools.tool('slow')],
    })
    const run = (await agent.invoke({ background: true })).data.run_id
    await eventually(() => gates.length === 2)
    const aborted = backends.tools.aborted
    const other = await giveToOtherProcess(run)
    // The result of this call can no longer be stored, and the other call is aborted.
    gates.shift()!()
    await eventually(() => backends.tools.aborted > aborted)
    gates.splice(0)
    const calls = await sql`select status from tool_calls where run_id = ${run}`
    expect(calls.map(({ status }) => status)).toEqual(['started', 'started'])
    expect(agent.requests()).toHaveLength(1)
    expect((await service.api('GET', `/api/v1/runs/${run}`)).data.status).toBe('running')
    // When the other process dies as well, the first takes the run back and repeats the calls without a stored result.
    await sql`delete from instances where instance_id = ${other}`
    await eventually(() => gates.length === 2)
    openGates()
    expect((await untilStatus(service, run, 'completed')).output).toEqual({ text: 'done' })
    expect(backends.tools.of('slow').length).toBeGreaterThan(backends.tools.effects('slow'))
    await service.stop()
  })

  test('aborts its work for a run that another process owns within a second or two, even if nothing completes', async () => {
    const service = await inProcess()
    const agent = await backends.agent(service, [{ hangs: true }])
    const run = (await agent.invoke({ background: true })).data.run_id
    await eventually(() => agent.requests().length === 1)
    const before = backends.model.aborted
    const other = await giveToOtherProcess(run)
    await eventually(() => backends.model.aborted > before)
    await service.api('POST', `/api/v1/runs/${run}/cancel`)
    await sql`delete from instances where instance_id = ${other}`
    await service.stop()
  })
})

/** Assigns the run to another process that seems alive. @returns its id */
async function giveToOtherProcess(run: string): Promise<string> {
  const other = crypto.randomUUID()
  await sql`
    insert into instances (instance_id, started_at, seen_at, beats, applied)
    values (${other}, now(), now(), 1, 1000000)`
  await sql`update hosted_runs set owner = ${other} where run_id = ${run}`
  return other
}
