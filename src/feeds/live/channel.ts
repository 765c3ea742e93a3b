import { ApiError } from '../../base/errors.ts'
import { type Filter, isBySession } from './filter.ts'
import { Bits, FilterIndex } from './filter-index.ts'
import type { Outlet, Packet } from './packet.ts'
import type { RunSession } from './run-sessions.ts'

/** Limits one publish so that fan-out cannot block the event loop. */
const MEMBERS_MAX = 64

let topics = 0

/**
 * - `live`: has everything up to the hub's position and receives new activity as it happens
 * - `behind`: replay reads what it is missing from memory, segments or ClickHouse
 * - `reading`: like `behind`, while a ClickHouse query is running
 * - `full`: the queue of its outlet is full
 * - `ended`: unsubscribed
 */
type SubscriptionState = 'live' | 'behind' | 'reading' | 'full' | 'ended'

/** One filter on one connection, and its position in the journal. Only the hub and its replay modify it. */
export interface Subscription {
  readonly channel: Channel
  readonly outlet: Outlet
  /** Every match up to here has been sent. Kept up to date only while the subscription is not live. */
  position: number
  /** The end of the journal at the time of subscribing: the subscription has not caught up before that. */
  readonly promisedSeq: number
  state: SubscriptionState
  /** Set while it is live and shares its packets. */
  shard: Shard | undefined
}

/** All subscriptions of a workspace with equivalent filters: matches are found and encoded once for all of them. */
export class Channel {
  /** Live subscriptions that share no packets. */
  readonly singles = new Set<Subscription>()
  /** Live subscriptions that do. */
  readonly shards = new Set<Shard>()
  liveMembers = 0
  /** The number of subscriptions, live or not. */
  members = 0
  /** The shards that take new members, by key. */
  private readonly filling = new Map<string, Shard>()

  constructor(
    readonly workspace: WorkspaceChannels,
    readonly filter: Filter,
    /** Its slot in the workspace's filter index. */
    readonly slot: number,
  ) {}

  get workspaceId(): string {
    return this.workspace.workspaceId
  }

  addLive(subscription: Subscription): void {
    if (this.liveMembers++ === 0) this.workspace.live.add(this)
    const { sharing } = subscription.outlet
    if (sharing === undefined) this.singles.add(subscription)
    else this.shardWithRoom(sharing.key).add(subscription)
  }

  removeLive(subscription: Subscription): void {
    if (--this.liveMembers === 0) this.workspace.live.delete(this)
    const { shard } = subscription
    if (shard === undefined) {
      this.singles.delete(subscription)
      return
    }
    shard.remove(subscription)
    if (shard.members.size === 0) {
      this.shards.delete(shard)
      if (this.filling.get(shard.key) === shard) this.filling.delete(shard.key)
    } else if (this.filling.get(shard.key)?.hasRoom !== true) this.filling.set(shard.key, shard)
  }

  private shardWithRoom(key: string): Shard {
    const known = this.filling.get(key)
    if (known?.hasRoom) return known
    const fresh = new Shard(key)
    this.shards.add(fresh)
    this.filling.set(key, fresh)
    return fresh
  }
}

/** A subset of a workspace's channels. */
export class ChannelSet {
  readonly members = new Set<Channel>()
  /** Slots of the members in the workspace's filter index. */
  readonly slots = new Bits()
  /** The sessions of runs that members need, by run: what matching has looked up. Undefined while no member has a condition on them. */
  sessions: Map<string, RunSession> | undefined
  private bySession = 0

  constructor(readonly workspace: WorkspaceChannels) {}

  add(channel: Channel): void {
    if (this.members.has(channel)) return
    this.members.add(channel)
    this.slots.add(channel.slot)
    if (isBySession(channel.filter) && this.bySession++ === 0) this.sessions = new Map()
  }

  delete(channel: Channel): void {
    if (!this.members.delete(channel)) return
    this.slots.delete(channel.slot)
    if (isBySession(channel.filter) && --this.bySession === 0) this.sessions = undefined
  }
}

/** The channels of a workspace: one for each distinct filter with a subscription. */
export class WorkspaceChannels {
  readonly index = new FilterIndex()
  /** Channels with live members. */
  readonly live = new ChannelSet(this)
  private readonly byKey = new Map<string, Channel>()
  private readonly bySlot: (Channel | undefined)[] = []

  constructor(readonly workspaceId: string) {}

  get size(): number {
    return this.byKey.size
  }

  /** The channel in this slot of the index, if any. */
  at(slot: number): Channel | undefined {
    return this.bySlot[slot]
  }

  find(filter: Filter): Channel | undefined {
    return this.byKey.get(filter.key)
  }

  add(filter: Filter): Channel {
    const channel = new Channel(this, filter, this.index.add(filter))
    this.byKey.set(filter.key, channel)
    this.bySlot[channel.slot] = channel
    return channel
  }

  remove({ filter, slot }: Channel): void {
    this.index.remove(filter, slot)
    this.byKey.delete(filter.key)
    this.bySlot[slot] = undefined
  }

  /** A copy of the live subscriptions, so that the caller may change the channels. */
  allLive(): Subscription[] {
    const all: Subscription[] = []
    for (const { singles, shards } of this.live.members) {
      for (const subscription of singles) all.push(subscription)
      for (const { members } of shards) all.push(...members)
    }
    return all
  }
}

/** All channels with subscriptions, by workspace. */
export class Channels {
  private readonly workspaces = new Map<string, WorkspaceChannels>()
  private count = 0
  private bySession = 0

  /** @param perWorkspaceMax distinct filters that a workspace may have at the same time */
  constructor(private readonly perWorkspaceMax: number) {}

  /** The number of distinct filters of all workspaces. */
  get size(): number {
    return this.count
  }

  /** Whether a filter has a condition on the session or the external user of runs. */
  get areBySession(): boolean {
    return this.bySession > 0
  }

  /** Whether more than one workspace has subscriptions, live or not. */
  get isShared(): boolean {
    return this.workspaces.size > 1
  }

  of(workspaceId: string): WorkspaceChannels | undefined {
    return this.workspaces.get(workspaceId)
  }

  /**
   * Adds a member to the channel of this filter; creates the channel if needed.
   * @throws ApiError RATE_LIMITED when the workspace has reached its limit of distinct filters
   */
  join(workspaceId: string, filter: Filter): Channel {
    const workspace = this.workspaces.get(workspaceId) ?? new WorkspaceChannels(workspaceId)
    let channel = workspace.find(filter)
    if (channel === undefined) {
      if (workspace.size >= this.perWorkspaceMax) {
        const message = `the open feeds of a workspace may use at most ${this.perWorkspaceMax} distinct filters`
        throw new ApiError('RATE_LIMITED', message, { reason: 'too_many_at_once', retryAfterSeconds: 10 })
      }
      channel = workspace.add(filter)
      this.workspaces.set(workspaceId, workspace)
      this.count++
      if (isBySession(filter)) this.bySession++
    }
    channel.members++
    return channel
  }

  leave(channel: Channel): void {
    channel.members--
    if (channel.members > 0) return
    const { workspace } = channel
    workspace.remove(channel)
    this.count--
    if (isBySession(channel.filter)) this.bySession--
    if (workspace.size === 0) this.workspaces.delete(workspace.workspaceId)
  }

  /** A copy of all live subscriptions, so that the caller may change the channels. */
  allLive(): Subscription[] {
    return [...this.workspaces.values()].flatMap((workspace) => workspace.allLive())
  }
}

/**
 * Live subscriptions of a channel that receive the same bytes in one publish call, so that the text is encoded only once.
 * Only subscriptions whose queue has room are members, so that nothing is dropped.
 */
class Shard {
  readonly members = new Set<Subscription>()
  private readonly topic = `feed ${++topics}`

  constructor(readonly key: string) {}

  get hasRoom(): boolean {
    return this.members.size < MEMBERS_MAX
  }

  add(subscription: Subscription): void {
    this.members.add(subscription)
    subscription.shard = this
    subscription.outlet.sharing?.connection.enter(this.topic)
  }

  remove(subscription: Subscription): void {
    this.members.delete(subscription)
    subscription.shard = undefined
    subscription.outlet.sharing?.connection.exit(this.topic)
  }

  /** Sends the packet to all members. */
  send(packet: Packet): void {
    const [first] = this.members
    first?.outlet.sharing?.publish(this.topic, packet)
    for (const subscription of this.members) {
      subscription.position = packet.lastSeq
      subscription.outlet.sharing?.connection.sent()
    }
  }
}
