import { signal as state } from '@preact/signals'
import { isTemporary, liveSocket } from '../../../base/http/live-socket.ts'
import { parseIntact } from '../../../base/intact-json.ts'
import { type Api, ApiFailure } from './api.ts'
import type { Activity } from './records.ts'

interface FeedHandlers {
  /** The service has accepted the subscription: everything from now on will arrive, also after interruptions. */
  readonly onStart?: (() => void) | undefined
  /** `skipped`: how many the service left out to stay within `maxPerSecond`. */
  readonly onItems: (items: readonly Activity[], skipped: number) => void
  /** Activity between the last item and the next is lost. */
  readonly onGap?: () => void
}

interface FeedOptions {
  /** Resume after this cursor; without it, only new activity. */
  readonly after?: string | undefined
  readonly maxPerSecond?: number
}

export interface Subscription {
  /** Everything up to here has been received; undefined until the service has answered. */
  cursor(): string | undefined
  stop(): void
}

type Message =
  | { readonly op: 'subscribed'; readonly id: string; readonly cursor: string }
  | { readonly op: 'activity'; readonly id: string; readonly items: readonly Activity[]; readonly skipped?: number }
  | { readonly op: 'gap'; readonly id: string }
  | { readonly op: 'closing'; readonly reconnect_after_ms: number; readonly cursors?: Readonly<Record<string, string>> }
  | { readonly op: 'error'; readonly id: string; readonly code: string }
  | { readonly op: 'pong' }

interface FeedSettings {
  /** The address of the page. */
  readonly page?: string
  /** See {@link liveSocket}. */
  readonly pingEveryMs?: number
  readonly askAgainMs?: number
}

interface OpenSubscription extends FeedOptions {
  readonly filter: object
  readonly handlers: FeedHandlers
  cursor: string | undefined
  /** The service has accepted it, on this connection or an earlier one. */
  isStarted: boolean
}

const RETRY_MS_MIN = 400
const RETRY_MS_MAX = 10_000
/** A subscription that the service refuses for now is asked for again after this. */
const ASK_AGAIN_MS = 5_000
/** How long the feed token of a key lasts. The connection ends with it, and resumes with a new one. */
const TOKEN_SECONDS = 3_600

/**
 * The workspace's activity: one WebSocket for all subscriptions of the page. It reconnects by itself until `signal` aborts,
 * and resumes each subscription after the last item that it received, so nothing is lost in between.
 */
export class Feed {
  readonly isConnected = state(false)
  private readonly subscriptions = new Map<string, OpenSubscription>()
  private connection: ReturnType<typeof liveSocket> | undefined
  private retryMs = RETRY_MS_MIN
  private lastId = 0

  constructor(
    private readonly api: Api,
    private readonly signal: AbortSignal,
    private readonly options: FeedSettings = {},
  ) {
    signal.addEventListener('abort', () => this.connection?.end('left'))
    void this.connect()
  }

  subscribe(filter: object, handlers: FeedHandlers, options: FeedOptions = {}): Subscription {
    const id = String(++this.lastId)
    const subscription: OpenSubscription = { filter, handlers, ...options, cursor: options.after, isStarted: false }
    this.subscriptions.set(id, subscription)
    this.request(id, subscription)
    return {
      cursor: () => subscription.cursor,
      stop: () => {
        if (this.subscriptions.delete(id)) this.send({ op: 'unsubscribe', id })
      },
    }
  }

  private async connect(): Promise<void> {
    if (this.signal.aborted) return
    try {
      const query = await this.admission()
      if (this.signal.aborted) return
      const address = new URL(`/api/v1/live${query}`, this.options.page ?? location.href)
      address.protocol = address.protocol.replace('http', 'ws')
      await this.listen(new WebSocket(address))
      this.retry()
    } catch (error) {
      // A spent budget has room when the service says so; the page's reads wait no longer either, and would take it.
      this.retry(error instanceof ApiFailure ? error.retryAfterSeconds * 1_000 : 0)
    }
  }

  /** Browsers cannot send headers with a WebSocket: a key needs a token in the URL. Of a person they send the cookie. */
  private async admission(): Promise<string> {
    if (this.api.isPerson) {
      // A WebSocket that is refused does not say why.
      await this.api.once('GET', '/api/v1/people?limit=1')
      return ''
    }
    const { token } = await this.api.post<{ token: string }>('/api/v1/feed-tokens', { ttl_seconds: TOKEN_SECONDS })
    return `?token=${token}`
  }

  private async listen(socket: WebSocket): Promise<void> {
    const { pingEveryMs } = this.options
    this.connection = liveSocket(socket, {
      ...(pingEveryMs !== undefined && { pingEveryMs }),
      onOpen: () => {
        this.retryMs = RETRY_MS_MIN
        this.isConnected.value = true
        for (const [id, subscription] of this.subscriptions) this.request(id, subscription)
      },
      onText: (text) => this.take(parseIntact(text) as Message),
    })
    await this.connection.ended
  }

  /** @param afterMs 0: each wait is twice as long as the one before */
  private retry(afterMs = 0): void {
    this.connection = undefined
    this.isConnected.value = false
    if (this.signal.aborted) return
    setTimeout(() => void this.connect(), afterMs || this.retryMs)
    if (afterMs === 0) this.retryMs = Math.min(RETRY_MS_MAX, this.retryMs * 2)
  }

  private request(id: string, { filter, cursor, maxPerSecond }: OpenSubscription): void {
    this.send({ op: 'subscribe', id, filter, after: cursor, max_per_second: maxPerSecond })
  }

  private send(message: object): void {
    this.connection?.send(message)
  }

  private take(message: Message): void {
    if (message.op === 'closing') {
      this.retryMs = Math.max(RETRY_MS_MIN, message.reconnect_after_ms)
      for (const [id, cursor] of Object.entries(message.cursors ?? {})) {
        const subscription = this.subscriptions.get(id)
        if (subscription !== undefined) subscription.cursor = cursor
      }
    }
    if (!('id' in message)) return
    const subscription = this.subscriptions.get(message.id)
    if (subscription === undefined) return
    if (message.op === 'subscribed') {
      subscription.cursor ??= message.cursor
      if (!subscription.isStarted) subscription.handlers.onStart?.()
      subscription.isStarted = true
    }
    if (message.op === 'error' && isTemporary(message.code)) this.askAgain(message.id, subscription)
    if (message.op === 'gap') subscription.handlers.onGap?.()
    if (message.op !== 'activity') return
    subscription.cursor = message.items.at(-1)?.cursor ?? subscription.cursor
    subscription.handlers.onItems(message.items, message.skipped ?? 0)
  }

  /** Asks for a subscription again on the same connection; a new one asks for all. */
  private askAgain(id: string, subscription: OpenSubscription): void {
    const { connection } = this
    setTimeout(() => {
      if (this.connection === connection && this.subscriptions.has(id)) this.request(id, subscription)
    }, this.options.askAgainMs ?? ASK_AGAIN_MS)
  }
}
