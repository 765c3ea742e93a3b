import { elements, member } from './json-parts.ts'
import type { Received, ServerMessage, Subscribe } from './protocol.ts'

/** How a connection came to its end. */
export interface Ending {
  /** False: the service was not reached, or did not let the connection become a WebSocket. */
  readonly opened: boolean
  /** The code of the closing frame; 1006 when there was none. */
  readonly code: number
  readonly reason: string
  /** How long the service asks to stay away. */
  readonly retryAfterMs: number
}

export interface Timing {
  readonly pingEveryMs: number
  /** A connection on which nothing at all has come for so long is dead, whatever the network says. */
  readonly silenceMaxMs: number
}

export interface ConnectionOptions {
  /** With ws:// or wss://. */
  readonly address: string
  readonly key: string
  readonly timing: Timing
  /** What to subscribe to, asked once the service has let us in. */
  readonly subscription: () => Promise<Subscribe>
  /** What the service says, `items` with their text when it is activities. */
  readonly onMessage: (message: ServerMessage, items: readonly Received[]) => void
}

export interface Connection {
  /** Rejects with what `subscription` or `onMessage` threw. */
  readonly ended: Promise<Ending>
  /** Ends it at once; nothing more is heard of it. */
  end(reason: string): void
}

const NO_CLOSING_FRAME = 1006

/** Of Bun, which can send headers; the types in scope are those of browsers, where the dashboard runs. */
const BunWebSocket = WebSocket as unknown as new (address: string, options: Bun.WebSocketOptions) => Bun.WebSocket

/** One connection with one subscription, kept awake and watched for silence, until it ends. */
export function connect({ address, key, timing, subscription, onMessage }: ConnectionOptions): Connection {
  const { promise: ended, resolve, reject } = Promise.withResolvers<Ending>()
  const socket = new BunWebSocket(address, { headers: { authorization: `Bearer ${key}` } })
  let opened = false
  let isOver = false
  let farewell = { reason: '', retryAfterMs: 0 }
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
  const end = (reason: string, code = NO_CLOSING_FRAME) => {
    const retryAfterMs = farewell.retryAfterMs
    finish(() => resolve({ opened, code, reason: farewell.reason || reason, retryAfterMs }))
  }
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
    const message = parse(data)
    if (message === null) return end('the service sent something that is not JSON')
    if (message.op === 'closing') farewell = { reason: message.reason, retryAfterMs: message.reconnect_after_ms }
    try {
      onMessage(message, message.op === 'activity' ? withText(message.items, data) : [])
    } catch (error) {
      fail(error)
    }
  }
  socket.onclose = ({ code, reason }) => end(reason || 'the connection was lost', code)
  return { ended, end }
}

function parse(data: unknown): ServerMessage | null {
  try {
    return JSON.parse(String(data)) as ServerMessage
  } catch {
    return null
  }
}

function withText(items: readonly Received['activity'][], frame: string): Received[] {
  const texts = elements(member(frame, 'items') ?? '[]')
  return items.map((activity, index) => ({ activity, json: texts[index] ?? '' }))
}
