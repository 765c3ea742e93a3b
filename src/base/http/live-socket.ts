/** How a connection ended. */
export interface Disconnect {
  /** False if the service was not reached or refused the WebSocket handshake. */
  readonly opened: boolean
  /** The code of the closing frame; 1006 when there was none. */
  readonly code: number
  readonly reason: string
}

interface LiveSocketOptions {
  readonly onOpen: () => void | Promise<void>
  /** Called with the text of each message. */
  readonly onText: (text: string) => void
  /** How often the service is asked whether it is still there. One that has said nothing since the last time is not. */
  readonly pingEveryMs?: number
}

const PING_EVERY_MS = 15_000
const NO_CLOSING_FRAME = 1006

/** Whether a subscription that was refused with this code may be accepted later; any other refusal would recur. */
export function isTemporary(code: string): boolean {
  return ['RATE_LIMITED', 'UNAVAILABLE', 'INTERNAL'].includes(code)
}

/**
 * One connection to `GET /api/v1/live` (docs/feeds.md#websocket). Where a network has silently forgotten it, nothing ever
 * closes a socket that only listens, so it sends pings, and ends when one is not answered before the next.
 *
 * @returns `ended` rejects with an error thrown by `onOpen` or `onText`; once it is settled, no more callbacks follow
 */
export function liveSocket(socket: WebSocket, options: LiveSocketOptions) {
  const { onOpen, onText, pingEveryMs = PING_EVERY_MS } = options
  const { promise: ended, resolve, reject } = Promise.withResolvers<Disconnect>()
  let opened = false
  let isOver = false
  let isHeard = false
  const send = (message: object) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const finish = (settle: () => void) => {
    if (isOver) return
    isOver = true
    clearInterval(pings)
    // A closing handshake waits for a service that may be gone. Only browsers insist on it.
    if ('terminate' in socket) (socket as { terminate(): void }).terminate()
    else socket.close()
    settle()
  }
  const end = (reason: string, code = NO_CLOSING_FRAME) => finish(() => resolve({ opened, code, reason }))
  const guarded = async (act: () => void | Promise<void>) => {
    if (isOver) return
    isHeard = true
    try {
      await act()
    } catch (error) {
      finish(() => reject(error))
    }
  }
  const pings = setInterval(() => {
    if (!isHeard) return end(`nothing came for ${pingEveryMs / 1000} s`)
    isHeard = false
    send({ op: 'ping' })
  }, pingEveryMs)
  socket.onopen = () => {
    opened = true
    void guarded(onOpen)
  }
  socket.onmessage = ({ data }) => void guarded(() => onText(data as string))
  socket.onclose = ({ code, reason }) => end(reason || 'the connection was lost', code)
  return { ended, end, send }
}
