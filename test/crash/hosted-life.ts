import { expect } from 'bun:test'
import type { Sql } from '../../src/stores/postgres/connect.ts'
import type { Answer, Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { type Backends, callTurn, type ScriptedAgent, startBackends } from '../support/hosted-rig.ts'
import { type ModelServerRequest, stepOf, type Turn } from '../support/model-server.ts'
import type { Random } from '../support/random.ts'
import type { SpawnedService } from '../support/service.ts'

/** The surroundings of the crash campaign for hosted agents: their model, their tools, the people who decide. */

/** Where a service can be killed, as seen from outside. */
export const POINTS = [
  'model asked',
  'model answered',
  'last answer given',
  'tool called',
  'tool answered',
  'child asked',
  'child answered',
  'child done',
  'turn started',
  'turn done',
  'approval seen',
  'approve sent',
  'approve answered',
  'invoke sent',
] as const
export type Point = (typeof POINTS)[number]

/** Reports an event; may trigger a waiting kill. */
export type Reached = (point: Point) => void

/** A request to the model server: which run sent it, for which step. */
export interface Asked {
  readonly conversation: string
  readonly step: number
}

export interface World {
  readonly backends: Backends
  /** Every request for a step, oldest first. */
  readonly asked: readonly Asked[]
  /** Requests to a model after its last answer of a run. */
  readonly extra: readonly string[]
  createAgents(service: SpawnedService): Promise<Agents>
}

export interface Agents {
  readonly worker: ScriptedAgent
  readonly parent: ScriptedAgent
  readonly talker: ScriptedAgent
}

/** The output of each kind of run, and its number of HTTP tool calls. */
export const KINDS = {
  worker: { output: 'worked', calls: { pay: 1, fetch: 3 } },
  parent: { output: 'all done', calls: { pay: 1, fetch: 4 } },
  talker: { output: 'said', calls: { fetch: 1 } },
} as const

export function createWorld(random: Random, reached: Reached): World {
  const asked: Asked[] = []
  const extra: string[] = []
  const soon = (point: Point) => setTimeout(() => reached(point), random.int(0, 6))
  const backends = startBackends(({ tool, input }) => {
    reached('tool called')
    soon('tool answered')
    return { took: input.n, by: tool }
  })
  /** Turns by step; `points` name what is reached when a step is requested, when it is answered, and at the last answer. */
  const script =
    (points: readonly [Point, Point, Point], turns: (tag: string) => readonly Turn[]) =>
    (request: ModelServerRequest) => {
      const tag = tagOf(request)
      const step = stepOf(request)
      asked.push({ conversation: `${request.body.model} ${tag}`, step })
      reached(points[0])
      const all = turns(tag)
      if (step >= all.length) extra.push(`${request.body.model} ${tag}`)
      soon(step === all.length - 1 ? points[2] : points[1])
      return all[Math.min(step, all.length - 1)]!
    }
  const { tool } = backends.tools
  const tools = [tool('pay', { requires_approval: true }), tool('fetch')]

  async function createAgents(service: SpawnedService): Promise<Agents> {
    const work = (tag: string) => [
      callTurn(['pay', { n: 1, tag }], ['fetch', { n: 2, tag }], ['fetch', { n: 3, tag }]),
      callTurn(['fetch', { n: 4, tag }]),
      { text: KINDS.worker.output },
    ]
    const asWorker = ['model asked', 'model answered', 'last answer given'] as const
    const worker = await backends.agent(service, script(asWorker, work), { tools })
    const asChild = ['child asked', 'child answered', 'child done'] as const
    const child = await backends.agent(service, script(asChild, work), { tools })
    const ask = { type: 'agent', name: 'ask', description: 'a colleague', agent_id: child.agentId }
    const delegate = (tag: string) => [
      callTurn(['ask', { message: tag }], ['fetch', { n: 5, tag }]),
      { text: KINDS.parent.output },
    ]
    const parent = await backends.agent(service, script(asWorker, delegate), { tools: [ask, ...tools] })
    const talk = (tag: string) => [callTurn(['fetch', { n: 6, tag }]), { text: `${KINDS.talker.output} ${tag}` }]
    const asTalker = ['turn started', 'model answered', 'turn done'] as const
    const talker = await backends.agent(service, script(asTalker, talk), { tools })
    return { worker, parent, talker }
  }
  return { backends, asked, extra, createAgents }
}

/** The user message holds the name that a test gave the run. */
function tagOf({ body: { messages } }: ModelServerRequest): string {
  return messages.findLast(({ role }) => role === 'user')!.content!
}

/**
 * A well-behaved client: it repeats a call under the same Idempotency-Key until it gets an answer.
 * @param api of the current service
 */
export function withRetries(api: () => Api) {
  return async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const headers: Record<string, string> = method === 'POST' ? { 'idempotency-key': crypto.randomUUID() } : {}
    for (;;) {
      const options = { headers, signal: AbortSignal.timeout(5_000) }
      const answer = await api()(method, path, body, options).catch(() => undefined)
      if (answer !== undefined && answer.status !== 503 && !answer.headers.has('retry-after')) return answer
      await Bun.sleep(10)
    }
  }
}

/** A person who approves every pending approval until told to stop. */
export function startApprover(call: ReturnType<typeof withRetries>, reached: Reached): () => Promise<void> {
  let isOver = false
  const deciding = (async () => {
    while (!isOver) {
      const { data } = await call('GET', '/api/v1/approvals?status=pending')
      const pending: { approval_id: string }[] = data?.items ?? []
      if (pending.length > 0) reached('approval seen')
      for (const { approval_id } of pending) {
        const answered = call('POST', `/api/v1/approvals/${approval_id}/approve`, { background: true })
        setTimeout(() => reached('approve sent'), 1)
        const { status } = await answered
        // The answer to the first attempt may have been lost with the service.
        expect([202, 409]).toContain(status)
        reached('approve answered')
      }
      await Bun.sleep(5)
    }
  })()
  return () => {
    isOver = true
    return deciding
  }
}

/** Each call of the run has had one effect, however often it was made: one idempotency key per call. */
export function expectEffects({ backends }: World, kind: keyof typeof KINDS, tag: string): void {
  const inputs = new Map<string, string>()
  const counts: Record<string, number> = {}
  for (const { key, tool, input } of backends.tools.calls) {
    if (input.tag !== tag) continue
    const call = JSON.stringify([tool, input])
    if (!inputs.has(key)) counts[tool] = (counts[tool] ?? 0) + 1
    expect(inputs.get(key) ?? call).toBe(call)
    inputs.set(key, call)
  }
  expect([tag, counts]).toEqual([tag, KINDS[kind].calls])
}

/** What is stored, and so must not be requested or done again. */
export interface Stored {
  readonly steps: ReadonlySet<string>
  /** Idempotency keys of finished calls. */
  readonly calls: ReadonlySet<string>
  /** The number of requests and calls until then. */
  readonly asked: number
  readonly called: number
}

/** What a killed service has stored. Waits until Postgres has finished or dropped all its statements. */
export async function readStored(sql: Sql, world: World): Promise<Stored> {
  await eventually(async () => {
    const [{ others }] = await sql<[{ others: number }]>`
      select count(*)::int as others from pg_stat_activity
      where datname = current_database() and application_name = 'agent-run-service' and pid <> pg_backend_pid()`
    return others === 0
  })
  const steps = await sql<{ name: string }[]>`
    select a.model || ' ' || (h.plan->>'user') || ' ' || s.step as name
    from run_steps s join hosted_runs h using (run_id) join agents a on a.agent_id = h.agent_id`
  const calls = await sql<{ call_id: string }[]>`select call_id from tool_calls where status in ('finished', 'failed')`
  return {
    steps: new Set(steps.map(({ name }) => name)),
    calls: new Set(calls.map(({ call_id }) => call_id)),
    asked: world.asked.length,
    called: world.backends.tools.calls.length,
  }
}

/** Nothing that was stored then has been requested or done again since. */
export function expectNothingRepeated(world: World, { steps, calls, asked, called }: Stored): void {
  const again = world.asked.slice(asked).map(({ conversation, step }) => `${conversation} ${step + 1}`)
  expect(again.filter((step) => steps.has(step))).toEqual([])
  const made = world.backends.tools.calls.slice(called).map(({ key }) => key)
  expect(made.filter((key) => calls.has(key))).toEqual([])
}
