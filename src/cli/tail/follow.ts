import { type Disconnect, isTemporary, liveSocket } from '../../base/http/live-socket.ts'
import { parsedJson } from '../../base/json-object.ts'
import { elements, member } from '../../base/json-parts.ts'
import { NoResponseError, ServiceError } from '../../client/errors.ts'
import type { Client } from '../../client/index.ts'
import type { ActivityItem, FeedMessage } from '../../feeds/live/messages.ts'
import { CliError } from '../shared/error.ts'
import { keyRejected } from '../shared/failures.ts'

/** An activity with its original text. */
export interface Received {
  readonly activity: ActivityItem
  readonly json: string
}

export interface FollowTiming {
  /** A connection on which nothing comes for this long is lost. */
  readonly pingEveryMs: number
  /** The wait after the first failure; it doubles with each further failure. */
  readonly backoffMinMs: number
  readonly backoffMaxMs: number
}

const TIMING: FollowTiming = {
  pingEveryMs: 15_000,
  backoffMinMs: 250,
  backoffMaxMs: 10_000,
}

interface FollowOptions {
  /** Base URL of the service, without a trailing slash. */
  readonly url: string
  readonly key: string
  readonly client: Pick<Client, 'send'>
  /** What to subscribe to. */
  readonly wanted: { readonly filter: object; readonly max_per_second?: number | undefined }
  /** The cursor to start after, called once the connection is open; undefined for new activity only. */
  readonly start: () => Promise<string | undefined>
  /** Ends the tail. */
  readonly signal: AbortSignal
  readonly timing?: FollowTiming
  /** Called with each activity once, in order. `skipped`: how many the service skipped to stay within the rate. */
  readonly take: (items: readonly Received[], skipped: number) => void
  /** Null, or a promise that resolves when there is room again. Until then the feed is disconnected; it resumes afterwards. */
  readonly full: () => Promise<void> | null
  /** Called with messages about the connection. */
  readonly note: (text: string) => void
}

interface Disconnection extends Disconnect {
  /** How long the service asks clients to wait before reconnecting. */
  readonly retryAfterMs: number
}

/** Close codes after which reconnecting is pointless. */
const KEY_INVALID = 4001
const FORBIDDEN = 4003
const EXPLANATION_TIMEOUT_MS = 10_000

/** Bun's WebSocket can send headers; the types in scope are those of browsers, for the dashboard. */
const BunWebSocket = WebSocket as unknown as new (address: string, options: Bun.WebSocketOptions) => WebSocket

/**
 * Follows a live feed until `signal` aborts. It reconnects as often as needed, and each connection resumes after the last
 * activity received.
 *
 * @throws CliError for permanent errors: the key, the filter, a URL without feeds
 */
export async function follow(options: FollowOptions): Promise<void> {
  const { signal } = options
  const aborted = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => aborted.resolve(), { once: true })
  if (!signal.aborted) await Promise.race([new Follower(options).run(), aborted.promise])
}

class Follower {
  /** Everything up to here has been received. Undefined until `start` or the service has given a start position. */
  private position: string | undefined
  /** Whether the service has ever accepted the subscription. */
  private hasBegun = false
  /** Whether the feed is interrupted; reported once per outage, not per attempt. */
  private isInterrupted = false
  /** Consecutive connections without any activity or pong. */
  private failures = 0
  /** Set when a connection was ended because the output was full. */
  private pause: Promise<void> | null = null

  constructor(
    private readonly options: FollowOptions,
    private readonly timing = options.timing ?? TIMING,
  ) {}

  async run(): Promise<void> {
    const { signal } = this.options
    while (!signal.aborted) {
      const disconnect = await this.listen().catch(toDisconnect)
      if (signal.aborted) return
      if (this.pause === null) await this.waitToReconnect(disconnect)
      await this.pause
      this.pause = null
    }
  }

  /** One connection, with one subscription. */
  private async listen(): Promise<Disconnection> {
    const { signal, url, key, wanted, start } = this.options
    let closing: { reason?: string; retryAfterMs: number } = { retryAfterMs: 0 }
    const headers = { authorization: `Bearer ${key}` }
    const connection = liveSocket(new BunWebSocket(`${url.replace(/^http/, 'ws')}/api/v1/live`, { headers }), {
      pingEveryMs: this.timing.pingEveryMs,
      onOpen: async () => {
        if (!this.hasBegun) this.position = await start()
        connection.send({ op: 'subscribe', id: 'tail', ...wanted, after: this.position })
      },
      onText: (text) => {
        const message = parsedJson(text) as FeedMessage | undefined
        if (message === undefined) connection.end('the service sent something that is not JSON')
        else if (message.op === 'closing')
          closing = { reason: message.reason, retryAfterMs: message.reconnect_after_ms }
        else this.handle(message, text, connection.end)
      },
    })
    const close = () => connection.end('stopped')
    signal.addEventListener('abort', close, { once: true })
    const disconnect = await connection.ended.finally(() => signal.removeEventListener('abort', close))
    return { ...disconnect, ...closing }
  }

  private handle(message: FeedMessage, text: string, end: (reason: string) => void): void {
    const { take, full, note } = this.options
    if (message.op === 'activity') {
      this.failures = 0
      take(withText(message.items, text), message.skipped ?? 0)
      this.position = message.items.at(-1)?.cursor ?? this.position
      this.pause = full()
      if (this.pause !== null) end('the output is full')
    } else if (message.op === 'subscribed') {
      // Keeps an existing position: the one in the message may be ahead of what has been received.
      this.position ??= message.cursor
      const how = message.recovered ? 'resumed, nothing missed' : 'resumed'
      if (this.isInterrupted) note(this.hasBegun ? how : 'connected')
      this.isInterrupted = false
      this.hasBegun = true
    } else if (message.op === 'gap') {
      note(`gap: activities between ${message.after} and ${message.resumed_at} are lost`)
      this.position = message.resumed_at
    } else if (message.op === 'pong') {
      this.failures = 0
    } else if (message.op === 'error') {
      if (!isTemporary(message.code)) throw new CliError(`${message.code}: ${message.message}`)
      end(message.message)
    }
  }

  /** Reports that the feed was lost, and waits before the next connection. */
  private async waitToReconnect(disconnect: Disconnection): Promise<void> {
    if (disconnect.code === KEY_INVALID) throw new CliError('the key was revoked or expired')
    if (disconnect.code === FORBIDDEN) throw new CliError(`the key may no longer use this feed: ${disconnect.reason}`)
    const { reason, retryAfterMs } = disconnect.opened ? disconnect : await this.explain()
    if (!this.isInterrupted)
      this.options.note(this.hasBegun ? `disconnected (${reason}); reconnecting …` : `${reason}; retrying …`)
    this.isInterrupted = true
    const { backoffMinMs, backoffMaxMs } = this.timing
    const backoff = Math.min(backoffMaxMs, backoffMinMs * 2 ** this.failures++)
    // Half of the wait is random, so that clients do not all reconnect at the same moment.
    await Bun.sleep(retryAfterMs + backoff * (0.5 + Math.random() / 2))
  }

  /** A WebSocket client cannot read why a handshake failed, so a plain request to the same URL finds out. */
  private async explain(): Promise<Pick<Disconnection, 'reason' | 'retryAfterMs'>> {
    const { url, client } = this.options
    const signal = AbortSignal.timeout(EXPLANATION_TIMEOUT_MS)
    const call = { path: '/api/v1/live', headers: { upgrade: 'websocket' }, signal }
    const refusal: unknown = await client.send(call).catch((error) => error)
    if (refusal instanceof Response) return { reason: `${url} opened no WebSocket`, retryAfterMs: 0 }
    if (!(refusal instanceof ServiceError)) return { reason: `no service responds at ${url}`, retryAfterMs: 0 }
    const { status, detail, retryAfterMs = 0 } = refusal
    if (status === 401 || status === 403) throw keyRejected(url, refusal)
    if (status === 404) throw new CliError(`there are no live feeds at ${url}: is it the URL of the service?`)
    // The request itself was acceptable: a proxy in between may not support WebSockets.
    if (status < 429) return { reason: `${url} opened no WebSocket`, retryAfterMs }
    return { reason: detail || `status ${status} from ${url}`, retryAfterMs }
  }
}

/** A temporary failure of `start` ends a connection like any other temporary error. */
function toDisconnect(error: unknown): Disconnection {
  if (!(error instanceof NoResponseError)) throw error
  const { cause, message } = error
  return { opened: true, code: 0, reason: cause instanceof ServiceError ? cause.message : message, retryAfterMs: 0 }
}

function withText(items: readonly ActivityItem[], message: string): Received[] {
  const texts = elements(member(message, 'items') ?? '[]')
  return items.map((activity, index) => ({ activity, json: texts[index] ?? '' }))
}
