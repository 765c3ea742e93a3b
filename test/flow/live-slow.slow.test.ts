import { beforeAll, expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { newAgent } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { eventually } from '../support/eventually.ts'
import { gauge } from '../support/feeds.ts'
import { inParallel } from '../support/in-parallel.ts'
import { freshDatabase } from '../support/postgres.ts'
import { openEventStream, openWebSocket, type RawFeed, type RawWebSocket } from '../support/raw-feeds.ts'
import { type SpawnedService, spawnService } from '../support/service.ts'

const STALLED_SOCKETS = 250
const STALLED_STREAMS = 50
const HEALTHY = 5
/** Readers of each protocol that finally read on, to check what they receive. */
const LATE = 2
const REPORTERS = 3
const EVENTS_PER_CALL = 50
const PAYLOAD = { text: 'All work and no play makes Jack a dull boy. '.repeat(90) }
/** A queue of 64 KiB, the message that exceeds it, and frame overhead. Without a limit there would be gigabytes. */
const QUEUED_BYTES_MAX = (STALLED_SOCKETS + STALLED_STREAMS + HEALTHY) * 128 * 1024
/** The kernel buffers some megabytes for each stalled reader before backpressure, and the machine may be busy. */
const TIMEOUT_MS = 240_000
const SLOW_POLL = { intervalMs: 50 }

let urls: { DATABASE_URL: string; CLICKHOUSE_URL: string }
beforeAll(async () => {
  const [database, columnar] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  urls = { DATABASE_URL: database.url, CLICKHOUSE_URL: columnar.url }
})

test(
  'hundreds of stalled readers are closed with a cursor, cost a bounded queue each, and delay no other reader',
  async () => {
    const service = await spawnService({
      ...urls,
      RATE_LIMIT_EVENTS_PER_SECOND: '0',
      LOG_LEVEL: 'warn',
    })
    const load = await Load.on(service)
    const healthy = await openSockets(service, HEALTHY)
    const stalled = [...(await openSockets(service, STALLED_SOCKETS)), ...(await openStreams(service, STALLED_STREAMS))]
    for (const { feed } of stalled) feed.pause()
    const { queued, ...rates } = await load.during(service, () => allClosedBut(service, HEALTHY))
    createLog('info').info('slow readers', { ...rates, queued_mib_max: Math.round(queued / 2 ** 20) })
    expect(queued).toBeGreaterThan(0)
    expect(queued).toBeLessThan(QUEUED_BYTES_MAX)
    for (const { feed } of stalled) feed.destroy()
    for (const reader of healthy) await reader.hasAll(load.seqs)

    // Only these, so that they are closed at about the same time: Bun soon drops what it buffers for a client that reads nothing.
    const late = [...(await openSockets(service, LATE)), ...(await openStreams(service, LATE))]
    for (const { feed } of late) feed.pause()
    await load.during(service, () => allClosedBut(service, HEALTHY))
    for (const reader of late) reader.feed.resume()
    await eventually(() => late.every(({ feed }) => feed.isClosed), SLOW_POLL)
    for (const { closing, socket, received } of late.slice(0, LATE)) {
      expect(socket?.closeCode).toBe(4008)
      expect(closing).toMatchObject({ op: 'closing', reason: 'slow_consumer', cursors: { all: closing?.cursor } })
      expect(Number(closing?.cursor.split('.')[1])).toBe(received[received.length - 1])
    }
    await Promise.all(late.map((reader) => reader.resume(service)))
    for (const reader of [...late, ...healthy]) await reader.hasAll(load.seqs)
    service.kill('SIGTERM')
    expect(await service.exited).toBe(0)
  },
  TIMEOUT_MS,
)

/** Waits until the service has closed all but `count` feeds. */
async function allClosedBut(service: SpawnedService, count: number): Promise<void> {
  await eventually(async () => (await gauge(service, 'feed_connections')) === count, SLOW_POLL)
}

/** A watcher of all events. */
class Reader {
  readonly received: number[] = []
  feed!: RawFeed
  socket: RawWebSocket | undefined
  closing: { cursor: string } | undefined
  private after = 0
  private epoch = ''

  async openSocket({ url, workspaceKey }: SpawnedService): Promise<void> {
    const subscribed = Promise.withResolvers<void>()
    const address = { url, headers: [`Authorization: Bearer ${workspaceKey}`] }
    this.socket = await openWebSocket(address, '/api/v1/live', (text) => {
      if (text.startsWith('{"op":"activity"')) return this.read(text)
      const message = JSON.parse(text)
      if (message.op === 'closing') this.closing = message
      else if (this.epoch === '') this.startedAt(message.cursor)
      subscribed.resolve()
    })
    this.feed = this.socket
    const after = this.epoch === '' ? undefined : `${this.epoch}.${this.received.at(-1) ?? this.after}`
    this.socket.send({ op: 'subscribe', id: 'all', filter: { kind: 'event' }, after })
    await subscribed.promise
  }

  async openStream({ url, workspaceKey }: SpawnedService, cursor: string): Promise<void> {
    this.startedAt(cursor)
    const headers = [`Authorization: Bearer ${workspaceKey}`, `Last-Event-ID: ${cursor}`]
    this.feed = await openEventStream({ url, headers }, '/api/v1/stream?kind=event', ({ id }) => {
      this.received.push(Number(id.slice(id.indexOf('.') + 1)))
    })
  }

  /** Reconnects with the same protocol. */
  resume(service: SpawnedService): Promise<void> {
    const last = `${this.epoch}.${this.received.at(-1) ?? this.after}`
    return this.socket === undefined ? this.openStream(service, last) : this.openSocket(service)
  }

  async hasAll(seqs: readonly number[]): Promise<void> {
    const last = seqs[seqs.length - 1]
    await eventually(() => expect(this.progress).toEqual({ last, isClosed: false }), SLOW_POLL)
    expect(this.received).toEqual(seqs.filter((seq) => seq > this.after))
  }

  /** Says more when a reader lacks something: how it was closed, and whether it had anything. */
  private get progress(): object {
    const { received, closing, socket, feed } = this
    const closed = feed.isClosed && { closeCode: socket?.closeCode, closing, received: received.length }
    return { last: received.at(-1), isClosed: closed }
  }

  private startedAt(cursor: string): void {
    if (this.epoch !== '') return
    const [epoch, seq] = cursor.split('.')
    this.epoch = epoch
    this.after = Number(seq)
  }

  private read(text: string): void {
    const marker = `"cursor":"${this.epoch}.`
    for (let at = text.indexOf(marker); at >= 0; at = text.indexOf(marker, at)) {
      at += marker.length
      this.received.push(Number.parseInt(text.slice(at, at + 16), 10))
    }
  }
}

async function openSockets(service: SpawnedService, count: number): Promise<Reader[]> {
  const readers = Array.from({ length: count }, () => new Reader())
  await inParallel(readers, (reader) => reader.openSocket(service), 50)
  return readers
}

async function openStreams(service: SpawnedService, count: number): Promise<Reader[]> {
  const { data } = await service.api('GET', '/readyz')
  const readers = Array.from({ length: count }, () => new Reader())
  await inParallel(readers, (reader) => reader.openStream(service, `${data.journal.epoch}.${data.journal.end_seq}`))
  return readers
}

/** Events at the highest possible rate, and their positions. */
class Load {
  /** In order, once {@link during} has resolved. */
  readonly seqs: number[] = []

  private constructor(
    private readonly body: string,
    private readonly key: string,
  ) {}

  static async on({ api }: SpawnedService): Promise<Load> {
    const { agentId, agentKey } = await newAgent(api)
    const run_id = Bun.randomUUIDv7()
    await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId, run_id }, { key: agentKey })
    const events = new Array(EVENTS_PER_CALL).fill({ type: 'step', payload: PAYLOAD })
    return new Load(JSON.stringify({ run_id, events }), agentKey)
  }

  /** Reports until the work is done, and records the largest queue for readers. */
  async during(service: SpawnedService, work: () => Promise<unknown>) {
    const before = this.seqs.length
    const startedMs = performance.now()
    let isOver = false
    let queued = 0
    const watch = async () => {
      for (; !isOver; await Bun.sleep(20)) queued = Math.max(queued, await gauge(service, 'feed_queued_bytes'))
    }
    const report = async () => {
      while (!isOver) {
        const { data, text } = await service.api('POST', '/api/ingest/v1/events', this.body, { key: this.key })
        if (data === null) throw new Error(text)
        for (let i = 0; i < EVENTS_PER_CALL; i++) this.seqs.push(data.first_seq + i)
      }
    }
    const all = Promise.all([watch(), ...Array.from({ length: REPORTERS }, report)])
    await work().finally(() => {
      isOver = true
    })
    await all
    this.seqs.sort((a, b) => a - b)
    const seconds = (performance.now() - startedMs) / 1000
    return { seconds, events_per_second: Math.round((this.seqs.length - before) / seconds), queued }
  }
}
