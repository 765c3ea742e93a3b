import type { Server, ServerWebSocket } from 'bun'
import { definedOf } from '../../base/defined.ts'
import { ApiError } from '../../base/errors.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import type { Caller, FeedCaller } from '../../tenants/keys/schema.ts'
import type { Subscription } from './channel.ts'
import type { CloseReason, Connection, Connections } from './connections.ts'
import { type FeedSource, startOf } from './feed-source.ts'
import { parseFilter } from './filter.ts'
import type { ServerMessage } from './message-schema.ts'
import { type ClientMessage, type Received, readMessage, type Subscribe } from './messages.ts'
import type { Outlet, Packet, Sharing } from './packet.ts'
import { Throttle } from './throttle.ts'

export interface WebSocketDeps {
  readonly source: FeedSource
  readonly connections: Connections
  /** Counts one request against the key's rate limit. @throws ApiError RATE_LIMITED */
  readonly takeBudget: (caller: Caller) => void
  /** A connection is closed when its queue has been full for this long. */
  readonly slowConsumerMs: number
}

/** Bytes that the kernel has not accepted yet. Above the first limit the queue is full; below the second it has room again. */
const QUEUE_BYTES = 64 * 1024
const QUEUE_BYTES_LOW = QUEUE_BYTES / 4
/** A client that sends messages but does not read the replies is disconnected at this limit. */
const UNREAD_BYTES_MAX = 1024 * 1024
const SUBSCRIPTIONS_MAX = 100
/** Received messages that wait for the log. */
const UNHANDLED_MAX = 1_000
/** Reconnects are spread over this time, so that clients do not all return at once. */
const RECONNECT_SPREAD_MS = 2_000
const RECONNECT_MIN_MS = 250

const CLOSE_CODE: Record<CloseReason, number> = {
  key_invalid: 4001,
  forbidden: 4003,
  slow_consumer: 4008,
  unavailable: 1013,
  shutdown: 1001,
}

/**
 * One WebSocket of `GET /api/v1/live` with its subscriptions (docs/feeds.md#websocket). Bun calls `open`,
 * `message`, `drain` and `close`.
 *
 * Messages shared by many sockets use Bun's `publish`, one shard at a time: `send` encodes the text as UTF-8 again for each
 * socket (1.6 µs for 18 KB of non-ASCII text, next to 8 µs for the system call). Bun buffers small published messages until
 * the end of the tick and sends them before anything sent to the socket itself.
 */
export class WebSocketConnection implements Connection {
  private socket: ServerWebSocket<unknown> | undefined
  private releaseSource: (() => void) | undefined
  private readonly subscriptions = new Map<string, SocketSubscription>()
  /** Since when the queue is full and the client takes nothing, on the monotonic clock; 0 while there is room. */
  private fullSinceMs = 0
  private isEnded = false
  /** Messages are handled in order. */
  private handled: Promise<void> = Promise.resolve()
  private unhandled = 0

  constructor(
    private readonly deps: WebSocketDeps,
    readonly caller: FeedCaller,
    /** The server that opened it: topics belong to a server. */
    readonly server: Pick<Server<unknown>, 'publish' | 'url'>,
  ) {}

  open(socket: ServerWebSocket<unknown>): void {
    this.socket = socket
    this.releaseSource = this.deps.source.retain(() => this.end('unavailable'))
    this.deps.connections.add(this)
  }

  message(_socket: ServerWebSocket<unknown>, sent: string | Buffer): void {
    if (this.isEnded) return
    if (!this.deps.source.mayLag) this.receive(readMessage(sent))
    else if (++this.unhandled > UNHANDLED_MAX) this.end('slow_consumer')
    else {
      const received = readMessage(sent)
      this.handled = this.handled.then(() => this.receiveCurrent(received))
    }
  }

  /** Handles a message once the log is known up to its end: a cursor may come from another node. */
  private async receiveCurrent(received: Received): Promise<void> {
    try {
      await this.deps.source.refresh(afterOf(received))
    } catch {
      return this.end('unavailable')
    }
    this.unhandled--
    this.receive(received)
  }

  private receive(received: Received): void {
    if (this.isEnded) return
    try {
      if ('error' in received) throw received.error
      this.handle(received.message)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { code, reason, param } = error
      this.send({ op: 'error', ...definedOf({ id: idOf(received), code, message: error.message, reason, param }) })
    }
    if (this.queuedBytes > UNREAD_BYTES_MAX) this.end('slow_consumer')
  }

  drain(): void {
    if (this.fullSinceMs === 0 || this.queuedBytes > QUEUE_BYTES_LOW) return
    this.fullSinceMs = 0
    for (const { subscription } of this.subscriptions.values()) this.deps.source.hub.resume(subscription)
  }

  close(): void {
    this.release()
  }

  end(reason: CloseReason): void {
    const { socket } = this
    if (this.isEnded || socket === undefined) return
    if (reason !== 'key_invalid' && reason !== 'forbidden') this.send(this.closing(reason))
    this.release()
    // Bun drops a client that has not read this, and everything queued before it, after about 15 s.
    socket.close(CLOSE_CODE[reason], reason)
  }

  tick(now: number): void {
    if (this.isFull) this.flush(now)
    if (this.isFull && now - this.fullSinceMs > this.deps.slowConsumerMs) this.end('slow_consumer')
    else for (const subscription of this.subscriptions.values()) subscription.reportSkipped()
  }

  /**
   * Writes as much of the queue as the kernel takes. Linux reports room only when a third of its buffer is free, for which a
   * client that reads 50 KB a second needs half a minute. Sending anything makes Bun try at once.
   */
  private flush(now: number): void {
    const { queuedBytes } = this
    this.socket?.ping()
    if (this.queuedBytes < queuedBytes) this.fullSinceMs = now
    this.drain()
  }

  /** Sends text even if the queue is full. */
  transmit(text: string): void {
    // -1: the message was queued.
    if (this.socket?.send(text) === -1) this.sent()
  }

  /** Called after sending: notes the time if the queue is full now. */
  sent(): void {
    if (this.fullSinceMs === 0 && this.queuedBytes > QUEUE_BYTES) this.fullSinceMs = performance.now()
  }

  enter(topic: string): void {
    this.socket?.subscribe(topic)
  }

  exit(topic: string): void {
    this.socket?.unsubscribe(topic)
  }

  send(message: ServerMessage): void {
    this.transmit(JSON.stringify(message))
  }

  get isFull(): boolean {
    return this.fullSinceMs !== 0
  }

  unsubscribe(subscription: SocketSubscription): void {
    this.subscriptions.delete(subscription.id)
    this.deps.source.hub.unsubscribe(subscription.subscription)
  }

  get queuedBytes(): number {
    return this.socket?.getBufferedAmount() ?? 0
  }

  private handle(message: ClientMessage): void {
    if (message.op === 'ping') this.send({ op: 'pong' })
    else if (message.op === 'subscribe') this.subscribe(message)
    else {
      const subscription = this.subscriptions.get(message.id)
      if (subscription === undefined)
        throw new ApiError('NOT_FOUND', 'id: there is no subscription with this id', { param: 'id' })
      this.unsubscribe(subscription)
    }
  }

  private subscribe({ id, filter: input, after, maxPerSecond }: Subscribe): void {
    const { source, takeBudget } = this.deps
    const { hub, journal } = source
    const { caller } = this.caller
    takeBudget(caller)
    const filter = parseFilter(input, 'filter', this.caller)
    const start = startOf(source, caller.workspaceId, after, 'after')
    if (this.subscriptions.has(id))
      throw new ApiError('CONFLICT', 'id: a subscription with this id already exists', {
        reason: 'id_taken',
        param: 'id',
      })
    if (this.subscriptions.size >= SUBSCRIPTIONS_MAX)
      throw new ApiError(
        'CONFLICT',
        `a connection may have at most ${SUBSCRIPTIONS_MAX} subscriptions; filters accept lists of values`,
        { reason: 'limit_reached' },
      )
    const outlet = new SocketSubscription(this, id, maxPerSecond, journal.epoch)
    const { workspaceId } = caller
    outlet.subscription = hub.subscribe({ workspaceId, filter, afterSeq: start.afterSeq, outlet })
    this.subscriptions.set(id, outlet)
    const cursor = encodeCursor(journal.epoch, start.afterSeq)
    this.send({ op: 'subscribed', id, cursor, recovered: after !== undefined && !start.isLost })
    if (start.isLost) this.send({ op: 'gap', id, after: after ?? '0', resumed_at: cursor })
  }

  private closing(reason: CloseReason): ServerMessage {
    const { hub, journal } = this.deps.source
    const all = [...this.subscriptions.values()]
    const positions = all.map(({ subscription }) => hub.positionOf(subscription))
    return {
      op: 'closing',
      reason,
      reconnect_after_ms: Math.round(RECONNECT_MIN_MS + Math.random() * RECONNECT_SPREAD_MS),
      ...(all.length > 0 && {
        cursor: encodeCursor(journal.epoch, Math.min(...positions)),
        cursors: Object.fromEntries(all.map(({ id }, index) => [id, encodeCursor(journal.epoch, positions[index])])),
      }),
    }
  }

  private release(): void {
    this.isEnded = true
    for (const { subscription } of this.subscriptions.values()) this.deps.source.hub.unsubscribe(subscription)
    this.subscriptions.clear()
    this.releaseSource?.()
    this.deps.connections.remove(this)
  }
}

/** A subscription on a WebSocket: adds its id to messages, and limits their rate if requested. */
class SocketSubscription implements Outlet, Sharing {
  /** Set right after construction: the hub needs this outlet to create the subscription. */
  subscription!: Subscription
  readonly key: string
  readonly sharing: Sharing | undefined
  /** The id, encoded once for all messages. */
  private readonly jsonId: string
  private readonly throttle: Throttle | undefined

  constructor(
    readonly connection: WebSocketConnection,
    readonly id: string,
    maxPerSecond: number | undefined,
    private readonly epoch: string,
  ) {
    this.jsonId = JSON.stringify(id)
    this.key = `${connection.server.url.href} ${this.jsonId}`
    if (maxPerSecond === undefined) this.sharing = this
    else this.throttle = new Throttle(maxPerSecond)
  }

  publish(topic: string, packet: Packet): void {
    this.connection.server.publish(topic, packet.webSocketMessage(this.jsonId))
  }

  send(packet: Packet): boolean {
    if (this.connection.isFull) return false
    if (this.throttle === undefined) this.connection.transmit(packet.webSocketMessage(this.jsonId))
    else this.sendThrottled(packet, this.throttle)
    return true
  }

  gap(afterSeq: number, resumedSeq: number): void {
    const { id, epoch } = this
    this.connection.send({
      op: 'gap',
      id,
      after: encodeCursor(epoch, afterSeq),
      resumed_at: encodeCursor(epoch, resumedSeq),
    })
  }

  caughtUp(): void {}

  failed({ code, message }: ApiError): void {
    this.connection.unsubscribe(this)
    this.connection.send({ op: 'error', id: this.id, code, message })
  }

  /** Reports skipped activities even if no further activity follows. */
  reportSkipped(): void {
    const skipped = this.throttle?.takeSkipped() ?? 0
    if (skipped > 0) this.connection.transmit(activityMessage(this.jsonId, '', skipped))
  }

  private sendThrottled(packet: Packet, throttle: Throttle): void {
    const items = throttle.pass(packet.items, performance.now())
    if (items.length === 0) return
    const texts = items.map(({ text }) => text).join()
    this.connection.transmit(activityMessage(this.jsonId, texts, throttle.takeSkipped()))
  }
}

function activityMessage(jsonId: string, items: string, skipped: number): string {
  return `{"op":"activity","id":${jsonId},"items":[${items}]${skipped > 0 ? `,"skipped":${skipped}` : ''}}`
}

function afterOf(received: Received): string | undefined {
  return 'message' in received && received.message.op === 'subscribe' ? received.message.after : undefined
}

function idOf(received: Received): string | undefined {
  if ('error' in received) return received.id
  return received.message.op === 'ping' ? undefined : received.message.id
}
