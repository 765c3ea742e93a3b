import { orAborted } from '../../base/abort.ts'
import { ApiError } from '../../base/errors.ts'
import type { Activity } from '../live/activity.ts'
import type { Subscription } from '../live/channel.ts'
import type { FeedSource } from '../live/feed-source.ts'
import type { Filter } from '../live/filter.ts'
import type { Outlet, Packet } from '../live/packet.ts'

interface CollectOptions {
  readonly workspaceId: string
  readonly filter: Filter
  readonly afterSeq: number
  /** Nothing after it is wanted. */
  readonly untilSeq?: number
  readonly itemsMax: number
  /** Characters of activity, unless the first one alone is longer. */
  readonly lengthMax: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** A part of the log. */
export interface Collected {
  readonly items: readonly Activity[]
  /** Every match up to here is in `items`. */
  readonly throughSeq: number
  /** Whether that was the end of the log. */
  readonly isDone: boolean
  /** Whether positions before the items can no longer be read. */
  readonly hasGap: boolean
}

/**
 * Reads matching activity after a position once, as a feed does, until there is enough or no more.
 * @throws ApiError as `Hub.subscribe`; UNAVAILABLE; the reason of `signal`
 */
export async function collect(source: FeedSource, options: CollectOptions): Promise<Collected> {
  const { timeoutMs, signal } = options
  signal.throwIfAborted()
  const collector = new Collector(source.hub, options)
  const release = source.retain(() =>
    collector.failed(new ApiError('UNAVAILABLE', 'the log cannot be read; try again')),
  )
  const timer = setTimeout(() => collector.stop(), timeoutMs)
  try {
    return await orAborted(collector.collected, signal)
  } finally {
    clearTimeout(timer)
    collector.end()
    release()
  }
}

class Collector implements Outlet {
  private readonly items: Activity[] = []
  private length = 0
  private hasGap = false
  private readonly result = Promise.withResolvers<Collected>()
  private readonly subscription: Subscription

  constructor(
    private readonly hub: FeedSource['hub'],
    private readonly options: CollectOptions,
  ) {
    const { workspaceId, filter, afterSeq } = options
    this.subscription = hub.subscribe({ workspaceId, filter, afterSeq, outlet: this })
  }

  private get untilSeq(): number {
    return this.options.untilSeq ?? Number.POSITIVE_INFINITY
  }

  get collected(): Promise<Collected> {
    return this.result.promise
  }

  send({ items }: Packet): boolean {
    const { itemsMax, lengthMax } = this.options
    for (const item of items) {
      if (this.subscription.state === 'ended') break
      const isFull = this.items.length > 0 && this.length + item.text.length > lengthMax
      if (isFull || this.items.length === itemsMax || item.seq > this.untilSeq) {
        this.settle(item.seq - 1)
        break
      }
      this.items.push(item)
      this.length += item.text.length
      if (item.seq === this.untilSeq) this.settle(item.seq)
    }
    return true
  }

  gap(afterSeq: number, resumedSeq: number): void {
    // The next call starts before the gap, and reports it.
    if (this.items.length > 0) this.settle(afterSeq)
    else {
      this.hasGap = true
      if (resumedSeq >= this.untilSeq) this.settle(resumedSeq)
    }
  }

  caughtUp(): void {
    this.settle(this.position, true)
  }

  failed(error: ApiError): void {
    this.end()
    this.result.reject(error)
  }

  /** Settles for what has been read so far. Without anything, the next call would get no further, and not say why. */
  stop(): void {
    if (this.position > this.options.afterSeq) this.settle(this.position)
    else this.failed(new ApiError('UNAVAILABLE', 'the log cannot be read in time; try again'))
  }

  end(): void {
    this.hub.unsubscribe(this.subscription)
  }

  private get position(): number {
    return this.hub.positionOf(this.subscription)
  }

  private settle(throughSeq: number, isDone = false): void {
    this.end()
    this.result.resolve({ items: this.items, throughSeq, isDone, hasGap: this.hasGap })
  }
}
