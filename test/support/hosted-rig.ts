import type { Answer } from './api.ts'
import { eventually } from './eventually.ts'
import { type HostedAgent, newHostedAgent } from './hosted.ts'
import { enforceTransitions } from './hosted-transitions.ts'
import { type ModelServer, type ModelServerRequest, startModelServer, stepOf, type Turn } from './model-server.ts'
import { startTestService, type TestService } from './service.ts'
import { startToolServer, type ToolServer, type ToolServerCall } from './tool-server.ts'

type Endpoint = Pick<TestService, 'url' | 'workspaceKey' | 'api'>
export type Script = readonly Turn[] | ((request: ModelServerRequest, step: number) => Turn | Promise<Turn>)

/** A model server and a tool server that outlive the services under test, and agents with a script each. */
export interface Backends {
  readonly model: ModelServer
  readonly tools: ToolServer
  /** Variables for the service. */
  readonly env: Record<string, string>
  /**
   * An agent whose model plays these turns, one per step of a run; the last one repeats. A function gets the step,
   * from 0.
   */
  agent(endpoint: Endpoint, turns: Script, settings?: object): Promise<ScriptedAgent>
}

export interface ScriptedAgent extends HostedAgent {
  /** The requests to its model so far. */
  requests(): readonly ModelServerRequest[]
}

export function startBackends(answer?: (call: ToolServerCall) => unknown): Backends {
  const scripts = new Map<string, Script>()
  const model = startModelServer((request) => {
    const script = scripts.get(request.body.model) ?? []
    const step = stepOf(request)
    return typeof script === 'function' ? script(request, step) : (script[Math.min(step, script.length - 1)] ?? {})
  })
  const tools = startToolServer(answer)
  return {
    model,
    tools,
    env: { OPENAI_BASE_URL: model.url, EGRESS_ALLOW: '127.0.0.1' },
    async agent(endpoint, turns, settings = {}) {
      const name = `model-${scripts.size + 1}`
      scripts.set(name, turns)
      const agent = await newHostedAgent(endpoint, { model: name, ...settings })
      return { ...agent, requests: () => model.requests.filter(({ body }) => body.model === name) }
    },
  }
}

export interface HostedRig extends Backends {
  readonly service: TestService
}

/** Backends and a service whose database rejects every transition that is not in `src/hosted/run/state.ts`. */
export async function startHostedRig(
  env: Record<string, string> = {},
  answer?: (call: ToolServerCall) => unknown,
): Promise<HostedRig> {
  const backends = startBackends(answer)
  const service = await startTestService({ ...backends.env, ...env })
  await enforceTransitions(service.databaseUrl)
  return { ...backends, service }
}

/** A turn with calls, each `[tool, arguments]`. Their ids are `a`, `b`, `c`, … */
export function callTurn(...calls: readonly (readonly [name: string, input: unknown])[]): Turn {
  return {
    toolCalls: calls.map(([name, input], index) => ({ name, arguments: input, id: String.fromCharCode(97 + index) })),
  }
}

/** The results of its calls that the model received, in order. */
export function toolResultsOf(request: ModelServerRequest | undefined): unknown[] {
  const results = request?.body.messages.filter(({ role }) => role === 'tool') ?? []
  return results.map(({ content }) => parsed(content))
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return text
  }
}

export interface StoredEvent {
  readonly id: string
  readonly type: string
  readonly level: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect.
  readonly payload: any
}

/** All events of a run in order, once the last one has arrived. */
export async function eventsOf({ api }: Endpoint, runId: string, last: string): Promise<StoredEvent[]> {
  return eventually(async () => {
    const { data }: Answer = await api('GET', `/api/v1/runs/${runId}/events?limit=200`)
    const items: StoredEvent[] = data?.items ?? []
    return items.some(({ type }) => type === last) && items
  })
}
