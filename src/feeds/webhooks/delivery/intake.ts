import type { Activity } from '../../live/activity.ts'
import type { Subscription } from '../../live/channel.ts'
import type { Filter } from '../../live/filter.ts'
import type { Hub } from '../../live/hub.ts'
import type { Outlet, Packet } from '../../live/packet.ts'

/** The part of the log that an intake reads. */
interface IntakeOptions {
  readonly hub: Pick<Hub, 'subscribe' | 'unsubscribe' | 'resume' | 'positionOf'>
  readonly workspaceId: string
  readonly filter: Filter
  readonly afterSeq: number
  /** The last position to read, for a recovery. Undefined: reads without end. */
  readonly untilSeq?: number
  /** Whether an activity is to be sent. */
  readonly isWanted: (activity: Activity) => boolean
  readonly onArrival: () => void
  /** Activity between the positions can no longer be read. */
  readonly onGap: (afterSeq: number, resumedSeq: number) => void
  /** The log cannot be read at the moment; nothing more arrives. */
  readonly onFailure: (error: Error) => void
  /** Characters that may wait. */
  readonly lengthMax: () => number
}

/** Activities that may wait. */
const ITEMS_MAX = 500

/**
 * The activities that an endpoint is to send, from a subscription of the hub, and the position up to which all of them have
 * been dealt with. While too many wait it takes no more, and the hub holds its place in the log.
 */
export class Intake implements Outlet {
  /** Characters of the activities that have arrived and are not finished, by position, in order. */
  private readonly unfinished = new Map<number, number>()
  private length = 0
  private arrived: Activity[] = []
  private isFull = false
  private readonly subscription: Subscription
  /** Set when it ends. */
  private lastPosition: number | undefined

  /** @throws ApiError as {@link Hub.subscribe} */
  constructor(private readonly options: IntakeOptions) {
    const { hub, workspaceId, filter, afterSeq } = options
    this.subscription = hub.subscribe({ workspaceId, filter, afterSeq, outlet: this })
  }

  /** Everything up to here is finished. Never decreases. */
  get position(): number {
    const [first] = this.unfinished.keys()
    return first === undefined ? this.read : first - 1
  }

  /** Whether everything up to the last position is finished. */
  get isDone(): boolean {
    const { untilSeq } = this.options
    return untilSeq !== undefined && this.position >= untilSeq
  }

  /**
   * Whether what has arrived may become messages. These may be longer, with what a run got and gave, so while many wait to be
   * delivered there are no more.
   */
  get mayBuild(): boolean {
    const isNoneBuilt = this.unfinished.size === this.arrived.length
    return this.arrived.length > 0 && (isNoneBuilt || this.length < this.options.lengthMax())
  }

  send({ items }: Packet): boolean {
    const { isWanted, onArrival, lengthMax, untilSeq = Number.POSITIVE_INFINITY } = this.options
    if (this.unfinished.size >= ITEMS_MAX || this.length >= lengthMax()) {
      this.isFull = true
      return false
    }
    for (const item of items) {
      if (item.seq > untilSeq || !isWanted(item)) continue
      this.unfinished.set(item.seq, item.text.length)
      this.length += item.text.length
      this.arrived.push(item)
    }
    if (this.mayBuild) onArrival()
    return true
  }

  gap(afterSeq: number, resumedSeq: number): void {
    this.options.onGap(afterSeq, resumedSeq)
  }

  caughtUp(): void {}

  failed(error: Error): void {
    this.end()
    this.options.onFailure(error)
  }

  /** The next activities that have arrived; they stay until {@link taken}. */
  next(max: number): readonly Activity[] {
    return this.arrived.slice(0, max)
  }

  taken(count: number): void {
    this.arrived = this.arrived.slice(count)
  }

  /** An activity has become a message of this length. */
  resize(seq: number, length: number): void {
    const before = this.unfinished.get(seq)
    if (before === undefined) return
    this.unfinished.set(seq, length)
    this.length += length - before
  }

  /** The activity has been delivered or stored, or it is not sent at all. */
  finish(seq: number): void {
    this.length -= this.unfinished.get(seq) ?? 0
    this.unfinished.delete(seq)
    if (!this.isFull || this.unfinished.size > ITEMS_MAX / 2 || this.length > this.options.lengthMax() / 2) return
    this.isFull = false
    if (this.lastPosition === undefined) this.options.hub.resume(this.subscription)
  }

  /** Nothing more arrives. */
  end(): void {
    if (this.lastPosition !== undefined) return
    this.lastPosition = this.read
    this.options.hub.unsubscribe(this.subscription)
  }

  /** The hub has sent everything up to here. */
  private get read(): number {
    return this.lastPosition ?? this.options.hub.positionOf(this.subscription)
  }
}
