import type { Frame, Journal } from '../journal/journal.ts'
import type { Log } from '../log.ts'
import { type Loop, Loops } from '../ops/supervise.ts'
import { type ChannelSet, Channels } from './channel.ts'
import type { Filter } from './filter.ts'
import { type Found, Matching } from './matching.ts'
import { PacketCache } from './packet.ts'
import { Replay, type ReplayDeps } from './replay.ts'
import type { Outlet, Subscription } from './subscription.ts'
import { TimeSlice } from './time-slice.ts'

export interface HubDeps extends Pick<ReplayDeps, 'history'> {
  readonly journal: Journal
  readonly log: Log
  /** Different filters that a workspace may have at once. */
  readonly filtersPerWorkspace: number
  /** Milliseconds on a monotonic clock, for time slices. */
  readonly now?: () => number
  /** Where the hub is supervised together with others. */
  readonly loops?: Loops
}

export interface SubscribeOptions {
  readonly workspaceId: string
  readonly filter: Filter
  /** Starts after this position; `journal.endSeq` for what happens from now on. */
  readonly afterSeq: number
  readonly outlet: Outlet
}

/**
 * Hands the journal out to everyone who watches (docs/specification.md#feeds). The journal is the queue of all of them: a
 * subscription is a position in it. Those at its end are `live` and share one pass over each new frame; the others are
 * read what they miss by {@link Replay} and join once they have caught up. An outlet that takes no more falls behind and
 * is read on from where it stopped, so that a slow reader costs a bounded queue and a place in a list, and nobody else a
 * thing.
 */
export class Hub {
  private readonly channels: Channels
  private readonly replay: Replay
  private readonly stopping = new AbortController()
  private liveMembers = 0
  private members = 0
  /** Live subscriptions have everything up to here. Of no meaning while there are none. */
  private position = 0
  /** No joins while a round is matched and handed out: what a subscriber gets of it would depend on timing. */
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

  /** Rows that live subscriptions have yet to get. */
  lag(): number {
    return this.liveMembers === 0 ? 0 : this.deps.journal.endSeq - this.position
  }

  /** Open subscriptions, how many of them are behind, and their different filters. */
  counts(): { readonly all: number; readonly behind: number; readonly filters: number } {
    return { all: this.members, behind: this.members - this.liveMembers, filters: this.channels.size }
  }

  /**
   * Begins to send to the outlet, not before this call has returned.
   * @throws ApiError RATE_LIMITED when the workspace has as many different filters as it may
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

  /** Ends a subscription; its outlet hears nothing more. */
  unsubscribe(subscription: Subscription): void {
    if (subscription.state === 'ended') return
    if (subscription.state === 'live') this.leave(subscription)
    else this.replay.remove(subscription)
    subscription.state = 'ended'
    this.members--
    this.channels.leave(subscription.channel)
  }

  /** Says that the outlet of the subscription takes packets again. */
  resume(subscription: Subscription): void {
    if (subscription.state !== 'full') return
    subscription.state = 'behind'
    this.replay.add(subscription)
  }

  /** Up to where the subscription has been sent everything that matches. */
  positionOf(subscription: Subscription): number {
    return subscription.state === 'live' ? Math.max(this.position, subscription.position) : subscription.position
  }

  async stop(): Promise<void> {
    this.stopping.abort()
    this.someoneLive.resolve()
    await this.finished
  }

  /** Makes a subscription live if it has come as far as those that are, or as the journal when there are none. */
  private join(subscription: Subscription): boolean {
    const { channel, outlet, position, promisedSeq } = subscription
    if (this.isHandingOut) return false
    if (position !== (this.liveMembers === 0 ? this.deps.journal.endSeq : this.position)) return false
    // Those that are live may lag behind the journal.
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
        // Those who reported it get their answers first: telling a thousand watchers takes some milliseconds.
        await this.slice.yield()
        continue
      }
      const frames = journal.recent(this.position, ROUND_BYTES)
      if (frames === null) {
        const fields = { lag: this.lag() }
        log.warn('live feeds: behind the journal; every feed is read on from where it is', fields)
        this.fallBehind()
      } else await this.deliver(frames)
      if (this.slice.isOver) await this.slice.yield()
    }
  }

  /** Sends what matches in the frames to all live subscriptions. */
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
      // Each is read on from what it has been sent, so that nothing is lost or sent twice.
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

  /** The outlet took no more: its subscription is read on from `position` once there is room. */
  private stall(subscription: Subscription, position: number): void {
    if (subscription.state !== 'live') return
    this.leave(subscription)
    subscription.position = position
    subscription.state = 'full'
  }

  /** Has every live subscription read on by {@link Replay}: memory no longer has what comes next, or a round failed. */
  private fallBehind(): void {
    for (const subscription of this.channels.allLive()) {
      subscription.position = this.positionOf(subscription)
      this.leave(subscription)
      subscription.state = 'behind'
      this.replay.add(subscription)
    }
  }
}

/** Of blocks handled before others get a turn. */
const ROUND_BYTES = 256 * 1024
