import { atEnd } from '../support/teardown.ts'

/** A client's message. */
export interface Sent {
  readonly op: string
  readonly id?: string
  readonly after?: string
}

/** One connection, as the service sees it. */
export interface FeedSocket {
  say(message: object | string): void
  /** Activities with these numbers; their cursors are `e.<number>`. */
  activities(from: number, to: number, payload?: object): void
  close(code: number, reason: string): void
}

export interface ScriptedFeed {
  readonly url: string
  /** The subscriptions of clients, one per connection. */
  readonly subscriptions: readonly Sent[]
  /** The number of pings so far. */
  pings(): number
  /** The number of connections that have ended so far. */
  closed(): number
}

export interface Script {
  /** Called for each subscription; `nth` counts them from 0. */
  subscribed(socket: FeedSocket, subscribe: Sent, nth: number): void
  /** Pings are answered by default. */
  readonly ignoresPings?: boolean
  /** Answers requests before the WebSocket upgrade. */
  readonly refuse?: (nth: number) => Response | null
  readonly port?: number
}

/** A scripted server of live feeds that can misbehave in ways the real service does not. */
export function serveFeed({ subscribed, ignoresPings = false, refuse = () => null, port = 0 }: Script): ScriptedFeed {
  const subscriptions: Sent[] = []
  let requests = 0
  let pings = 0
  let closed = 0
  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    fetch(request, self) {
      const path = new URL(request.url).pathname
      if (path !== '/api/v1/live')
        return Response.json({ data: null, error: { code: 'FORBIDDEN', message: path } }, { status: 403 })
      return refuse(requests++) ?? (self.upgrade(request) ? undefined : new Response(null, { status: 400 }))
    },
    websocket: {
      backpressureLimit: 2 ** 30,
      close() {
        closed++
      },
      message(ws, data) {
        const message = JSON.parse(String(data)) as Sent
        const say = (reply: object | string) => {
          ws.send(typeof reply === 'string' ? reply : JSON.stringify(reply))
        }
        if (message.op === 'ping') {
          pings++
          if (!ignoresPings) say({ op: 'pong' })
          return
        }
        subscriptions.push(message)
        const activities = (from: number, to: number, payload: object = {}) => {
          const items = Array.from({ length: to - from + 1 }, (_, i) => activity(from + i, payload))
          say({ op: 'activity', id: message.id, items })
        }
        const socket = { say, activities, close: (code: number, reason: string) => ws.close(code, reason) }
        subscribed(socket, message, subscriptions.length - 1)
      },
    },
  })
  atEnd(() => server.stop(true))
  return { url: `http://127.0.0.1:${server.port}`, subscriptions, pings: () => pings, closed: () => closed }
}

export function activity(n: number, payload: object = {}) {
  return {
    cursor: `e.${n}`,
    kind: 'event',
    agent_id: '0198f2aa-0000-7000-8000-0000000000aa',
    run_id: '0198f2aa-0000-7000-8000-0000000000bb',
    received_at: '2026-01-31T09:30:00.123Z',
    event: { id: `id-${n}`, seq: n, type: 'step', level: 'info', payload, occurred_at: '2026-01-31T09:30:00.123Z' },
  }
}

/** The usual first message. */
export function subscribedAt(after: string | undefined) {
  return { op: 'subscribed', id: 'tail', cursor: after ?? 'e.0', recovered: after !== undefined }
}
