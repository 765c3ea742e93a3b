import type { Frame, Journal } from '../journal/journal.ts'
import type { Log } from '../log.ts'
import { type Channel, Channels } from './channel.ts'
import type { Filter } from './filter.ts'
import { FrameRows } from './frame-rows.ts'
import { packetsOf } from './packet.ts'
import { Replay, type ReplayDeps } from './replay.ts'
import type { Outlet, Subscription } from './subscription.ts'
import { Turn } from './turn.ts'

export interface HubDeps extends Pick<ReplayDeps, 'history'> {
  readonly journal: Journal
  readonly log: Log
}

export interface SubscribeOptions {
  readonly workspaceId: string
  readonly filter: Filter
  /** Starts after this position; `journal.endSeq` for what happens from now on. */
  readonly afterSeq: number
  readonly outlet: Outlet
}

/**
 * Hands the journal out to everyone who watches (contract section 5). The journal is the queue of all of them: a subscription
 * is a position in it. Those at its end are `live` and share one pass over each new frame; the others are read what they miss
 * by {@link Replay} and join once they have caught up. An outlet that takes no more falls behind and is
 * read on from where it stopped, so that a slow reader costs a bounded queue and a place in a list, and nobody else a thing.
 */
export class Hub {
  private readonly channels = new Channels()
  private readonly replay: Replay
  private readonly stopping = new AbortController()
  private liveMembers = 0
  private members = 0
  /** Live subscriptions have everything up to here. Of no meaning while there are none. */
  private position = 0
  /** While a round is being handed out nobody joins: what he would get of it depended on the moment. */
  private isHandingOut = false
  private readonly turn = new Turn()
  private someoneLive = Promise.withResolvers<void>()
  private readonly finished: Promise<unknown>

  constructor(private readonly deps: HubDeps) {
    this.replay = new Replay({ ...deps, join: (subscription) => this.join(subscription) })
    this.finished = Promise.all([this.run(), this.replay.run(this.stopping.signal)])
  }

  /** Rows that live subscriptions have yet to get. */
  lag(): number {
    return this.liveMembers === 0 ? 0 : this.deps.journal.endSeq - this.position
  }

  /** Open subscriptions, and how many of them are behind. */
  counts(): { readonly all: number; readonly behind: number } {
    return { all: this.members, behind: this.members - this.liveMembers }
  }

  /** Begins to send to the outlet, not before this call has returned. */
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

  private async run(): Promise<void> {
    const { journal } = this.deps
    const { signal } = this.stopping
    while (!signal.aborted) {
      if (this.liveMembers === 0) {
        this.someoneLive = Promise.withResolvers()
        await this.someoneLive.promise
        continue
      }
      if (this.position >= journal.endSeq) {
        await journal.waitPast(this.position, signal)
        // Those who reported it get their answers first: telling a thousand watchers takes some milliseconds.
        await this.turn.giveWay()
        continue
      }
      const frames = journal.recent(this.position, ROUND_BYTES)
      if (frames === null) this.fallBehind()
      else await this.deliver(frames)
      if (this.turn.isOver) await this.turn.giveWay()
    }
  }

  /** Sends what matches in the frames to all live subscriptions. */
  private async deliver(frames: readonly Frame[]): Promise<void> {
    const touched = new Set<Channel>()
    // All of it before others have a turn: the frames' memory may be used again then.
    for (const frame of frames) this.match(frame, touched)
    this.isHandingOut = true
    for (const channel of touched) {
      const packets = packetsOf(this.deps.journal.epoch, channel.found)
      channel.found = []
      for (const packet of packets) {
        for (const shard of channel.shards) {
          for (const subscription of shard.members)
            if (subscription.outlet.sharing?.isFull === true) this.stall(subscription, packet.firstSeq - 1)
          shard.send(packet)
          if (this.turn.isOver) await this.turn.giveWay()
        }
        for (const subscription of channel.singles) {
          if (subscription.outlet.send(packet)) subscription.position = packet.lastSeq
          else this.stall(subscription, packet.firstSeq - 1)
          if (this.turn.isOver) await this.turn.giveWay()
        }
      }
    }
    this.isHandingOut = false
    this.position = lastSeqOf(frames[frames.length - 1])
    this.replay.wake()
  }

  private match(frame: Frame, touched: Set<Channel>): void {
    let rows: FrameRows | undefined
    let from = 0
    for (const span of frame.spans) {
      const to = from + span.rows
      this.channels.visit(span.workspaceId, span.runId, (channel) => {
        rows ??= new FrameRows(frame, this.deps.journal.epoch)
        rows.collect(channel.filter, span, from, to, this.position, channel.found)
        if (channel.found.length > 0) touched.add(channel)
      })
      from = to
    }
  }

  /** The outlet took no more: its subscription is read on from `position` once there is room. */
  private stall(subscription: Subscription, position: number): void {
    if (subscription.state !== 'live') return
    this.leave(subscription)
    subscription.position = position
    subscription.state = 'full'
  }

  /** The journal was faster than we for so long that memory no longer has what comes next. */
  private fallBehind(): void {
    this.deps.log.warn('live feeds: behind the journal; every feed is read on from where it is', { lag: this.lag() })
    for (const subscription of this.channels.allLive()) {
      this.leave(subscription)
      subscription.position = this.position
      subscription.state = 'behind'
      this.replay.add(subscription)
    }
  }
}

function lastSeqOf(frame: Frame): number {
  return frame.firstSeq + frame.rows - 1
}

/** Of blocks handled before others get a turn. */
const ROUND_BYTES = 256 * 1024
