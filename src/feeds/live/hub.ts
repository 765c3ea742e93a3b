import { type Loop, Loops } from '../../base/loops.ts'
import { Wakeup } from '../../base/wakeup.ts'
import type { Frame } from '../../stores/journal/journal.ts'
import type { Activity } from './activity.ts'
import { type Channel, Channels, type Subscription, type WorkspaceChannels } from './channel.ts'
import { FairShare, TimeSlice } from './fair-share.ts'
import { type Filter, isBySession } from './filter.ts'
import { type Found, Matching } from './matching.ts'
import { type Outlet, PacketCache } from './packet.ts'
import { Replay, type ReplayDeps } from './replay.ts'
import { forLiveFeeds, SessionsUnavailable } from './run-sessions.ts'

interface HubDeps extends Omit<ReplayDeps, 'join'> {
  /** Distinct filters that a workspace may have at the same time. */
  readonly filtersPerWorkspace: number
  /** Supervises the hub's loops. */
  readonly loops?: Loops
}

interface SubscribeOptions {
  readonly workspaceId: string
  readonly filter: Filter
  /** Starts after this position; `journal.endSeq` for new activity only. */
  readonly afterSeq: number
  readonly outlet: Outlet
}

/** Bytes of blocks read per delivery. */
const DELIVERY_BYTES = 256 * 1024
/** Bytes that one delivery sends before workspaces with more to send are left to {@link Replay}, so that others get their next. */
export const SENT_BYTES_MAX = 32 * 1024 * 1024

/**
 * Delivers the journal to all subscriptions (docs/feeds.md). The journal is their common queue: a subscription is a
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
  private readonly wakeup = new Wakeup()
  private readonly finished: Promise<unknown>

  constructor(private readonly deps: HubDeps) {
    this.channels = new Channels(deps.filtersPerWorkspace)
    this.slice = new TimeSlice(deps.now)
    this.replay = new Replay({ ...deps, join: (subscription) => this.join(subscription) })
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
    const position = afterSeq
    const subscription: Subscription = { channel, outlet, position, promisedSeq, state: 'behind', shard: undefined }
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
    channel.addLive(subscription)
    this.liveMembers++
    this.wakeup.wake()
    outlet.caughtUp()
    return true
  }

  private leave(subscription: Subscription): void {
    subscription.channel.removeLive(subscription)
    // Those that wait for the live ones need not wait any longer.
    if (--this.liveMembers === 0) this.replay.wake()
  }

  private async run(loop: Loop): Promise<void> {
    const { journal, log } = this.deps
    const { signal } = this.stopping
    while (!signal.aborted) {
      if (this.liveMembers === 0 || this.position >= journal.endSeq) loop.succeeded()
      if (this.liveMembers === 0) {
        await this.wakeup.next(undefined, signal)
        continue
      }
      if (this.position >= journal.endSeq) {
        await journal.waitPast(this.position, signal)
        // Lets ingest calls be answered first: delivery to a thousand watchers takes some milliseconds.
        await this.slice.yield()
        continue
      }
      const frames = journal.recent(this.position, DELIVERY_BYTES)
      // What was read after a revocation must not reach its feeds: a process that was paused does not know of it yet.
      const isKnown = this.deps.areRevocationsKnown?.() ?? true
      if (isKnown !== true) await isKnown
      else if (frames === null) {
        const fields = { lag: this.lag() }
        log.warn('live feeds: too far behind the journal; switching all feeds to replay', fields)
        this.fallBehind(this.channels.allLive())
      } else await this.deliver(frames)
      if (this.slice.isOver) await this.slice.yield()
    }
  }

  /** Sends the frames' matches to all live subscriptions. */
  private async deliver(frames: readonly Frame[]): Promise<void> {
    const { epoch } = this.deps.journal
    this.isHandingOut = true
    let sent = 0
    const matching = new Matching(frames, {
      epoch,
      afterSeq: this.position,
      slice: this.slice,
      wantedOf: (workspaceId) => this.channels.of(workspaceId)?.live,
      handOut: async (found, throughSeq) => {
        sent = await this.handOut(found, sent)
        this.position = throughSeq
        return !this.stopping.signal.aborted
      },
    })
    try {
      if (this.channels.areBySession) await this.lookUpSessions(matching)
      await matching.run()
    } catch (error) {
      // Nothing is lost or sent twice.
      this.fallBehind(this.channels.allLive())
      throw error
    } finally {
      this.isHandingOut = false
    }
    this.replay.wake()
  }

  /** If that is impossible, the feeds that need it wait in {@link Replay}: no other waits for them. */
  private async lookUpSessions(matching: Matching): Promise<void> {
    try {
      await matching.lookUpSessions(forLiveFeeds(this.deps.lookUpSessions))
    } catch (error) {
      if (!(error instanceof SessionsUnavailable)) throw error
      this.fallBehind(this.channels.allLive().filter(({ channel }) => isBySession(channel.filter)))
    }
  }

  /**
   * Sends the matches; workspaces take turns. A workspace with more than fits into the delivery falls behind, unless it is alone.
   * @param sentBefore bytes that earlier parts of the delivery have sent
   * @returns the bytes sent so far
   */
  private async handOut(found: Found, sentBefore: number): Promise<number> {
    let sent = sentBefore
    const shares = new Map<WorkspaceChannels, FairShare>()
    for (const [workspace, matches] of Map.groupBy(found, workspaceOf))
      shares.set(workspace, new FairShare(this.send(matches), this.slice))
    while (shares.size > 0) {
      for (const [workspace, share] of shares) {
        sent += await share.turn()
        if (share.isEmpty) shares.delete(workspace)
      }
      if (sent < SENT_BYTES_MAX || !this.channels.isShared) continue
      for (const [workspace] of shares) this.fallBehind(workspace.allLive())
      break
    }
    return sent
  }

  /** Sends the matches of one workspace. Yields the bytes of each step. */
  private *send(matches: Iterable<[Channel, readonly Activity[]]>): Generator<number> {
    const cache = new PacketCache(this.deps.journal.epoch)
    for (const [channel, items] of matches) {
      for (const packet of cache.packetsOf(items)) {
        for (const shard of channel.shards) {
          for (const subscription of shard.members)
            if (subscription.outlet.sharing?.connection.isFull === true) this.stall(subscription, packet.firstSeq - 1)
          shard.send(packet)
          yield packet.length * shard.members.size
        }
        for (const subscription of channel.singles) {
          if (subscription.outlet.send(packet)) subscription.position = packet.lastSeq
          else this.stall(subscription, packet.firstSeq - 1)
          yield packet.length
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

  /** Moves live subscriptions to {@link Replay}, which continues each from its own position. */
  private fallBehind(subscriptions: readonly Subscription[]): void {
    for (const subscription of subscriptions) {
      subscription.position = this.positionOf(subscription)
      this.leave(subscription)
      subscription.state = 'behind'
      this.replay.add(subscription)
    }
  }
}

function workspaceOf([channel]: readonly [Channel, unknown]): WorkspaceChannels {
  return channel.workspace
}
