import type { ApiError } from '../../base/errors.ts'
import { BoundedEventStream, type EventStreamLimits } from '../../base/http/event-stream.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import type { FeedCaller } from '../../tenants/keys/schema.ts'
import type { Subscription } from './channel.ts'
import type { CloseReason, Connection, Connections } from './connections.ts'
import type { FeedSource, Start } from './feed-source.ts'
import type { Filter } from './filter.ts'
import type { Outlet, Packet } from './packet.ts'

export interface EventStreamDeps extends EventStreamLimits {
  readonly source: FeedSource
  readonly connections: Connections
}

export interface EventStreamOptions {
  readonly caller: FeedCaller
  readonly filter: Filter
  readonly start: Start
  /** The cursor that the client asked for, if any. */
  readonly after: string | undefined
  /** `run-end`: the stream ends with the run. `caught-up`: it ends once everything accepted so far has been sent. */
  readonly until: 'closed' | 'run-end' | 'caught-up'
}

/** How long an EventSource waits before it reconnects. */
const RETRY_MS = 1_000

/** One event stream of a run or of the workspace (docs/feeds.md#event-streams). */
export class EventStream implements Connection, Outlet {
  readonly caller: FeedCaller
  /** Resolves to true with the first thing sent or when the stream is cut short, to false if there was nothing to send. */
  readonly hasContent: Promise<boolean>
  private readonly settleContent: (hasContent: boolean) => void
  private readonly stream: BoundedEventStream
  private subscription: Subscription | undefined
  private releaseSource: (() => void) | undefined

  constructor(
    private readonly deps: EventStreamDeps,
    private readonly options: EventStreamOptions,
  ) {
    this.caller = options.caller
    const content = Promise.withResolvers<boolean>()
    this.hasContent = content.promise
    this.settleContent = content.resolve
    const owner = {
      drained: () => {
        if (this.subscription !== undefined) deps.source.hub.resume(this.subscription)
      },
      ended: () => this.release(),
      heartbeat: () => this.positionFrame('heartbeat'),
    }
    this.stream = new BoundedEventStream(owner, deps)
    this.begin()
  }

  /** The body of the response. */
  get body(): ReadableStream<Uint8Array> {
    return this.stream.body
  }

  get queuedBytes(): number {
    return this.stream.queuedBytes
  }

  send(packet: Packet): boolean {
    if (this.stream.isFull) return false
    this.stream.write(packet.eventStream())
    this.settleContent(true)
    if (this.options.until === 'run-end' && packet.items.some(({ endsRun }) => endsRun)) this.stream.close()
    return true
  }

  gap(afterSeq: number, resumedSeq: number): void {
    const { epoch } = this.deps.source.journal
    this.sendGap(encodeCursor(epoch, afterSeq), encodeCursor(epoch, resumedSeq))
  }

  caughtUp(): void {
    if (this.options.until !== 'caught-up') return
    this.settleContent(false)
    this.stream.close()
  }

  /** Cut, so that no client takes it for complete. The client resumes with the id of the last event that it received. */
  failed(error: ApiError): void {
    this.stream.cut(error)
  }

  end(reason: CloseReason): void {
    if (reason === 'slow_consumer') this.stream.cut()
    else this.stream.close()
  }

  tick(now: number): void {
    this.stream.tick(now)
  }

  private begin(): void {
    const { source, connections } = this.deps
    const { hub, journal } = source
    const { caller, filter, start, after } = this.options
    const { afterSeq } = start
    // This also sends the headers.
    this.stream.write(`retry: ${RETRY_MS}\n${this.positionFrame('connected', afterSeq)}`)
    if (start.isLost) this.sendGap(after ?? '0', encodeCursor(journal.epoch, afterSeq))
    this.subscription = hub.subscribe({ workspaceId: caller.caller.workspaceId, filter, afterSeq, outlet: this })
    this.releaseSource = source.retain(() => this.end('unavailable'))
    connections.add(this)
  }

  /** A browser that is disconnected now resumes here instead of after the last activity, which may be long ago. */
  private positionFrame(comment: string, seq = this.position): string {
    return `id: ${encodeCursor(this.deps.source.journal.epoch, seq)}\n: ${comment}\n\n`
  }

  private get position(): number {
    return this.subscription === undefined ? 0 : this.deps.source.hub.positionOf(this.subscription)
  }

  private sendGap(after: string, resumedAt: string): void {
    const data = JSON.stringify({ after, resumed_at: resumedAt })
    this.stream.write(`id: ${resumedAt}\nevent: gap\ndata: ${data}\n\n`)
    this.settleContent(true)
  }

  private release(): void {
    this.settleContent(true)
    if (this.subscription !== undefined) this.deps.source.hub.unsubscribe(this.subscription)
    this.releaseSource?.()
    this.deps.connections.remove(this)
  }
}
