import { join } from 'node:path'
import { type SpawnedService, spawnService, UNLIMITED } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'
import { completeBody, type EventContent, eventBodies, scoreBodies, startBodies } from './bodies.ts'
import type { Load, WireRequest } from './load.ts'

/** The service under load, as an operator runs it: its own process with embedded stores, but without rate limits. */
export interface BenchService {
  readonly pid: number
  readonly port: number
  readonly workspaceKey: string
  /** Agents to report for, each with its key and some runs. */
  readonly agents: readonly BenchAgent[]
  /** Returns `data` of the response. Throws the service's error. */
  call(method: 'GET' | 'POST', path: string, body?: object, key?: string): Promise<Record<string, unknown>>
  /** Durable rows that are not in SQL yet. */
  backlog(): Promise<number>
}

export interface BenchAgent {
  readonly agentId: string
  readonly key: string
  readonly runIds: readonly string[]
}

const AGENTS = 5
const RUNS_PER_AGENT = 10
const NAIVE_CONNECTIONS = 10

/** The environment variables of `bun run start`. */
const START_ENV = {
  NODE_ENV: 'production',
  MIMALLOC_PURGE_DELAY: '10000',
  BUN_CONFIG_MAX_HTTP_REQUESTS: '10000',
  GLIBC_TUNABLES: 'glibc.cpu.x86_rep_movsb_threshold=1073741824',
}

/**
 * @param env more configuration variables
 * @param main the program; by default that of the work tree
 */
export async function startBenchService(env: Record<string, string> = {}, main?: string): Promise<BenchService> {
  return benchServiceOf(await spawnForBench(env, main))
}

export function spawnForBench(env: Record<string, string> = {}, main?: string): Promise<SpawnedService> {
  return spawnService(
    { ...UNLIMITED, ...START_ENV, LOG_LEVEL: 'error', ...env },
    { ...(main !== undefined && { main }) },
  )
}

/** Gives a running service agents and runs to report for. */
export async function benchServiceOf({ pid, url, api, workspaceKey }: SpawnedService): Promise<BenchService> {
  const call = async (method: 'GET' | 'POST', path: string, body?: object, key = workspaceKey) => {
    const { status, text, data } = await api(method, path, body, { key })
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${text}`)
    return data as Record<string, unknown>
  }
  const agents = await makeAgents(call, workspaceKey)
  return {
    pid,
    port: Number(new URL(url).port),
    workspaceKey,
    agents,
    call,
    async backlog() {
      const { consumers } = await call('GET', '/readyz')
      return Math.max(...Object.values(consumers as Record<string, { lag: number }>).map(({ lag }) => lag))
    },
  }
}

/** Creates agents with some runs each in the workspace of `workspaceKey`. */
export async function makeAgents(call: BenchService['call'], workspaceKey: string): Promise<BenchAgent[]> {
  const agents: BenchAgent[] = []
  for (let index = 0; index < AGENTS; index++) {
    const made = await call('POST', '/api/v1/agents', { name: `bench ${index}` }, workspaceKey)
    const agentId = String(made.agent_id)
    const { key } = (await call('POST', `/api/v1/agents/${agentId}/keys`, {}, workspaceKey)) as { key: string }
    const starts = Array.from({ length: RUNS_PER_AGENT }, () =>
      call('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, key),
    )
    agents.push({ agentId, key, runIds: (await Promise.all(starts)).map((data) => String(data.run_id)) })
  }
  return agents
}

/** @returns the port of a server that only parses the JSON */
export async function startBareServer(): Promise<number> {
  return (await startScript('bare-server.ts', [])).port
}

/** @returns the port of a server that commits each run call */
export async function startNaiveServer(): Promise<number> {
  return (await startScript('naive-server.ts', [await temporaryDirectory(), `${NAIVE_CONNECTIONS}`])).port
}

/** Starts a server of this directory, which prints its port. */
export function startScript(name: string, args: readonly string[]): Promise<{ pid: number; port: number }> {
  return startProgram([process.execPath, join(import.meta.dir, name), ...args])
}

/** @param env all its variables; by default ours */
export async function startProgram(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<{ pid: number; port: number }> {
  const child = Bun.spawn([...command], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  atEnd(async () => {
    child.kill('SIGTERM')
    await child.exited
  })
  for await (const chunk of child.stdout) return { pid: child.pid, port: Number(new TextDecoder().decode(chunk)) }
  throw new Error(`${command.join(' ')} exited before it listened`)
}

type Shape = Pick<Load, 'connections' | 'seconds'>

interface EventsShape extends Shape {
  readonly content?: EventContent | undefined
}

/** Event calls for all runs of the service's agents. Also for the bare server, which reads only the body. */
export function eventsLoad(
  { agents }: Pick<BenchService, 'agents'>,
  port: number,
  eventsPerCall: number,
  { content, ...shape }: EventsShape,
): Load {
  const perAgent = agents.map(({ key, runIds }) => ({ key, bodies: eventBodies(runIds, eventsPerCall, content) }))
  const count = perAgent[0]!.bodies.length
  const requests = Array.from({ length: count }, (_, index): WireRequest => {
    const { key, bodies } = perAgent[index % perAgent.length]!
    return { path: '/api/ingest/v1/events', key, body: bodies[index]! }
  })
  return { port, requests, ...shape }
}

/** Scores that agents report for their own runs. @param withIds each score names its id: after a while all are repeats */
export function scoresLoad(
  { agents }: Pick<BenchService, 'agents'>,
  port: number,
  scoresPerCall: number,
  { withIds, ...shape }: Shape & { readonly withIds: boolean },
): Load {
  const perAgent = agents.map(({ key, runIds }) => ({ key, bodies: scoreBodies(runIds, scoresPerCall, withIds) }))
  const count = perAgent[0]!.bodies.length
  const requests = Array.from({ length: count }, (_, index): WireRequest => {
    const { key, bodies } = perAgent[index % perAgent.length]!
    return { path: '/api/ingest/v1/scores', key, body: bodies[index]! }
  })
  return { port, requests, ...shape }
}

/** Starts of runs, each followed by its completion. */
export function runsLoad({ agents }: BenchService, port: number, shape: Shape): Load {
  const bodies = startBodies(agents.map(({ agentId }) => agentId))
  const requests = bodies.map((body, index) => ({
    path: '/api/ingest/v1/run/start',
    key: agents[index % agents.length]!.key,
    body,
  }))
  const followUp = { path: '/api/ingest/v1/run/complete', body: completeBody(Bun.randomUUIDv7()) }
  return { port, requests, followUp, ...shape }
}
