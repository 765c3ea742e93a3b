import type { ActivityItem, FeedMessage } from '../../live/wire.ts'
import type { Api } from './api.ts'
import { parseIntact } from './json.ts'

export interface FeedHandlers {
  /** `skipped`: how many the service left out to stay within the rate. */
  readonly onActivities: (items: readonly ActivityItem[], skipped: number) => void
  /** Activity between the last one and the next is lost. */
  readonly onGap: () => void
  readonly onState: (isConnected: boolean) => void
}

export interface Feed {
  /** Starts over with new activity only. */
  filter(filter: object): void
}

const MAX_PER_SECOND = 50
const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 10_000

/** Follows the workspace's activity on a WebSocket, which reconnects and resumes by itself until `signal` aborts. */
export function openFeed(api: Api, signal: AbortSignal, handlers: FeedHandlers): Feed {
  let filter: object = {}
  let after: string | undefined
  let socket: WebSocket | undefined
  let retryMs = RETRY_MS_MIN
  /** Each filter is a new subscription; late messages of earlier ones are ignored. */
  let generation = 0

  async function connect(): Promise<void> {
    if (signal.aborted) return
    try {
      // Browsers cannot send headers with a WebSocket.
      const { token } = await api.post<{ token: string }>('/api/v1/feed-tokens', {})
      if (signal.aborted) return
      const address = new URL(`/api/v1/live?token=${token}`, location.href)
      address.protocol = address.protocol.replace('http', 'ws')
      socket = new WebSocket(address)
    } catch {
      retry()
      return
    }
    socket.addEventListener('open', () => {
      retryMs = RETRY_MS_MIN
      handlers.onState(true)
      subscribe()
    })
    socket.addEventListener('message', ({ data }) => take(parseIntact(data as string) as FeedMessage))
    socket.addEventListener('close', retry)
  }

  function retry(): void {
    socket = undefined
    if (signal.aborted) return
    handlers.onState(false)
    setTimeout(() => void connect(), retryMs)
    retryMs = Math.min(RETRY_MS_MAX, retryMs * 2)
  }

  function subscribe(): void {
    say({ op: 'subscribe', id: String(generation), filter, after, max_per_second: MAX_PER_SECOND })
  }

  function say(message: object): void {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }

  function take(message: FeedMessage): void {
    if (!('id' in message) || message.id !== String(generation)) return
    if (message.op === 'subscribed') after ??= message.cursor
    if (message.op === 'gap') handlers.onGap()
    if (message.op !== 'activity') return
    after = message.items.at(-1)?.cursor ?? after
    handlers.onActivities(message.items, message.skipped ?? 0)
  }

  signal.addEventListener('abort', () => socket?.close())
  void connect()
  return {
    filter(wanted) {
      say({ op: 'unsubscribe', id: String(generation) })
      generation++
      filter = wanted
      after = undefined
      subscribe()
    },
  }
}
