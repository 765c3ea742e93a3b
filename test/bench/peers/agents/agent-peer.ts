import { startScript } from '../../servers.ts'

/** A system that runs agents durably. */
export interface AgentPeer {
  readonly name: string
  /** Installs and starts it with an empty store. @throws Unavailable */
  start(world: World, cache: string): Promise<AgentSystem>
}

/**
 * A started system, with the agent of `world-server.ts`. A run is named by the caller, with a UUID. Calls throw while the
 * system is down.
 */
export interface AgentSystem {
  /** With the version. */
  readonly title: string
  /** How it is configured for durability, in words. */
  readonly configuration: string
  /** What its documentation promises about a tool call that a crash interrupts, in words. */
  readonly promise: string
  /** Starts the run unless it exists. Resolves when it waits for the approval. */
  invoke(run: string): Promise<void>
  /** Approves. Resolves when the run has ended. */
  approve(run: string): Promise<void>
  /** Where the run is; also for one that may not exist. */
  state(run: string): Promise<RunState>
  /** Continues an interrupted run, where the caller has to: undefined if the system does it by itself. */
  readonly proceed?: (run: string) => Promise<void>
  /** `kill -9` of all its processes, except for a database server of its own. */
  kill(): Promise<void>
  restart(): Promise<void>
  stop(): Promise<void>
}

export type RunState = 'absent' | 'running' | 'waiting' | 'ended' | 'failed'

/** The model and the tools. */
export interface World {
  readonly modelUrl: string
  /** A tool's URL is this and its name. */
  readonly toolsUrl: string
  delay(delays: { readonly modelMs: number; readonly toolMs: number }): Promise<void>
  /** The calls that arrived, by run and tool: the Idempotency-Key of each. */
  orders(): Promise<Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>>
}

export const PROMPT = 'You handle orders: charge them, ship them once a person agrees, and tell the customer.'
export const TOOL_NAMES = ['charge', 'ship'] as const

export async function startWorld(): Promise<World> {
  const { port } = await startScript('peers/agents/world-server.ts', [])
  const url = `http://127.0.0.1:${port}`
  return {
    modelUrl: `${url}/v1`,
    toolsUrl: `${url}/tools/`,
    async delay(delays) {
      await fetch(`${url}/delays`, { method: 'POST', body: JSON.stringify(delays) })
    },
    orders: async () => (await fetch(`${url}/orders`)).json() as ReturnType<World['orders']>,
  }
}

const CALL_MS_MAX = 60_000

/** A call of JSON over HTTP. @returns the body; null for 404. @throws Error for another failure */
export async function callJson(method: string, url: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(CALL_MS_MAX),
  })
  const text = await response.text()
  if (response.status === 404) return null
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text.slice(0, 500)}`)
  // biome-ignore lint/suspicious/noExplicitAny: each system has answers of its own.
  return (text === '' ? {} : JSON.parse(text)) as any
}
