import { createRandom, type Random } from '../../src/cli/demo/random.ts'
import { modelCall } from './model-call.ts'

/**
 * The content of the load: events like those of agents. Many different bodies, created in advance: a constant body would
 * favour every cache, and creating them during the load would slow it down.
 */

const BODIES = 200
/** Fewer, because they are large. */
const MODEL_CALL_BODIES = 40
const SEED = 20_260_131
const MODELS = ['gpt-5-mini', 'claude-sonnet-4-5', 'gemini-2.5-pro', 'gpt-4o']
const TOOLS = ['get_order', 'web_search', 'read_file', 'run_tests', 'send_message', 'fetch_page']

/** What events report: small steps of about 180 bytes each on the wire, or model calls with payloads of 4 KB. */
export type EventContent = 'steps' | 'model calls'

/** Bodies of `events` calls, spread evenly over the runs. @param runIds one or more */
export function eventBodies(
  runIds: readonly string[],
  eventsPerCall: number,
  content: EventContent = 'steps',
): string[] {
  const random = createRandom(SEED)
  let at = Date.UTC(2026, 0, 31, 9, 30)
  const event = () => {
    at += random.int(1, 40)
    const kind = random.int(0, 2)
    return {
      type: content === 'steps' ? ['llm.call', 'tool.call.finished', 'agent.note'][kind] : 'llm.call',
      level: random.pick(['debug', 'info', 'info', 'warn', 'error']),
      payload: content === 'steps' ? step(random, kind) : modelCall(random),
      occurred_at: new Date(at).toISOString(),
    }
  }
  return Array.from({ length: content === 'steps' ? BODIES : MODEL_CALL_BODIES }, (_, index) =>
    JSON.stringify({ run_id: runIds[index % runIds.length], events: Array.from({ length: eventsPerCall }, event) }),
  )
}

/** Bodies of `scores` calls, of runs in turn. @param runIds one or more */
export function scoreBodies(runIds: readonly string[], scoresPerCall: number, withIds: boolean): string[] {
  const random = createRandom(SEED)
  let id = 0
  const score = () => ({
    ...(withIds && { id: `eval-${++id}` }),
    run_id: random.pick(runIds),
    name: random.pick(['correctness', 'helpfulness', 'category']),
    value: random.int(0, 1_000) / 1_000,
    label: random.pick(['refund', 'order', 'account']),
    source: 'judge',
    comment: `the answer mentions ${random.int(1, 99)} of the facts – “${random.pick(TOOLS)}” is missing`,
  })
  return Array.from({ length: BODIES }, () => JSON.stringify({ scores: Array.from({ length: scoresPerCall }, score) }))
}

/** The payload of a model call (0), a tool call (1) or a note. */
function step(random: Random, kind: number): Record<string, unknown> {
  if (kind === 0)
    return {
      'gen_ai.request.model': random.pick(MODELS),
      tokens: { in: random.int(100, 4_000), out: random.int(10, 900) },
      step: random.int(1, 20),
    }
  if (kind === 1)
    return {
      'gen_ai.tool.name': random.pick(TOOLS),
      latency_ms: random.int(1, 3_000),
      ok: random.chance(0.95),
      call: `call_${random.int(1e7, 1e8)}`,
    }
  return {
    note: `step ${random.int(1, 99)} took ${random.int(1, 9_000)} ms – going on with “${random.pick(TOOLS)}” as planned`,
  }
}

/** Bodies of `run/start` calls, spread evenly over the agents. */
export function startBodies(agentIds: readonly string[]): string[] {
  const random = createRandom(SEED)
  return Array.from({ length: BODIES }, (_, index) =>
    JSON.stringify({
      agent_id: agentIds[index % agentIds.length],
      trigger_type: random.pick(['sdk', 'webhook', 'manual']),
      input: { message: `Where is my order ${random.int(1e5, 1e6)}?`, customer_id: `cus_${random.int(1_000, 9_999)}` },
      external_run_id: `ticket-${random.int(1e5, 1e6)}`,
      tags: ['bench', `tier:${random.pick(['free', 'plus'])}`],
    }),
  )
}

/** A `run/complete` call; every body has the run's id, of 36 characters, at the same offset. */
export function completeBody(runId: string): string {
  return JSON.stringify({ run_id: runId, output: { resolution: 'answered', satisfaction: 5, refunds: [] } })
}
