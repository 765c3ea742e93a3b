import { CliError } from '../cli/error.ts'
import { CallRefused, CallUnconfirmed } from '../demo/client.ts'
import { type Connection, connect, type Ending, type Timing } from './connection.ts'
import type { Received, ServerMessage, Subscribe } from './protocol.ts'

export interface FollowTiming extends Timing {
  /** The wait after a first failure; it doubles with each that follows. */
  readonly backoffMinMs: number
  readonly backoffMaxMs: number
}

export const TIMING: FollowTiming = {
  pingEveryMs: 15_000,
  silenceMaxMs: 30_000,
  backoffMinMs: 250,
  backoffMaxMs: 10_000,
}

export interface FollowOptions {
  /** Where the service answers, without a slash at the end. */
  readonly url: string
  readonly key: string
  readonly filter: Subscribe['filter']
  readonly maxPerSecond?: number | undefined
  /** Where to begin, asked once the service has let us in; undefined for now. */
  readonly start: () => Promise<string | undefined>
  /** Ends it. */
  readonly signal: AbortSignal
  readonly timing?: FollowTiming
}

export interface Listener {
  /** Each activity once, in order. `skipped`: how many the service left out before them, to keep to the rate. */
  take(items: readonly Received[], skipped: number): void
  /** Null, or what resolves when more can be taken. Until then the feed is left: it is picked up again where it was. */
  full(): Promise<void> | null
  /** What is to be known about the connection. */
  note(text: string): void
}

/** Codes with which the service closes a connection for good. */
const KEY_DEAD = 4001
const FORBIDDEN = 4003
/** Errors that pass by themselves; any other would come again. */
const PASSING = ['RATE_LIMITED', 'UNAVAILABLE', 'INTERNAL']
const EXPLANATION_TIMEOUT_MS = 10_000

/**
 * Follows a live feed for as long as `signal` lets it, over as many connections as that takes: whatever ends one, the
 * next resumes after the last activity that was taken.
 *
 * @throws CliError for what no repeat would change: the key, the filter, an address without feeds
 */
export async function follow(options: FollowOptions, listener: Listener): Promise<void> {
  const { signal } = options
  const aborted = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => aborted.resolve(), { once: true })
  if (!signal.aborted) await Promise.race([new Follower(options, listener).run(), aborted.promise])
}

class Follower {
  /** Everything up to here has been taken. Undefined until the service or `start` has said where we begin. */
  private position: string | undefined
  /** Whether the service has ever taken our subscription. */
  private hasBegun = false
  /** Since when nothing could come; told once an outage, not once an attempt. */
  private isInterrupted = false
  /** Connections in a row that came to nothing. */
  private failures = 0
  /** Set when a connection was ended because no more could be taken. */
  private pause: Promise<void> | null = null

  constructor(
    private readonly options: FollowOptions,
    private readonly listener: Listener,
    private readonly timing = options.timing ?? TIMING,
  ) {}

  async run(): Promise<void> {
    const { signal } = this.options
    while (!signal.aborted) {
      const connection = this.connect()
      const leave = () => connection.end('no longer wanted')
      signal.addEventListener('abort', leave, { once: true })
      const ending = await connection.ended.catch(asEnding)
      signal.removeEventListener('abort', leave)
      if (signal.aborted) return
      if (this.pause === null) await this.comeBack(ending)
      await this.pause
      this.pause = null
    }
  }

  private connect(): Connection {
    const { url, key, filter, maxPerSecond } = this.options
    const connection: Connection = connect({
      address: `${url.replace(/^http/, 'ws')}/api/v1/live`,
      key,
      timing: this.timing,
      subscription: async () => {
        if (!this.hasBegun) this.position = await this.options.start()
        return { filter, max_per_second: maxPerSecond, after: this.position }
      },
      onMessage: (message, items) => this.hear(message, items, connection),
    })
    return connection
  }

  private hear(message: ServerMessage, items: readonly Received[], connection: Connection): void {
    if (message.op === 'activity') {
      this.failures = 0
      this.listener.take(items, message.skipped ?? 0)
      this.position = items.at(-1)?.activity.cursor ?? this.position
      this.pause = this.listener.full()
      if (this.pause !== null) connection.end('enough for now')
    } else if (message.op === 'subscribed') {
      // With a position of ours, this one may be where the feed will be once it has caught up.
      this.position ??= message.cursor
      if (this.isInterrupted) {
        const how = message.recovered ? 'resumed, nothing missed' : 'resumed'
        this.listener.note(this.hasBegun ? how : 'connected')
      }
      this.isInterrupted = false
      this.hasBegun = true
    } else if (message.op === 'gap') {
      this.listener.note(`gap: activities between ${message.after} and ${message.resumed_at} are lost`)
      this.position = message.resumed_at
    } else if (message.op === 'pong') {
      this.failures = 0
    } else if (message.op === 'error') {
      if (!PASSING.includes(message.code)) throw new CliError(`${message.code}: ${message.message}`)
      connection.end(message.message)
    }
  }

  /** Says that the feed was lost, and waits before the next connection. */
  private async comeBack(ending: Ending): Promise<void> {
    if (ending.code === KEY_DEAD) throw new CliError('the key was revoked or expired')
    if (ending.code === FORBIDDEN) throw new CliError(`the service no longer lets this key watch: ${ending.reason}`)
    const { reason, retryAfterMs } = ending.opened ? ending : await this.explain()
    if (!this.isInterrupted)
      this.listener.note(
        this.hasBegun ? `disconnected (${reason}); reconnecting …` : `${reason}; trying again until that changes …`,
      )
    this.isInterrupted = true
    const { backoffMinMs, backoffMaxMs } = this.timing
    const backoff = Math.min(backoffMaxMs, backoffMinMs * 2 ** this.failures++)
    // Half of it is chance, so that all who watched do not come back in the same moment.
    await Bun.sleep(retryAfterMs + backoff * (0.5 + Math.random() / 2))
  }

  /** A WebSocket hides why it was not let in; the same address says so to a request of which the answer can be read. */
  private async explain(): Promise<Pick<Ending, 'reason' | 'retryAfterMs'>> {
    const { url, key } = this.options
    const answer = await ask(`${url}/api/v1/live`, key)
    if (answer === null) return { reason: `no service answers at ${url}`, retryAfterMs: 0 }
    const { status, message, retryAfterMs } = answer
    if (status === 401 || status === 403)
      throw new CliError(`the service at ${url} does not take the key: ${message || status}`)
    if (status === 404) throw new CliError(`there are no live feeds at ${url}: is that the address of the service?`)
    // Whatever would have let us in: what stands between us and the service may not know WebSockets.
    if (status < 429) return { reason: `${url} opened no WebSocket`, retryAfterMs }
    return { reason: message || `status ${status} from ${url}`, retryAfterMs }
  }
}

/** What start could not find out for now ends a connection like anything else that passes. */
function asEnding(error: unknown): Ending {
  if (!(error instanceof CallUnconfirmed)) throw error
  const { cause, message } = error
  return { opened: true, code: 0, reason: cause instanceof CallRefused ? cause.message : message, retryAfterMs: 0 }
}

/** The answer to a handshake that lacks what would make it a WebSocket; null if there is none. */
async function ask(address: string, key: string) {
  try {
    const response = await fetch(address, {
      headers: { authorization: `Bearer ${key}`, upgrade: 'websocket' },
      redirect: 'manual',
      signal: AbortSignal.timeout(EXPLANATION_TIMEOUT_MS),
    })
    const retryAfterMs = Number(response.headers.get('retry-after') ?? 0) * 1000 || 0
    return { status: response.status, message: messageOf(await response.text()), retryAfterMs }
  } catch {
    return null
  }
}

/** The message of an envelope; empty for any other body. */
function messageOf(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: { message?: string } | null }
    return error?.message ?? ''
  } catch {
    return ''
  }
}
