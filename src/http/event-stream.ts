/** Most bytes that may wait for a client; past this the stream is full. */
const QUEUE_BYTES = 64 * 1024
const ENCODER = new TextEncoder()

/** What a {@link BoundedEventStream} calls back. */
interface EventStreamOwner {
  /** The stream was full and has room again. */
  drained(): void
  /** The stream is over: the client left, or one of the methods below ended it. Called once. */
  ended(): void
  /** Text that keeps an idle connection open. */
  heartbeat(): string
}

export interface EventStreamLimits {
  /** How long the queue may stay full before the client is cut off. */
  readonly slowConsumerMs: number
  /** A heartbeat is sent this long after the last write. */
  readonly heartbeatMs: number
}

/**
 * The sending side of one server-sent-event response: a queue with a limit, heartbeats, and an end. The owner decides
 * what to write and writes nothing more while {@link isFull}; a client that does not read for too long is cut off.
 */
export class BoundedEventStream {
  readonly body: ReadableStream<Uint8Array>
  private controller!: ReadableStreamDefaultController<Uint8Array>
  private isOver = false
  /** On the monotonic clock, like `fullSinceMs`. */
  private lastSentMs = performance.now()
  /** 0 while there is room. */
  private fullSinceMs = 0

  constructor(
    private readonly owner: EventStreamOwner,
    private readonly limits: EventStreamLimits,
  ) {
    this.body = new ReadableStream(
      {
        start: (controller) => {
          this.controller = controller
        },
        pull: () => this.drained(),
        cancel: () => void this.release(),
      },
      { highWaterMark: QUEUE_BYTES, size: (chunk) => chunk?.length ?? 0 },
    )
  }

  get isEnded(): boolean {
    return this.isOver
  }

  get isFull(): boolean {
    return this.fullSinceMs !== 0
  }

  get queuedBytes(): number {
    return QUEUE_BYTES - (this.controller.desiredSize ?? QUEUE_BYTES)
  }

  /** Queues text or UTF-8 bytes, even when full. Does nothing after the end. */
  write(data: string | Uint8Array): void {
    if (this.isOver) return
    this.controller.enqueue(typeof data === 'string' ? ENCODER.encode(data) : data)
    this.lastSentMs = performance.now()
    if ((this.controller.desiredSize ?? 0) <= 0 && !this.isFull) this.fullSinceMs = this.lastSentMs
  }

  /** Called about once a second, `now` on the monotonic clock. */
  tick(now: number): void {
    if (this.isFull) {
      if (now - this.fullSinceMs > this.limits.slowConsumerMs) this.cut()
    } else if (now - this.lastSentMs > this.limits.heartbeatMs) this.write(this.owner.heartbeat())
  }

  /** Ends the response after what is queued. */
  close(): void {
    if (this.release()) this.controller.close()
  }

  /** Aborts the response and discards the queue, because the client may never read it. */
  cut(error: unknown = new Error('the client does not read')): void {
    if (this.release()) this.controller.error(error)
  }

  private drained(): void {
    // `pull` also runs inside `write` when a read is already waiting.
    if (!this.isFull || (this.controller.desiredSize ?? 0) <= 0) return
    this.fullSinceMs = 0
    this.owner.drained()
  }

  /** @returns false when the stream was over already */
  private release(): boolean {
    if (this.isOver) return false
    this.isOver = true
    this.owner.ended()
    return true
  }
}

/** The response that carries an event stream. */
export function eventStreamResponse(body: ReadableStream<Uint8Array>, headers: Record<string, string> = {}): Response {
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      // Without it, proxies that buffer responses would hold events back.
      'x-accel-buffering': 'no',
      ...headers,
    },
  })
}
