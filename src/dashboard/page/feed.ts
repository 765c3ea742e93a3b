import type { Api } from './api.ts'
import { parseIntact } from './json.ts'

/** An activity as feeds carry it. */
export interface Activity {
  readonly cursor: string
  readonly kind: 'event' | 'task' | 'run'
  readonly agent_id: string
  readonly run_id: string
  readonly received_at: string
  readonly event?: { readonly type: string; readonly level: string; readonly payload: unknown }
  readonly task?: { readonly name: string; readonly status: string; readonly error_message: string | null }
  readonly run?: { readonly status: string; readonly error_message: string | null }
}

export interface FeedHandlers {
  /** `skipped` of them were left out, because there are more than anybody reads. */
  readonly onActivities: (items: readonly Activity[], skipped: number) => void
  /** What came between the last activity and the next is lost. */
  readonly onGap: () => void
  readonly onState: (isConnected: boolean) => void
}

export interface Feed {
  /** Begins anew with what happens from now on. */
  filter(filter: object): void
}

const MAX_PER_SECOND = 50
const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 10_000

/** The activity of the workspace over a WebSocket that comes back by itself, where it was; until `signal` aborts. */
export function openFeed(api: Api, signal: AbortSignal, handlers: FeedHandlers): Feed {
  let filter: object = {}
  let after: string | undefined
  let socket: WebSocket | undefined
  let retryMs = RETRY_MS_MIN
  /** Another filter is another subscription: what still comes for the one before is not shown. */
  let generation = 0

  async function connect(): Promise<void> {
    if (signal.aborted) return
    try {
      // A browser can send no key with a WebSocket.
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
    socket.addEventListener('message', ({ data }) => take(parseIntact(data as string) as ServerMessage))
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

  function take(message: ServerMessage): void {
    if (message.id !== String(generation)) return
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

type ServerMessage = { readonly id?: string } & (
  | { readonly op: 'subscribed'; readonly cursor: string }
  | { readonly op: 'activity'; readonly items: readonly Activity[]; readonly skipped?: number }
  | { readonly op: 'gap' | 'error' | 'pong' | 'closing' }
)
