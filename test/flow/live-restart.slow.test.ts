import { expect, test } from 'bun:test'
import { type Api, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { LiveStream, newReporter, numbered, numbersOf } from '../support/feeds.ts'
import { Padding } from '../support/padding.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type FeedAddress, openEventStream, openWebSocket, type RawFeed } from '../support/raw-feeds.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { tcpProxy } from '../support/tcp-proxy.ts'

const ROUNDS = 4
const WATCHERS = 16

test('feeds continue without gaps or repeats across restarts, from memory, from files and from ClickHouse', async () => {
  const random = seededRandom('live restart')
  let service = await startTestService(ENV)
  const reporters = await Reporters.of(service.api, random)
  const padding = await Padding.of(service.api)
  const watchers: Watcher[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < WATCHERS / ROUNDS; i++)
      watchers.push(new Watcher(reporters, random, `watcher ${watchers.length}`))
    await Promise.all(watchers.map((watcher) => watcher.connect(service)))
    await reporters.report(service.api, 6)
    for (const watcher of watchers) if (random.bool()) watcher.cut()
    await reporters.report(service.api, 6)
    // The disconnected watchers' missed events are in ClickHouse only, in the files, or still in memory.
    if (round % 2 === 0) await padding.push(service.api)
    if (round !== 1) service = await restarted(service)
    await Promise.all(watchers.map((watcher) => watcher.connect(service)))
    await reporters.report(service.api, 6)
    await settled(service)
  }
  await eventually(() => expect(watchers.flatMap((watcher) => watcher.differences())).toEqual([]))
  // A cursor means the same for every watcher.
  const received = watchers.flatMap((watcher) => watcher.received)
  const [cursors, marks] = [new Set(received.map(({ cursor }) => cursor)), new Set(received.map(({ mark }) => mark))]
  const seen = new Set(received.map(({ cursor, mark }) => `${cursor} ${mark}`))
  expect([cursors.size, marks.size]).toEqual([seen.size, seen.size])
  expect(seen.size).toBeGreaterThan(0)
  for (const watcher of watchers) watcher.cut()
})

test('the feed of an ended run from 0 sends its headers before its history can be read, and then everything', async () => {
  const before = await startTestService(ENV)
  const agent = await newReporter(before.api)
  const runId = await agent.start()
  await agent.events(runId, numbered(10))
  await agent.end(runId)
  await settled(before)
  // The run is in ClickHouse only.
  await (await Padding.of(before.api)).push(before.api)
  const clickhouse = new URL(before.clickhouseUrl)
  const proxy = await tcpProxy({ port: Number(clickhouse.port) })
  clickhouse.port = String(proxy.port)
  const service = await restarted({ ...before, clickhouseUrl: clickhouse.href })
  proxy.cut()
  const stream = await LiveStream.open(service, `/api/v1/runs/${runId}/stream?after=0`)
  expect([stream.status, stream.ended, stream.items]).toEqual([200, undefined, []])
  proxy.heal()
  expect(await stream.untilEnded()).toBe('clean')
  expect(numbersOf(stream.items.filter(({ kind }) => kind === 'event'))).toEqual(
    numbered(10).map(({ payload }) => payload.n),
  )
  expect(stream.items.at(-1)?.run?.status).toBe('completed')
})

/** The journal keeps no files once ClickHouse has their rows. */
const ENV = {
  JOURNAL_KEEP_BYTES: '0',
  RATE_LIMIT_EVENTS_PER_SECOND: '0',
}

async function restarted(service: TestService): Promise<TestService> {
  await service.stop()
  return startTestService({
    ...ENV,
    DATA_DIR: service.dataDir,
    DATABASE_URL: service.databaseUrl,
    CLICKHOUSE_URL: service.clickhouseUrl,
    BOOTSTRAP_WORKSPACE_KEY: service.workspaceKey,
  })
}

/** Waits until the changes of runs and tasks are in the journal: a feed that starts now starts after them. */
async function settled({ api }: TestService): Promise<void> {
  await eventually(async () => {
    const { data } = await api('GET', '/readyz')
    return data.consumers.outbox.lag === 0
  })
}

/** One report. Those of one kind for one run are delivered in the order of the reports. */
interface Reported {
  /** Unique for each report. */
  readonly mark: string
  readonly kind: string
  readonly agentId: string
  readonly runId: string
  readonly level?: string
  readonly status?: string
}

class Reporters {
  readonly reported: Reported[] = []

  private constructor(
    readonly agents: readonly { agentId: string; agentKey: string }[],
    private readonly random: Random,
  ) {}

  static async of(api: Api, random: Random): Promise<Reporters> {
    return new Reporters([await newAgent(api), await newAgent(api)], random)
  }

  /** Reports this many concurrent runs, each from start to end. */
  async report(api: Api, runs: number): Promise<void> {
    await Promise.all(Array.from({ length: runs }, () => this.run(api, this.random.pick(this.agents))))
  }

  private async run(api: Api, { agentId, agentKey }: { agentId: string; agentKey: string }): Promise<void> {
    const run_id = Bun.randomUUIDv7()
    const of = { agentId, runId: run_id }
    const call = async (path: string, body: object) => {
      const { status, text } = await api('POST', `/api/ingest/v1${path}`, body, { key: agentKey })
      if (status !== 200) throw new Error(`${path}: ${text}`)
    }
    await call('/run/start', { agent_id: agentId, run_id })
    this.reported.push({ ...of, kind: 'run', mark: `${run_id} running`, status: 'running' })
    const events = Array.from({ length: this.random.int(1, 10) }, () => ({
      type: 'step',
      level: this.random.pick(['debug', 'error']),
      payload: { mark: Bun.randomUUIDv7() },
    }))
    await call('/events', { run_id, events })
    for (const { level, payload } of events) this.reported.push({ ...of, kind: 'event', mark: payload.mark, level })
    const id = Bun.randomUUIDv7()
    for (const status of ['running', 'completed']) {
      await call('/tasks', { run_id, task: { id, name: 'a task', status } })
      this.reported.push({ ...of, kind: 'task', mark: `${id} ${status}`, status })
    }
    await call('/run/complete', { run_id })
    this.reported.push({ ...of, kind: 'run', mark: `${run_id} completed`, status: 'completed' })
  }
}

interface Filter {
  readonly agent_id?: string
  readonly kind?: string
  readonly level?: string
  readonly status?: string
}

/** One filter, followed over many connections and both protocols. */
class Watcher {
  readonly received: { cursor: string; mark: string }[] = []
  private readonly filter: Filter
  private readonly startIndex: number
  private cursor: string | undefined
  private feed: RawFeed | undefined

  constructor(
    private readonly reporters: Reporters,
    private readonly random: Random,
    private readonly name: string,
  ) {
    const { agentId } = random.pick(reporters.agents)
    this.filter = random.pick<Filter>([
      {},
      { agent_id: agentId },
      { kind: 'event', level: 'error' },
      { status: 'completed' },
      { kind: 'run', agent_id: agentId },
    ])
    if (random.bool()) this.cursor = '0'
    this.startIndex = this.cursor === '0' ? 0 : reporters.reported.length
  }

  /** Resumes after the last item, unless it is connected. */
  async connect({ url, workspaceKey }: TestService): Promise<void> {
    if (this.feed !== undefined && !this.feed.isClosed) return
    const address = { url, headers: [`Authorization: Bearer ${workspaceKey}`] }
    // An event stream without an event has no cursor to resume after.
    const isStream = this.cursor !== undefined && this.random.bool()
    this.feed = await (isStream ? this.openStream(address) : this.openSocket(address))
  }

  cut(): void {
    this.feed?.destroy()
  }

  /** What was received, if it differs from the expected items, each once and in order. */
  differences(): object[] {
    const { name, filter, startIndex, reporters, received } = this
    const known = new Map(reporters.reported.map((each) => [each.mark, each]))
    const shown = received.map(({ mark }) => known.get(mark) ?? { mark, runId: 'unknown', kind: 'unknown' })
    const expected = reporters.reported.slice(startIndex).filter((each) => this.wants(each))
    const seqs = received.map(({ cursor }) => Number(cursor.split('.')[1]))
    const rises = seqs.every((seq, i) => i === 0 || seq > seqs[i - 1])
    if (rises && Bun.deepEquals(inOrder(shown), inOrder(expected))) return []
    return [{ name, filter, startIndex, shown: shown.length, expected: expected.length, rises }]
  }

  private wants({ kind, agentId, level, status }: Reported): boolean {
    const { filter } = this
    return (
      (filter.agent_id ?? agentId) === agentId &&
      (filter.kind ?? kind) === kind &&
      (filter.level ?? level) === level &&
      (filter.status ?? status) === status
    )
  }

  private async openSocket(address: FeedAddress): Promise<RawFeed> {
    const subscribed = Promise.withResolvers<void>()
    const socket = await openWebSocket(address, '/api/v1/live', (text) => {
      const message = JSON.parse(text)
      if (message.op === 'activity') for (const item of message.items) this.got(item)
      else if (message.op === 'subscribed') this.cursor = message.cursor
      subscribed.resolve()
    })
    socket.send({ op: 'subscribe', id: this.name, filter: this.filter, after: this.cursor })
    await subscribed.promise
    return socket
  }

  private openStream(address: FeedAddress): Promise<RawFeed> {
    const query = new URLSearchParams({ ...this.filter, ...(this.cursor !== undefined && { after: this.cursor }) })
    return openEventStream(address, `/api/v1/stream?${query}`, ({ data }) => this.got(JSON.parse(data)))
  }

  // biome-ignore lint/suspicious/noExplicitAny: an activity as received.
  private got(activity: any): void {
    const { cursor, kind, event, task, run } = activity
    const marks = {
      event: () => event.payload.mark,
      task: () => `${task.id} ${task.status}`,
      run: () => `${run.run_id} ${run.status}`,
    }
    this.received.push({ cursor, mark: marks[kind as keyof typeof marks]() })
    this.cursor = cursor
  }
}

/** Different runs are acknowledged in any order, and changes take a different path from events. */
function inOrder(reported: readonly Pick<Reported, 'mark' | 'runId' | 'kind'>[]): object {
  const groups = Object.groupBy(reported, ({ runId, kind }) => `${runId} ${kind}`)
  return Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, group?.map(({ mark }) => mark)]))
}
