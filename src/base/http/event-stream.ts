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
 *
 * It is a direct stream of Bun: bytes go straight to the socket, which queues what the kernel does not accept. A standard
 * `ReadableStream` takes twice the CPU time for each chunk, because its queue allocates promises.
 */
export class BoundedEventStream {
  readonly body: ReadableStream<Uint8Array>
  /** Undefined until the response is being sent. */
  private controller: ReadableStreamDirectController | undefined
  /** What was written before that. */
  private early: Uint8Array<ArrayBuffer>[] = []
  private cutBy: Error | undefined
  /** Settles once the socket has sent what it queued. */
  private draining: Promise<unknown> | undefined
  private queued = 0
  private isOver = false
  /** On the monotonic clock, like `fullSinceMs`. */
  private lastSentMs = performance.now()
  /** 0 while there is room. */
  private fullSinceMs = 0

  constructor(
    private readonly owner: EventStreamOwner,
    private readonly limits: EventStreamLimits,
  ) {
    const source: Bun.DirectUnderlyingSource = {
      type: 'direct',
      pull: (controller) => this.begin(controller),
      cancel: () => void this.release(),
    }
    // The types of `ReadableStream` only know standard sources.
    this.body = new ReadableStream(source as object)
  }

  get isEnded(): boolean {
    return this.isOver
  }

  get isFull(): boolean {
    return this.fullSinceMs !== 0
  }

  /** At most this many bytes wait in this process: what was written since the kernel last accepted everything. */
  get queuedBytes(): number {
    return this.queued
  }

  /** Sends text or UTF-8 bytes, which must not change afterwards; queues them even when full. Does nothing after the end. */
  write(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.isOver) return
    const bytes = typeof data === 'string' ? ENCODER.encode(data) : data
    this.lastSentMs = performance.now()
    if (this.controller !== undefined) this.pass(this.controller, bytes)
    else {
      this.early.push(bytes)
      this.count(bytes)
    }
  }

  /** Called about once a second, `now` on the monotonic clock. */
  tick(now: number): void {
    if (this.isFull) {
      if (now - this.fullSinceMs > this.limits.slowConsumerMs) this.cut()
    } else if (now - this.lastSentMs > this.limits.heartbeatMs) this.write(this.owner.heartbeat())
  }

  /** Ends the response after what is queued. */
  close(): void {
    if (this.release()) this.controller?.close()
  }

  /** Aborts the response and discards the queue, because the client may never read it. */
  cut(reason: unknown = new Error('the client does not read')): void {
    if (!this.release()) return
    this.cutBy = reason instanceof Error ? reason : new Error(String(reason))
    this.controller?.close(this.cutBy)
  }

  /** The response is being sent: Bun calls this once. */
  private begin(controller: ReadableStreamDirectController): void {
    const { early, cutBy } = this
    this.controller = controller
    this.early = []
    this.queued = 0
    if (cutBy === undefined) for (const bytes of early) this.pass(controller, bytes)
    if (this.isOver) controller.close(cutBy)
    else if (this.draining === undefined) this.drained()
  }

  private pass(controller: ReadableStreamDirectController, bytes: Uint8Array<ArrayBuffer>): void {
    const written = controller.write(bytes)
    if (typeof written === 'number') return
    this.count(bytes)
    // The same promise until the socket is drained.
    if (written === this.draining) return
    this.draining = written
    void written.then(() => {
      if (this.draining !== written) return
      this.draining = undefined
      this.drained()
    })
  }

  private count({ length }: Uint8Array): void {
    this.queued += length
    if (this.queued >= QUEUE_BYTES && !this.isFull) this.fullSinceMs = this.lastSentMs
  }

  private drained(): void {
    this.queued = 0
    if (!this.isFull || this.isOver) return
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
