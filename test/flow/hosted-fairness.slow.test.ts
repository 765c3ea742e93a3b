import { describe, expect, test } from 'bun:test'
import type { Config } from '../../src/service/config/config.ts'
import { eventually } from '../support/eventually.ts'
import { newTenant } from '../support/feeds.ts'
import { untilStatus } from '../support/hosted.ts'
import { type Backends, callTurn, type ScriptedAgent, startBackends } from '../support/hosted-rig.ts'
import type { Turn } from '../support/model-server.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Queued runs, fairness between workspaces, and the shutdown of a process that executes runs. */

/** A hanging call would otherwise continue for five minutes. */
const STOP_MS_MAX = 30_000

const gates: (() => void)[] = []
const openGates = () => {
  for (const open of gates.splice(0)) open()
}
const backends: Backends = startBackends(
  (call) => new Promise((resolve) => gates.push(() => resolve({ took: call.input }))),
)
const start = (env: Record<string, string> = {}, hosted: Partial<Config['hosted']> = {}) =>
  startTestService({ ...backends.env, ...env }, { bounds: { hosted } })
const atWork = new Map<string, number>()
let mostOfOne = 0
let mostOfAll = 0

/** An agent whose model takes 20 ms once `begins` resolves; records how many runs it executes at once. */
function busy(tenant: Parameters<Backends['agent']>[0], begins?: Promise<void>): Promise<ScriptedAgent> {
  return backends.agent(tenant, async ({ body }): Promise<Turn> => {
    const count = (change: number) => {
      const of = (atWork.get(body.model) ?? 0) + change
      atWork.set(body.model, of)
      return of
    }
    mostOfOne = Math.max(mostOfOne, count(1))
    mostOfAll = Math.max(
      mostOfAll,
      [...atWork.values()].reduce((sum, each) => sum + each, 0),
    )
    await begins
    await Bun.sleep(20)
    count(-1)
    return { text: 'done' }
  })
}

async function queue(agent: ScriptedAgent, count: number, options: object = {}): Promise<string[]> {
  const runs: string[] = []
  for (let n = 0; n < count; n++) {
    const { status, data } = await agent.invoke({ background: true }, options)
    expect(status).toBe(202)
    runs.push(data.run_id)
  }
  return runs
}

async function statusesOf({ api }: Pick<TestService, 'api'>, agent: ScriptedAgent): Promise<Record<string, number>> {
  const { data } = await api('GET', `/api/v1/runs?agent_id=${agent.agentId}&limit=200`)
  const counts: Record<string, number> = {}
  for (const { status } of data.items) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

describe('the queue', () => {
  test('a workspace with fifty queued runs delays another workspace by no more than one round', async () => {
    const service = await start({ HOSTED_RUNS_AT_ONCE: '2' })
    const begin = Promise.withResolvers<void>()
    const greedy = await busy(service, begin.promise)
    const tenant = await newTenant(service)
    const modest = await busy(tenant)
    await queue(greedy, 50)
    begin.resolve()
    const { status, data } = await modest.invoke()
    expect([status, data.output]).toEqual([200, { text: 'done' }])
    const { completed = 0 } = await statusesOf(service, greedy)
    expect(completed).toBeLessThan(25)
    // All runs complete, and no more were executed at once than the limit.
    await eventually(async () => (await statusesOf(service, greedy)).completed === 50)
    expect(mostOfAll).toBeLessThanOrEqual(2)
    await service.stop()
  })

  test('more queued runs of a workspace than it may have are RATE_LIMITED, without effects on other workspaces', async () => {
    const service = await start({ HOSTED_RUNS_AT_ONCE: '1' }, { queuedRuns: 3 })
    const hanging = await backends.agent(service, [{ hangs: true }])
    const tenant = await newTenant(service)
    const other = await backends.agent(tenant, [{ text: 'done' }])
    const runs = await queue(hanging, 4)
    const refused = await hanging.invoke()
    expect([refused.status, refused.error!.code]).toEqual([429, 'RATE_LIMITED'])
    expect(refused.error!.message).toBe('3 runs of this workspace are already queued')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await statusesOf(service, hanging)).queued).toBe(3)
    const [theirs] = await queue(other, 1)
    for (const run of runs) await service.api('POST', `/api/v1/runs/${run}/cancel`)
    await untilStatus(tenant, theirs!, 'completed')
    await service.stop()
  })

  test('the same limit applies to runs that wait for one session', async () => {
    const service = await start({}, { queuedRuns: 2 })
    const hanging = await backends.agent(service, [{ hangs: true }])
    const first = await hanging.invoke({ background: true, start_session: true })
    const turn = { background: true, session_id: first.data.session_id }
    expect((await hanging.invoke(turn)).status).toBe(202)
    expect((await hanging.invoke(turn)).status).toBe(202)
    const refused = await hanging.invoke(turn)
    expect([refused.status, refused.error]).toMatchObject([
      429,
      { code: 'RATE_LIMITED', message: '2 runs are already waiting for this session' },
    ])
    expect((await hanging.invoke({ background: true })).status).toBe(202)
    await service.stop()
  })

  test('no workspace executes more runs at once than its share', async () => {
    const service = await start({ HOSTED_RUNS_AT_ONCE: '10' }, { runsAtOncePerWorkspace: 2 })
    const begin = Promise.withResolvers<void>()
    const one = await busy(service, begin.promise)
    const tenant = await newTenant(service)
    const other = await busy(tenant, begin.promise)
    mostOfOne = 0
    mostOfAll = 0
    await Promise.all([queue(one, 20), queue(other, 20)])
    await eventually(() => mostOfAll === 4)
    begin.resolve()
    await eventually(async () => (await statusesOf(service, one)).completed === 20)
    await eventually(async () => (await statusesOf(tenant, other)).completed === 20)
    expect(mostOfOne).toBe(2)
    expect(mostOfAll).toBe(4)
    await service.stop()
  })

  test('releases its slot however a run ends: completed, failed, cancelled, timed out or paused', async () => {
    const service = await start({ HOSTED_RUNS_AT_ONCE: '2' })
    const tools = [backends.tools.tool('pay', { requires_approval: true })]
    const agents = [
      await backends.agent(service, [{ text: 'done' }]),
      await backends.agent(service, [{ status: 400 }]),
      await backends.agent(service, [{ hangs: true }], { timeout_seconds: 1 }),
      await backends.agent(service, [callTurn(['pay', { n: 1 }])], { tools }),
      await backends.agent(service, [{ hangs: true }]),
    ]
    const runs = (await Promise.all(agents.map((agent) => queue(agent, 3)))).flat()
    for (const run of runs.slice(-3)) await service.api('POST', `/api/v1/runs/${run}/cancel`)
    await eventually(async () => {
      const counts = await Promise.all(agents.map((agent) => statusesOf(service, agent)))
      expect(counts).toEqual([
        { completed: 3 },
        { failed: 3 },
        { timed_out: 3 },
        { awaiting_approval: 3 },
        { cancelled: 3 },
      ])
    })
    // Both slots are free: two calls can only wait for each other if they run at the same time.
    const slow = await backends.agent(service, [callTurn(['slow', { n: 1 }]), { text: 'done' }], {
      tools: [backends.tools.tool('slow')],
    })
    await queue(slow, 2)
    await eventually(() => gates.length === 2)
    openGates()
    await eventually(async () => (await statusesOf(service, slow)).completed === 2)
    await service.stop()
  })
})

describe('shutdown', () => {
  test('does not wait for running, queued or paused runs; the next start continues them', async () => {
    const first = await start({ HOSTED_RUNS_AT_ONCE: '4' })
    const { tool } = backends.tools
    const tools = [tool('slow'), tool('pay', { requires_approval: true })]
    let isHanging = true
    const thinking = await backends.agent(first, () => (isHanging ? { hangs: true } : { text: 'thought' }))
    const calling = await backends.agent(first, [callTurn(['slow', { n: 1 }]), { text: 'called' }], { tools })
    const asking = await backends.agent(first, [callTurn(['pay', { n: 1 }]), { text: 'asked' }], { tools })
    const paused = (await asking.invoke()).data
    const waiting = [thinking.invoke(), calling.invoke()]
    const streaming = await thinking.stream()
    await eventually(() => thinking.requests().length === 2 && gates.length === 1)
    const runs = await queue(thinking, 3)
    const startedAt = performance.now()
    await first.stop()
    expect(performance.now() - startedAt).toBeLessThan(STOP_MS_MAX)
    for (const answer of await Promise.all(waiting)) {
      expect([answer.status, answer.data.status]).toEqual([202, 'running'])
      runs.push(answer.data.run_id)
    }
    expect(await streaming.all()).toEqual([])
    isHanging = false
    gates.splice(0)
    const { dataDir, databaseUrl, clickhouseUrl, workspaceKey } = first
    const again = await start({
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      CLICKHOUSE_URL: clickhouseUrl,
      BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
    })
    await eventually(() => gates.length === 1)
    openGates()
    for (const run of runs) await untilStatus(again, run, 'completed')
    expect(await statusesOf(again, thinking)).toEqual({ completed: 5 })
    // The same call, with the same key.
    expect(
      backends.tools
        .of('slow')
        .slice(-2)
        .map(({ key }) => key),
    ).toEqual(Array(2).fill(backends.tools.of('slow').at(-1)!.key))
    const path = `/api/v1/approvals/${paused.awaiting_approval.approval_id}/approve`
    const approving = again.api('POST', path, {})
    await eventually(() => gates.length === 1)
    openGates()
    expect((await approving).data.output).toEqual({ text: 'asked' })
    await again.stop()
  })
})
