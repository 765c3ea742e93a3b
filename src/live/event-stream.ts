import type { ApiError } from '../http/errors.ts'
import { encodeCursor } from '../journal/cursor.ts'
import type { Journal } from '../journal/journal.ts'
import type { FeedCaller } from '../keys/schema.ts'
import type { CloseReason, Connection, Connections } from './connections.ts'
import type { Filter } from './filter.ts'
import type { Hub } from './hub.ts'
import type { Packet } from './packet.ts'
import type { Start } from './start.ts'
import type { Outlet, Subscription } from './subscription.ts'

export interface EventStreamDeps {
  readonly hub: Hub
  readonly journal: Pick<Journal, 'epoch' | 'endSeq'>
  readonly connections: Connections
  /** A stream whose queue has been full for so long is closed. */
  readonly slowConsumerMs: number
}

export interface EventStreamOptions {
  readonly caller: FeedCaller
  readonly filter: Filter
  readonly start: Start
  /** The cursor that the client asked for, if any. */
  readonly after: string | undefined
  /** `run-end`: ends itself with the run. `caught-up`: with what has been accepted by now. */
  readonly until: 'closed' | 'run-end' | 'caught-up'
}

const QUEUE_BYTES = 64 * 1024
const HEARTBEAT_MS = 8_000
/** How long an EventSource waits before it connects again. */
const RETRY_MS = 1_000

/** One event stream of a run or of the workspace (contract section 5). */
export class EventStream implements Connection, Outlet {
  readonly caller: FeedCaller
  /** The body of the answer. */
  readonly body: ReadableStream<Uint8Array>
  /** False once it turns out that there was nothing to send; true with the first thing sent, or when it is cut short. */
  readonly hasContent: Promise<boolean>
  private readonly settleContent: (hasContent: boolean) => void
  private controller!: ReadableStreamDefaultController<Uint8Array>
  private subscription: Subscription | undefined
  private lastSentMs = performance.now()
  /** On the monotonic clock; 0 while there is room. */
  private fullSinceMs = 0
  private isEnded = false

  constructor(
    private readonly deps: EventStreamDeps,
    private readonly options: EventStreamOptions,
  ) {
    this.caller = options.caller
    const content = Promise.withResolvers<boolean>()
    this.hasContent = content.promise
    this.settleContent = content.resolve
    this.body = new ReadableStream(
      {
        start: (controller) => {
          this.controller = controller
        },
        pull: () => this.drained(),
        cancel: () => this.release(),
      },
      { highWaterMark: QUEUE_BYTES, size: (chunk) => chunk?.length ?? 0 },
    )
    this.begin()
  }

  get queuedBytes(): number {
    return QUEUE_BYTES - (this.controller.desiredSize ?? QUEUE_BYTES)
  }

  send(packet: Packet): boolean {
    if (this.isFull) return false
    this.write(packet.eventStream())
    this.settleContent(true)
    if (this.options.until === 'run-end' && packet.items.some(({ endsRun }) => endsRun)) this.finish()
    return true
  }

  gap(afterSeq: number, resumedSeq: number): void {
    const { epoch } = this.deps.journal
    this.sayGap(encodeCursor(epoch, afterSeq), encodeCursor(epoch, resumedSeq))
  }

  caughtUp(): void {
    if (this.options.until !== 'caught-up') return
    this.settleContent(false)
    this.finish()
  }

  /** The client connects again by itself, with the id of the last event it got. */
  failed(_error: ApiError): void {
    this.finish()
  }

  end(reason: CloseReason): void {
    if (this.isEnded) return
    if (reason !== 'slow_consumer') {
      this.finish()
      return
    }
    this.release()
    // What stands in its queue would be kept until somebody read it.
    this.controller.error(new Error('the client does not read'))
  }

  tick(now: number): void {
    if (this.fullSinceMs !== 0 && now - this.fullSinceMs > this.deps.slowConsumerMs) this.end('slow_consumer')
    else if (now - this.lastSentMs > HEARTBEAT_MS && !this.isFull) this.sayPosition('heartbeat')
  }

  private begin(): void {
    const { hub, journal, connections } = this.deps
    const { caller, filter, start, after } = this.options
    const { afterSeq } = start
    // Sends the headers on their way, too.
    this.write(Buffer.from(`retry: ${RETRY_MS}\n`))
    this.sayPosition('connected', afterSeq)
    if (start.isLost) this.sayGap(after ?? '0', encodeCursor(journal.epoch, afterSeq))
    this.subscription = hub.subscribe({ workspaceId: caller.caller.workspaceId, filter, afterSeq, outlet: this })
    connections.add(this)
  }

  /** A browser that is cut off now resumes here, not at the last activity, which may be long ago. */
  private sayPosition(comment: string, seq = this.position): void {
    this.write(Buffer.from(`id: ${encodeCursor(this.deps.journal.epoch, seq)}\n: ${comment}\n\n`))
  }

  private get position(): number {
    return this.subscription === undefined ? 0 : this.deps.hub.positionOf(this.subscription)
  }

  private sayGap(after: string, resumedAt: string): void {
    const data = JSON.stringify({ after, resumed_at: resumedAt })
    this.write(Buffer.from(`id: ${resumedAt}\nevent: gap\ndata: ${data}\n\n`))
    this.settleContent(true)
  }

  private get isFull(): boolean {
    return this.fullSinceMs !== 0
  }

  private write(bytes: Uint8Array): void {
    if (this.isEnded) return
    this.controller.enqueue(bytes)
    this.lastSentMs = performance.now()
    if ((this.controller.desiredSize ?? 0) <= 0 && this.fullSinceMs === 0) this.fullSinceMs = this.lastSentMs
  }

  private drained(): void {
    if (this.fullSinceMs === 0 || (this.controller.desiredSize ?? 0) <= 0) return
    this.fullSinceMs = 0
    if (this.subscription !== undefined) this.deps.hub.resume(this.subscription)
  }

  private finish(): void {
    if (this.isEnded) return
    this.release()
    this.controller.close()
  }

  private release(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.settleContent(true)
    if (this.subscription !== undefined) this.deps.hub.unsubscribe(this.subscription)
    this.deps.connections.remove(this)
  }
}
