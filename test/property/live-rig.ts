import { join } from 'node:path'
import type { Server, ServerWebSocket } from 'bun'
import { systemClock } from '../../src/base/clock.ts'
import { serverOptions } from '../../src/base/http/server-options.ts'
import { createLog } from '../../src/base/log.ts'
import { Connections } from '../../src/feeds/live/connections.ts'
import { EventStream } from '../../src/feeds/live/event-stream.ts'
import { startOf } from '../../src/feeds/live/feed-source.ts'
import { parseFilter } from '../../src/feeds/live/filter.ts'
import { createHistory } from '../../src/feeds/live/history.ts'
import { Hub } from '../../src/feeds/live/hub.ts'
import { WebSocketConnection } from '../../src/feeds/live/websocket.ts'
import type { ColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { type LocalJournal, openLocalJournal } from '../../src/stores/journal/local/journal.ts'
import { noSessions } from '../support/matching.ts'
import { startSink } from '../support/sink.ts'

/** Sizes in bytes that decide where a feed is read from: memory, the journal's files, or ClickHouse. */
export interface RigSizes {
  readonly segmentBytes: number
  readonly tailBytes: number
  readonly keepBytes: number
  /** The size of a page from ClickHouse. */
  readonly pageBytes: number
}

/** Running feeds. */
export interface Rig {
  readonly url: string
  /** The same on a Unix socket. The kernel buffers little for it, so that backpressure of a stalled client comes early. */
  readonly unixUrl: string
  readonly journal: LocalJournal
  /** Stops it as the service does; {@link startRig} on the same directory continues. */
  stop(): Promise<void>
}

/** Longer than any test: a stalled client is not disconnected. */
const SLOW_CONSUMER_MS = 60_000
/**
 * Bun ignores `server.timeout` on a Unix socket, and closes a response there that was silent for 10 s, even if only because the
 * machine was busy. Its types do not know that this option works there.
 */
const NO_IDLE_TIMEOUT: object = { idleTimeout: 0 }
const LIMITS = { connections: 10_000, connectionsPerWorkspace: 10_000 }
/** Keys are tested elsewhere: a client simply names its workspace. */
const KEYS = { credentialState: () => 'valid' as const, onKeysInvalidated: () => () => {} }

/**
 * Live feeds without the rest of the service: the real journal, sink, ClickHouse, hub and connections on a real port, but
 * sizes so small that a few hundred activities are spread over memory, dozens of files, and what only ClickHouse has.
 *
 * `GET /live` and `GET /stream` as in docs/feeds.md; the header `Workspace` stands for a key.
 */
export async function startRig(columnar: ColumnarClient, dir: string, sizes: RigSizes): Promise<Rig> {
  const log = createLog('error')
  const journal = await openLocalJournal({ dir, maxBytes: 2 ** 40, ...sizes, clock: systemClock, log })
  const sink = await startSink({ journal, client: columnar, dir, log, intervalMs: 20 })
  const history = createHistory({
    columnar,
    epoch: journal.epoch,
    lookUpSessions: noSessions,
    bytesMax: sizes.pageBytes,
  })
  const hub = new Hub({ journal, history, lookUpSessions: noSessions, log, filtersPerWorkspace: 10_000 })
  const connections = new Connections({ ring: KEYS, limits: LIMITS, log })
  const source = {
    hub,
    journal,
    retentionFloorOf: () => 0,
    retain: () => () => {},
    mayLag: false,
    refresh: async () => {},
  }
  const deps = {
    source,
    connections,
    takeBudget: () => {},
    slowConsumerMs: SLOW_CONSUMER_MS,
    heartbeatMs: 8_000,
  }
  const options = serverOptions({ host: '127.0.0.1', port: 0, bodyTimeoutMs: 5_000 })
  const handlers = {
    websocket: {
      ...options.websocket,
      // The clients of these tests answer no pings.
      sendPings: false,
      idleTimeout: 0,
      data: {} as WebSocketConnection,
      open: (socket: FeedSocket) => socket.data.open(socket),
      message: (socket: FeedSocket, message: string | Buffer) => socket.data.message(socket, message),
      drain: (socket: FeedSocket) => socket.data.drain(),
      close: (socket: FeedSocket) => socket.data.close(),
    },
    fetch: (request: Request, server: Server<WebSocketConnection>) => answer(deps, request, server),
  }
  const unix = join(dir, 'feeds')
  const servers = [Bun.serve({ ...options, ...handlers }), Bun.serve({ unix, ...handlers, ...NO_IDLE_TIMEOUT })]
  return {
    url: `http://127.0.0.1:${servers[0].port}`,
    unixUrl: `unix:${unix}`,
    journal,
    async stop() {
      connections.stop()
      await Promise.all(servers.map((server) => server.stop(true)))
      await hub.stop()
      await sink.stop(1_000)
      await journal.close()
    },
  }
}

type FeedSocket = ServerWebSocket<WebSocketConnection>
type Deps = ConstructorParameters<typeof WebSocketConnection>[0] & ConstructorParameters<typeof EventStream>[0]

function answer(deps: Deps, request: Request, server: Server<WebSocketConnection>): Response | undefined {
  const { pathname, searchParams } = new URL(request.url)
  server.timeout(request, 0)
  const workspaceId = request.headers.get('workspace') ?? ''
  const caller = {
    caller: { keyId: workspaceId, type: 'workspace', workspaceId, partition: 0, agentId: null },
    agentId: null,
    runId: null,
    credential: workspaceId,
    isToken: false,
  } as const
  if (pathname === '/live') {
    server.upgrade(request, { data: new WebSocketConnection(deps, caller, server) })
    return undefined
  }
  const after = request.headers.get('last-event-id') ?? searchParams.get('after') ?? undefined
  const fields = [...new Set(searchParams.keys())].filter((name) => name !== 'after')
  const wanted = Object.fromEntries(fields.map((name) => [name, searchParams.getAll(name)]))
  const filter = parseFilter(wanted, 'query', caller)
  const start = startOf(deps.source, workspaceId, after, 'after')
  const stream = new EventStream(deps, { caller, filter, after, start, until: 'closed' })
  return new Response(stream.body, { headers: { 'content-type': 'text/event-stream' } })
}
