import { join } from 'node:path'
import { eventBodies } from './bodies.ts'
import { wireRequest } from './connection.ts'
import type { BenchService } from './servers.ts'
import type { Counted, Plan } from './subscribers.ts'

export type FeedKind = 'ws' | 'sse'

/** Subscribers in their own process. */
export interface Watchers {
  count(): Promise<Counted>
  /** Milliseconds, one for each message and subscriber. */
  delays(messages: number): Promise<number[]>
  stop(): Promise<void>
}

const SUBSCRIBERS = join(import.meta.dir, 'subscribers.ts')

/** All of them match the benchmark's events; each is evaluated separately. */
const FILTERS: readonly Record<string, string | readonly string[]>[] = [
  {},
  { kind: 'event' },
  { kind: ['event', 'run'] },
  { type: ['llm.*', '*'] },
]

/** Resolves once all of them are subscribed. */
export async function subscribe(plan: Plan): Promise<Watchers> {
  const child = Bun.spawn([process.execPath, SUBSCRIBERS], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const lines = linesOf(child.stdout)
  const ask = async (line: string): Promise<unknown> => {
    child.stdin.write(`${line}\n`)
    await child.stdin.flush()
    const { value, done } = await lines.next()
    if (done === true) throw new Error('the subscribers ended')
    return JSON.parse(value)
  }
  await ask(JSON.stringify(plan))
  return {
    count: () => ask('count') as Promise<Counted>,
    delays: (messages) => ask(`delay ${messages}`) as Promise<number[]>,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** Subscribers of the service, from its current end on, with filters. */
export async function planOf(service: BenchService, kind: FeedKind, count: number): Promise<Plan> {
  const { journal } = (await service.call('GET', '/readyz')) as { journal: { epoch: string; end_seq: number } }
  const after = `${journal.epoch}.${journal.end_seq}`
  const [agent] = service.agents
  const body = eventBodies([agent!.runIds[0]!], 1)[0]!
  return {
    port: service.port,
    count,
    requests:
      kind === 'ws'
        ? [get('/api/v1/live', service.workspaceKey)]
        : FILTERS.map((filter) => get(`/api/v1/stream?${queryOf({ ...filter, after })}`, service.workspaceKey)),
    messages:
      kind === 'sse' ? null : FILTERS.map((filter) => JSON.stringify({ op: 'subscribe', id: 'bench', filter, after })),
    trigger: wireRequest('/api/ingest/v1/events', agent!.key, 'application/json', Buffer.from(body)).toString(),
  }
}

/** Subscribers of the bare server. */
export function barePlan(port: number, kind: FeedKind, count: number): Plan {
  return {
    port,
    count,
    requests: [get(`/${kind}`)],
    messages: kind === 'ws' ? [''] : null,
    trigger: `POST /publish/${kind} HTTP/1.1\r\nHost: bench\r\nContent-Length: 400\r\n\r\n${'x'.repeat(400)}`,
  }
}

function get(path: string, key?: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\n${key === undefined ? '' : `Authorization: Bearer ${key}\r\n`}`
}

function queryOf(values: Record<string, string | readonly string[]>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(values).flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)])),
  )
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  return undefined
}
