import {
  type AnyLoopCase,
  hardObjects,
  type LoopCase,
  type LoopContext,
  type LoopExchange,
  listOf,
  MIB,
  sending,
} from './loop-case.ts'

const PAYLOAD_BYTES = 512 * 1024
const INPUT_BYTES = 3 * MIB
const OUTPUT_BYTES = 10 * MIB
const MESSAGE_BYTES = 64 * 1024
const MESSAGES = 50
const READ_MS = 60_000

/** Reads that answer a lot, feeds, and routes that take nothing. */
export async function readCases(context: LoopContext): Promise<AnyLoopCase[]> {
  const runs = largeRuns(context)
  const encodings = ['identity', 'gzip', 'zstd']
  const get = (name: string, path: string, headers: Record<string, string> = {}): LoopCase => ({
    name,
    request: () => sending('GET', path, undefined, headers),
  })
  const reads = runs.flatMap(({ name, made }) =>
    encodings.flatMap((encoding) =>
      ['', '/events?limit=200', '/conversation?limit=200'].map(
        (of): LoopExchange => ({
          name: `${name}, ${encoding}`,
          route: `GET /api/v1/runs/{run_id}${of.split('?')[0]}`,
          prepare: async () => void (await made()),
          async run() {
            const headers = { authorization: `Bearer ${context.service.workspaceKey}`, 'accept-encoding': encoding }
            const response = await fetch(`${context.service.url}/api/v1/runs/${await made()}${of}`, { headers })
            await response.arrayBuffer()
            return { sent: 0, status: response.status }
          },
        }),
      ),
    ),
  )
  const plain = [
    '/healthz',
    '/readyz',
    '/metrics',
    '/api/v1/limits',
    '/api/v1/workspace',
    '/api/v1/query/schema',
    '/api/v1/alerts/templates',
    '/clickhouse/ping',
    '/docs',
    '/docs/json',
    '/',
  ].map((path) => get('at most', path))
  return [
    ...plain,
    { ...get('not in a cluster', '/api/v1/cluster'), status: 'any' },
    { ...get('without people', '/api/v1/sign-in'), status: 'any' },
    get(
      'the largest headers',
      '/healthz',
      Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`x-${n}`, 'v'.repeat(80)])),
    ),
    get('200 large runs', '/api/v1/runs?limit=200', { 'accept-encoding': 'identity' }),
    ...reads,
    longAgents(context),
    ...feedCases(context),
    ...webSocketCases(context),
  ]
}

/** Runs with the largest input, events and output; each is made when it is first needed. */
function largeRuns({ service, agentId, agentKey }: LoopContext) {
  const key = { key: agentKey }
  const inputs = hardObjects(INPUT_BYTES)
  const payloads = hardObjects(PAYLOAD_BYTES)
  const noise = `{"a":"${Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)))
    .toString('base64')
    .repeat(100)}"}`
  const outputs = { ...hardObjects(OUTPUT_BYTES - 200), noise }
  const make = async (name: string, output: string): Promise<string> => {
    const start = `{"agent_id":"${agentId}","input":${inputs[name] ?? '{}'}}`
    const runId: string = (await service.api('POST', '/api/ingest/v1/run/start', start, key)).data.run_id
    const events = listOf(`{"type":"llm.call","payload":${payloads[name] ?? '{}'}}`, 19 * (PAYLOAD_BYTES + 40))
    await service.api('POST', '/api/ingest/v1/events', `{"run_id":"${runId}","events":[${events}]}`, key)
    await service.api('POST', '/api/ingest/v1/run/complete', `{"run_id":"${runId}","output":${output}}`, key)
    return runId
  }
  return Object.entries(outputs).map(([name, output]) => {
    let making: Promise<string> | undefined
    return {
      name,
      made: () => {
        making ??= make(name, output)
        return making
      },
    }
  })
}

/** All pages of agents with the largest metadata. */
function longAgents({ service }: LoopContext): LoopExchange {
  let making: Promise<unknown> | undefined
  return {
    name: 'long metadata',
    route: 'GET /api/v1/agents',
    async prepare() {
      making ??= Promise.all(
        Object.values(hardObjects(OUTPUT_BYTES - 200)).map((metadata) =>
          service.api('POST', '/api/v1/agents', `{"name":"long","metadata":${metadata}}`),
        ),
      )
      await making
    },
    async run() {
      const headers = { authorization: `Bearer ${service.workspaceKey}`, 'accept-encoding': 'identity' }
      for (let cursor = ''; ; ) {
        const response = await fetch(`${service.url}/api/v1/agents?limit=200${cursor}`, { headers })
        const text = await response.text()
        const next = /"next_cursor":"([^"]+)"\},"error":null\}$/.exec(text.slice(-500))?.[1]
        if (next === undefined) return { sent: 0, status: response.status }
        cursor = `&cursor=${next}`
      }
    },
  }
}

/** Replays everything that the campaign has stored, until nothing comes for a while. */
function feedCases({ service }: LoopContext): LoopExchange[] {
  const values = (name: string, count: number, length: number) =>
    Array.from({ length: count }, (_, n) => `${name}=${String(n).padStart(length, 'x')}*`).join('&')
  return [
    ['from the oldest activity', 'after=0'],
    ['a filter of many values', `after=0&${values('type', 100, 100)}`],
    ['a filter of all', 'after=0&type=*'],
  ].map(([name, query]) => ({
    name: name!,
    route: 'GET /api/v1/stream',
    async run() {
      const aborting = new AbortController()
      const response = await fetch(`${service.url}/api/v1/stream?${query}`, {
        headers: { authorization: `Bearer ${service.workspaceKey}` },
        signal: AbortSignal.any([aborting.signal, AbortSignal.timeout(READ_MS)]),
      })
      const reader = response.body!.getReader()
      for (;;) {
        const read = await Promise.race([reader.read(), Bun.sleep(1_000)])
        if (read === undefined || read.done) break
      }
      aborting.abort()
      return { sent: query!.length, status: response.status }
    },
  }))
}

function webSocketCases({ service }: LoopContext): LoopExchange[] {
  const room = MESSAGE_BYTES - 200
  const subscribe = (id: number, filter: string) => `{"op":"subscribe","id":"${id}","after":0,"filter":${filter}}`
  const types = Array.from({ length: 100 }, (_, n) => `"${String(n).padStart(600, 'x')}*"`)
  const ids = Array.from({ length: 100 }, () => `"${crypto.randomUUID()}"`)
  const messages: [string, (n: number) => string][] = [
    ['filters of many types', (n) => subscribe(n, `{"type":[${types}]}`)],
    ['filters of many runs', (n) => subscribe(n, `{"run_id":[${ids}],"agent_id":[${ids}]}`)],
    ['lists of lists', () => `{"op":"ping","x":[${listOf('[]', room)}]}`],
    ['deep lists', () => `{"op":${'['.repeat(room / 2)}${']'.repeat(room / 2)}}`],
    ['many operations', () => `[${listOf('{"op":"ping"}', room)}]`],
    ['a long id', () => `{"op":"unsubscribe","id":"${'\\u0061'.repeat(room / 6)}"}`],
    ['not JSON', () => '{'.repeat(room)],
    ['unknown filters', (n) => subscribe(n, `{${listOf('"x":0', room)}}`)],
  ]
  return messages.map(([name, message]) => ({
    name,
    route: 'GET /api/v1/live',
    async run() {
      const socket = new WebSocket(`${service.url.replace('http', 'ws')}/api/v1/live`, {
        headers: { authorization: `Bearer ${service.workspaceKey}` },
      } as never)
      await new Promise((resolve, reject) => {
        socket.onopen = resolve
        socket.onerror = reject
      })
      let sent = 0
      for (let n = 0; n < MESSAGES; n++) {
        const text = message(n)
        sent += text.length
        socket.send(text)
      }
      const answered = new Promise((resolve) => {
        socket.onmessage = ({ data }) => String(data).includes('"pong"') && resolve(undefined)
        socket.onclose = resolve
      })
      socket.send('{"op":"ping"}')
      await answered
      socket.close()
      return { sent, status: 101 }
    },
  }))
}
