import { parsedJson } from '../../base/json-object.ts'
import { elements, member } from '../../base/json-parts.ts'
import type { ActivityItem, FeedMessage } from '../../feeds/live/messages.ts'

/** An activity with its original text. */
export interface Received {
  readonly activity: ActivityItem
  readonly json: string
}

/** How a connection ended. */
export interface Disconnect {
  /** False if the service was not reached or refused the WebSocket handshake. */
  readonly opened: boolean
  /** The code of the closing frame; 1006 when there was none. */
  readonly code: number
  readonly reason: string
  /** How long the service asks clients to wait before reconnecting. */
  readonly retryAfterMs: number
}

export interface Timing {
  readonly pingEveryMs: number
  /** A connection without any incoming message for this long is considered dead. */
  readonly silenceMaxMs: number
}

interface ConnectionOptions {
  /** A ws:// or wss:// URL. */
  readonly address: string
  readonly key: string
  readonly timing: Timing
  /** The subscription to make, called once the connection is open. */
  readonly subscription: () => Promise<object>
  /** Called for each message of the service. `items` holds activities with their original text. */
  readonly onMessage: (message: FeedMessage, items: readonly Received[]) => void
}

const NO_CLOSING_FRAME = 1006

/** Bun's WebSocket can send headers; the types in scope are those of browsers, for the dashboard. */
const BunWebSocket = WebSocket as unknown as new (address: string, options: Bun.WebSocketOptions) => Bun.WebSocket

/**
 * One connection with one subscription. It sends pings, and ends when the service is silent for too long.
 *
 * @returns `ended` rejects with an error thrown by `subscription` or `onMessage`; after `end` no more callbacks follow
 */
export function connect({ address, key, timing, subscription, onMessage }: ConnectionOptions) {
  const { promise: ended, resolve, reject } = Promise.withResolvers<Disconnect>()
  const socket = new BunWebSocket(address, { headers: { authorization: `Bearer ${key}` } })
  let opened = false
  let isOver = false
  let closing = { reason: '', retryAfterMs: 0 }
  const send = (message: object) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const finish = (settle: () => void) => {
    if (isOver) return
    isOver = true
    clearTimeout(silence)
    clearInterval(pings)
    socket.terminate()
    settle()
  }
  const end = (reason: string, code = NO_CLOSING_FRAME) =>
    finish(() => resolve({ opened, code, ...closing, reason: closing.reason || reason }))
  const fail = (error: unknown) => finish(() => reject(error))
  const silence = setTimeout(() => end(`nothing came for ${timing.silenceMaxMs / 1000} s`), timing.silenceMaxMs)
  const pings = setInterval(() => send({ op: 'ping' }), timing.pingEveryMs)

  socket.onopen = () => {
    opened = true
    subscription().then((wanted) => send({ op: 'subscribe', id: 'tail', ...wanted }), fail)
  }
  socket.onmessage = ({ data }) => {
    if (isOver) return
    silence.refresh()
    const message = parsedJson(data) as FeedMessage | undefined
    if (message === undefined) return end('the service sent something that is not JSON')
    if (message.op === 'closing') closing = { reason: message.reason, retryAfterMs: message.reconnect_after_ms }
    try {
      onMessage(message, message.op === 'activity' ? withText(message.items, data) : [])
    } catch (error) {
      fail(error)
    }
  }
  socket.onclose = ({ code, reason }) => end(reason || 'the connection was lost', code)
  return { ended, end }
}

function withText(items: readonly ActivityItem[], frame: string): Received[] {
  const texts = elements(member(frame, 'items') ?? '[]')
  return items.map((activity, index) => ({ activity, json: texts[index] ?? '' }))
}
