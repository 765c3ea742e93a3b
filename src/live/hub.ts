import type { Frame, JournalReader } from '../journal/journal.ts'
import type { Log } from '../log.ts'
import { type Loop, Loops } from '../ops/supervise.ts'
import type { ChannelSet, Subscription } from './channel.ts'
import { Channels } from './channels.ts'
import type { Filter } from './filter.ts'
import { type Found, Matching } from './matching.ts'
import type { Outlet } from './outlet.ts'
import { PacketCache } from './packet.ts'
import { Replay, type ReplayDeps } from './replay.ts'
import { TimeSlice } from './time-slice.ts'

export interface HubDeps extends Pick<ReplayDeps, 'history'> {
  readonly journal: JournalReader
  readonly log: Log
  /** Distinct filters that a workspace may have at the same time. */
  readonly filtersPerWorkspace: number
  /** Milliseconds on a monotonic clock, for time slices. */
  readonly now?: () => number
  /** Supervises the hub's loops. */
  readonly loops?: Loops
}

export interface SubscribeOptions {
  readonly workspaceId: string
  readonly filter: Filter
  /** Starts after this position; `journal.endSeq` for new activity only. */
  readonly afterSeq: number
  readonly outlet: Outlet
}

/** Bytes of blocks read per delivery. */
const DELIVERY_BYTES = 256 * 1024

/**
 * Delivers the journal to all subscriptions (docs/specification.md#feeds). The journal is their common queue: a subscription is a
 * position in it. Subscriptions at its end are `live` and share one pass over each new frame; {@link Replay} serves the
 * others, which join once they have caught up. An outlet whose queue is full falls behind and later resumes where it
 * stopped, so that a slow reader costs a bounded queue and does not affect others.
 */
export class Hub {
  private readonly channels: Channels
  private readonly replay: Replay
  private readonly stopping = new AbortController()
  private liveMembers = 0
  private members = 0
  /** Live subscriptions have everything up to here. Meaningless while there are none. */
  private position = 0
  /** No joins during delivery; otherwise what a subscriber gets would depend on timing. */
  private isHandingOut = false
  private readonly slice: TimeSlice
  private someoneLive = Promise.withResolvers<void>()
  private readonly finished: Promise<unknown>

  constructor(private readonly deps: HubDeps) {
    this.channels = new Channels(deps.filtersPerWorkspace)
    this.slice = new TimeSlice(deps.now)
    const { channels } = this
    this.replay = new Replay({ ...deps, channels, join: (subscription) => this.join(subscription) })
    const { signal } = this.stopping
    const { loops = new Loops(deps.log) } = deps
    this.finished = Promise.all([
      loops.run('live feeds', signal, (loop) => this.run(loop)),
      loops.run('replay of feeds', signal, (loop) => this.replay.run(signal, loop)),
    ])
  }

  /** Rows not yet delivered to live subscriptions. */
  lag(): number {
    return this.liveMembers === 0 ? 0 : this.deps.journal.endSeq - this.position
  }

  /** The number of open subscriptions, of those that are behind, and of distinct filters. */
  counts(): { readonly all: number; readonly behind: number; readonly filters: number } {
    return { all: this.members, behind: this.members - this.liveMembers, filters: this.channels.size }
  }

  /**
   * Starts sending to the outlet, but not before this call has returned.
   * @throws ApiError RATE_LIMITED when the workspace has reached its limit of distinct filters
   */
  subscribe({ workspaceId, filter, afterSeq, outlet }: SubscribeOptions): Subscription {
    const channel = this.channels.join(workspaceId, filter)
    const promisedSeq = this.deps.journal.endSeq
    const subscription: Subscription = {
      ...{ channel, outlet, promisedSeq, state: 'behind', shard: undefined },
      position: afterSeq,
    }
    this.members++
    this.replay.add(subscription)
    return subscription
  }

  /** Ends a subscription; its outlet is not called again. */
  unsubscribe(subscription: Subscription): void {
    if (subscription.state === 'ended') return
    if (subscription.state === 'live') this.leave(subscription)
    else this.replay.remove(subscription)
    subscription.state = 'ended'
    this.members--
    this.channels.leave(subscription.channel)
  }

  /** Called when the outlet of the subscription has room again. */
  resume(subscription: Subscription): void {
    if (subscription.state !== 'full') return
    subscription.state = 'behind'
    this.replay.add(subscription)
  }

  /** The position up to which every match has been sent to the subscription. */
  positionOf(subscription: Subscription): number {
    return subscription.state === 'live' ? Math.max(this.position, subscription.position) : subscription.position
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    this.someoneLive.resolve()
    await this.finished
  }

  /** Makes a subscription live if it has reached the live ones, or the end of the journal when there are none. */
  private join(subscription: Subscription): boolean {
    const { channel, outlet, position, promisedSeq } = subscription
    if (this.isHandingOut) return false
    if (position !== (this.liveMembers === 0 ? this.deps.journal.endSeq : this.position)) return false
    // Live subscriptions may lag behind the journal.
    if (position < promisedSeq) return false
    this.position = position
    subscription.state = 'live'
    if (channel.liveMembers === 0) this.channels.activate(channel)
    channel.addLive(subscription)
    this.liveMembers++
    this.someoneLive.resolve()
    outlet.caughtUp()
    return true
  }

  private leave(subscription: Subscription): void {
    const { channel } = subscription
    channel.removeLive(subscription)
    if (channel.liveMembers === 0) this.channels.deactivate(channel)
    this.liveMembers--
  }

  private async run(loop: Loop): Promise<void> {
    const { journal, log } = this.deps
    const { signal } = this.stopping
    while (!signal.aborted) {
      if (this.liveMembers === 0 || this.position >= journal.endSeq) loop.succeeded()
      if (this.liveMembers === 0) {
        this.someoneLive = Promise.withResolvers()
        await this.someoneLive.promise
        continue
      }
      if (this.position >= journal.endSeq) {
        await journal.waitPast(this.position, signal)
        // Lets ingest calls be answered first: delivery to a thousand watchers takes some milliseconds.
        await this.slice.yield()
        continue
      }
      const frames = journal.recent(this.position, DELIVERY_BYTES)
      if (frames === null) {
        const fields = { lag: this.lag() }
        log.warn('live feeds: too far behind the journal; switching all feeds to replay', fields)
        this.fallBehind()
      } else await this.deliver(frames)
      if (this.slice.isOver) await this.slice.yield()
    }
  }

  /** Sends the frames' matches to all live subscriptions. */
  private async deliver(frames: readonly Frame[]): Promise<void> {
    const { epoch } = this.deps.journal
    this.isHandingOut = true
    const matching = new Matching(frames, {
      epoch,
      afterSeq: this.position,
      slice: this.slice,
      wantedOf: (workspaceId) => this.liveOf(workspaceId),
      handOut: async (found, throughSeq) => {
        await this.handOut(found)
        this.position = throughSeq
        return !this.stopping.signal.aborted
      },
    })
    try {
      await matching.run()
    } catch (error) {
      // Replay continues each subscription from its own position, so nothing is lost or sent twice.
      this.fallBehind()
      throw error
    } finally {
      this.isHandingOut = false
    }
    this.replay.wake()
  }

  private liveOf(workspaceId: string): ChannelSet | undefined {
    const live = this.channels.of(workspaceId)?.live
    return live === undefined || live.members.size === 0 ? undefined : live
  }

  private async handOut(found: Found): Promise<void> {
    const cache = new PacketCache(this.deps.journal.epoch)
    for (const [channel, items] of found) {
      for (const packet of cache.packetsOf(items)) {
        for (const shard of channel.shards) {
          for (const subscription of shard.members)
            if (subscription.outlet.sharing?.isFull === true) this.stall(subscription, packet.firstSeq - 1)
          shard.send(packet)
          if (this.slice.isOver) await this.slice.yield()
        }
        for (const subscription of channel.singles) {
          if (subscription.outlet.send(packet)) subscription.position = packet.lastSeq
          else this.stall(subscription, packet.firstSeq - 1)
          if (this.slice.isOver) await this.slice.yield()
        }
      }
    }
  }

  /** The outlet's queue is full: once there is room, replay continues from `position`. */
  private stall(subscription: Subscription, position: number): void {
    if (subscription.state !== 'live') return
    this.leave(subscription)
    subscription.position = position
    subscription.state = 'full'
  }

  /** Moves all live subscriptions to {@link Replay}: memory no longer has the next frames, or a delivery failed. */
  private fallBehind(): void {
    for (const subscription of this.channels.allLive()) {
      subscription.position = this.positionOf(subscription)
      this.leave(subscription)
      subscription.state = 'behind'
      this.replay.add(subscription)
    }
  }
}
