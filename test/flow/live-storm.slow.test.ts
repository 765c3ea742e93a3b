import { beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { createLog } from '../../src/base/log.ts'
import { newAgent } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { inParallel } from '../support/in-parallel.ts'
import { freshDatabase } from '../support/postgres.ts'
import { openWebSocket, type RawWebSocket } from '../support/raw-feeds.ts'
import { freePort, type SpawnedService, spawnService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

const CLIENTS = 1_000
const MISSED = 4_000
const LIVE = 200
const AGENTS = 4

let postgres: Meter
let clickhouse: Meter
beforeAll(async () => {
  const [database, columnar] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  postgres = await meter(database.url)
  clickhouse = await meter(columnar.url)
})

test('a thousand clients that reconnect at once get exactly what they missed, then live events, without database load', async () => {
  const env = {
    DATABASE_URL: postgres.url,
    CLICKHOUSE_URL: clickhouse.url,
    PORT: String(freePort()),
    LOG_LEVEL: 'warn',
  }
  const before = await spawnService(env)
  const reporters = await Reporters.of(before)
  await reporters.report(before, MISSED)
  before.kill('SIGTERM')
  await before.exited

  // Its memory is empty now: the missed events are in the journal's files.
  const service = await spawnService({
    ...env,
    DATA_DIR: before.dataDir,
    BOOTSTRAP_WORKSPACE_KEY: before.workspaceKey,
  })
  await isQuiet(service)
  const sentBefore = { postgres: postgres.bytes(), clickhouse: clickhouse.bytes() }
  const cpuBefore = cpuSeconds(service.pid)
  const startedMs = performance.now()
  const clients = Array.from({ length: CLIENTS }, (_, i) => new Client(i, reporters))
  await Promise.all(clients.map((client) => client.reconnect(service)))
  await allHaveAll(clients)
  const seconds = (performance.now() - startedMs) / 1000
  const cpu = cpuSeconds(service.pid) - cpuBefore
  const bytes = {
    postgres: postgres.bytes() - sentBefore.postgres,
    clickhouse: clickhouse.bytes() - sentBefore.clickhouse,
  }

  await reporters.report(service, LIVE)
  await allHaveAll(clients)
  const deliveries = clients.reduce((sum, { received }) => sum + received.length, 0)
  createLog('info').info('reconnect storm', {
    clients: CLIENTS,
    deliveries,
    seconds,
    cpu_seconds: cpu,
    sent_bytes: bytes,
  })
  // Traffic of the service itself in that time: heartbeats, and polling for work. A query for each client would be more.
  expect(bytes.postgres).toBeLessThan(20 * CLIENTS + 2_500 * seconds)
  expect(bytes.clickhouse).toBeLessThan(5 * CLIENTS + 500 * seconds)
  for (const client of clients) client.leave()
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})

/** Agents whose events are known by position. */
class Reporters {
  readonly events: { seq: number; agentId: string; level: number }[] = []

  private constructor(
    readonly epoch: string,
    readonly agents: readonly { agentId: string; agentKey: string; runId: string }[],
  ) {}

  static async of({ api, url, workspaceKey }: SpawnedService): Promise<Reporters> {
    const agents = await Promise.all(
      Array.from({ length: AGENTS }, async () => {
        const agent = await newAgent(api)
        const runId = Bun.randomUUIDv7()
        await api('POST', RUN_START, { agent_id: agent.agentId, run_id: runId }, { key: agent.agentKey })
        return { ...agent, runId }
      }),
    )
    const subscribed = Promise.withResolvers<string>()
    const headers = [`Authorization: Bearer ${workspaceKey}`]
    const socket = await openWebSocket({ url, headers }, LIVE_PATH, (text) =>
      subscribed.resolve(JSON.parse(text).cursor),
    )
    socket.send({ op: 'subscribe', id: 'epoch' })
    const [epoch] = (await subscribed.promise).split('.')
    socket.destroy()
    return new Reporters(epoch, agents)
  }

  async report({ api }: SpawnedService, count: number): Promise<void> {
    const calls = Array.from({ length: count / EVENTS_PER_CALL }, (_, i) => this.agents[i % AGENTS])
    await inParallel(calls, async ({ agentId, agentKey, runId }) => {
      const events = Array.from({ length: EVENTS_PER_CALL }, (_, i) => ({
        type: 'step',
        level: LEVELS[i % LEVELS.length],
        payload: { text: 'All work and no play makes Jack a dull boy.' },
      }))
      const { data } = await api('POST', '/api/ingest/v1/events', { run_id: runId, events }, { key: agentKey })
      events.forEach((_, i) => {
        this.events.push({ seq: data.first_seq + i, agentId, level: i % LEVELS.length })
      })
    })
    this.events.sort((a, b) => a.seq - b.seq)
  }
}

const RUN_START = '/api/ingest/v1/run/start'
const LIVE_PATH = '/api/v1/live'
const EVENTS_PER_CALL = 20
const LEVELS = ['debug', 'info', 'warn', 'error']

/** A client that has been disconnected since its own position. */
class Client {
  readonly received: number[] = []
  private readonly after: number
  private readonly filter: { kind: string; agent_id?: string; level?: string }
  private readonly marker: string
  private socket: RawWebSocket | undefined
  private hasLeft = false
  private readonly shows: (event: Reporters['events'][number]) => boolean

  constructor(
    index: number,
    private readonly reporters: Reporters,
  ) {
    const { events, agents, epoch } = reporters
    this.after = events[(index * 7919) % (MISSED / 2)].seq
    this.marker = `"cursor":"${epoch}.`
    const { agentId } = agents[index % AGENTS]
    // One in eight sees everything, the others what their filter matches.
    const [filter, shows] = FILTERS[index % 8 === 0 ? 0 : 1 + (index % 3)](agentId)
    this.filter = { kind: 'event', ...filter }
    this.shows = shows
  }

  /** Again when the service closes the connection because this process, on a busy machine, reads too slowly. */
  async reconnect(service: SpawnedService): Promise<void> {
    const { url, workspaceKey } = service
    const headers = [`Authorization: Bearer ${workspaceKey}`]
    const socket = await openWebSocket({ url, headers }, LIVE_PATH, (text) => {
      if (!text.startsWith('{"op":"closing"')) this.read(text)
      else if (!this.hasLeft) void this.reconnect(service)
    })
    this.socket = socket
    if (this.hasLeft) return socket.destroy()
    const after = `${this.reporters.epoch}.${this.received.at(-1) ?? this.after}`
    socket.send({ op: 'subscribe', id: 'all', filter: this.filter, after })
  }

  expected(): number[] {
    return this.reporters.events.filter((event) => event.seq > this.after && this.shows(event)).map(({ seq }) => seq)
  }

  leave(): void {
    this.hasLeft = true
    this.socket?.destroy()
  }

  /** Parsing a gigabyte of JSON would take longer than the tested code. */
  private read(text: string): void {
    if (!text.startsWith('{"op":"activity"')) return
    const { marker, received } = this
    for (let at = text.indexOf(marker); at >= 0; at = text.indexOf(marker, at)) {
      at += marker.length
      received.push(Number.parseInt(text.slice(at, at + 16), 10))
    }
  }
}

type Choice = [filter: { agent_id?: string; level?: string }, shows: (event: Reporters['events'][number]) => boolean]
const FILTERS: readonly ((agentId: string) => Choice)[] = [
  () => [{}, () => true],
  (agentId) => [{ agent_id: agentId }, (event) => event.agentId === agentId],
  () => [{ level: 'error' }, ({ level }) => level === 3],
  (agentId) => [{ agent_id: agentId, level: 'warn' }, (event) => event.agentId === agentId && event.level >= 2],
]

async function allHaveAll(clients: readonly Client[]): Promise<void> {
  const expected = clients.map((client) => client.expected())
  await eventually(() => clients.every(({ received }, i) => received.length >= expected[i].length))
  clients.forEach(({ received }, i) => {
    expect(received).toEqual(expected[i])
  })
}

/** Waits until earlier reports have been processed. */
async function isQuiet({ url }: SpawnedService): Promise<void> {
  await eventually(async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    return ['sink_lag_rows 0', 'run_statistics_lag_rows 0'].every((line) => metrics.includes(line))
  })
}

/** The CPU time of a process, in all its threads. */
function cpuSeconds(pid: number): number {
  const [, fields] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user, system] = fields.split(' ').slice(11, 13)
  return (Number(user) + Number(system)) / CLOCK_TICKS_PER_SECOND
}

const CLOCK_TICKS_PER_SECOND = 100

interface Meter {
  /** The store's URL through the meter. */
  readonly url: string
  /** Bytes sent to the store so far. */
  bytes(): number
}

async function meter(storeUrl: string): Promise<Meter> {
  const url = new URL(storeUrl)
  const socketDir = url.searchParams.get('host')
  let bytes = 0
  const server = createServer((client) => {
    const store = socketDir?.startsWith('/')
      ? connect(`${socketDir}/.s.PGSQL.${url.port || 5432}`)
      : connect(Number(url.port), url.hostname)
    client.on('data', (data) => {
      bytes += data.length
    })
    for (const [one, other] of [
      [client, store],
      [store, client],
    ]) {
      one.pipe(other)
      one.on('error', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(async () => server.close())
  const metered = new URL(url)
  metered.searchParams.delete('host')
  metered.hostname = '127.0.0.1'
  metered.port = String((server.address() as { port: number }).port)
  return { url: metered.href, bytes: () => bytes }
}
