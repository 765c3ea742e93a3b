import { ApiError } from '../http/errors.ts'
import { Bits } from './bits.ts'
import type { Filter } from './filter.ts'
import { FilterIndex } from './filter-index.ts'
import { Shard } from './shard.ts'
import type { Subscription } from './subscription.ts'

/** All subscriptions of a workspace whose filters mean the same: what matches is found and encoded once for them. */
export class Channel {
  /** Those that have everything up to the hub's position, by themselves or in shards. */
  readonly singles = new Set<Subscription>()
  readonly shards = new Set<Shard>()
  liveMembers = 0
  /** How many subscriptions there are, live or not. */
  members = 0
  /** By their key, the shards that take the next members. */
  private readonly filling = new Map<string, Shard>()

  constructor(
    readonly workspace: WorkspaceChannels,
    readonly filter: Filter,
    /** Its place in the index of the workspace's filters. */
    readonly slot: number,
  ) {}

  get workspaceId(): string {
    return this.workspace.workspaceId
  }

  addLive(subscription: Subscription): void {
    this.liveMembers++
    const { sharing } = subscription.outlet
    if (sharing === undefined) this.singles.add(subscription)
    else this.shardWithRoom(sharing.key).add(subscription)
  }

  removeLive(subscription: Subscription): void {
    this.liveMembers--
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

/** Some channels of a workspace. */
export class ChannelSet {
  readonly members = new Set<Channel>()
  /** Of the members, in the index of the workspace's filters. */
  readonly slots = new Bits()

  constructor(readonly workspace: WorkspaceChannels) {}

  add(channel: Channel): void {
    this.members.add(channel)
    this.slots.add(channel.slot)
  }

  delete(channel: Channel): void {
    this.members.delete(channel)
    this.slots.delete(channel.slot)
  }
}

/** The channels of a workspace: one for each different filter that somebody is subscribed with. */
export class WorkspaceChannels {
  readonly index = new FilterIndex()
  /** Those with live members. */
  readonly live = new ChannelSet(this)
  private readonly byKey = new Map<string, Channel>()
  private readonly bySlot: (Channel | undefined)[] = []

  constructor(readonly workspaceId: string) {}

  get size(): number {
    return this.byKey.size
  }

  /** The channel of this slot of the index, while there is one. */
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

  values(): Iterable<Channel> {
    return this.byKey.values()
  }
}

/** The channels that somebody is subscribed to, by workspace. */
export class Channels {
  private readonly workspaces = new Map<string, WorkspaceChannels>()
  private count = 0

  /** @param perWorkspaceMax different filters that a workspace may have at once */
  constructor(private readonly perWorkspaceMax: number) {}

  /** Different filters of all workspaces. */
  get size(): number {
    return this.count
  }

  of(workspaceId: string): WorkspaceChannels | undefined {
    return this.workspaces.get(workspaceId)
  }

  /**
   * The channel of this filter, new if need be, with one member more.
   * @throws ApiError RATE_LIMITED when the workspace has as many different filters as it may
   */
  join(workspaceId: string, filter: Filter): Channel {
    const workspace = this.workspaces.get(workspaceId) ?? new WorkspaceChannels(workspaceId)
    let channel = workspace.find(filter)
    if (channel === undefined) {
      if (workspace.size >= this.perWorkspaceMax) throw tooManyFilters(this.perWorkspaceMax)
      channel = workspace.add(filter)
      this.workspaces.set(workspaceId, workspace)
      this.count++
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
    if (workspace.size === 0) this.workspaces.delete(workspace.workspaceId)
  }

  /** Has the channel looked at for live rows, from its first live member on. */
  activate(channel: Channel): void {
    channel.workspace.live.add(channel)
  }

  /** The inverse of {@link activate}. */
  deactivate(channel: Channel): void {
    channel.workspace.live.delete(channel)
  }

  /** Every live subscription, as a list of its own: the caller may change the channels. */
  allLive(): Subscription[] {
    const all: Subscription[] = []
    for (const workspace of this.workspaces.values())
      for (const { singles, shards } of workspace.values()) {
        all.push(...singles)
        for (const { members } of shards) all.push(...members)
      }
    return all
  }
}

function tooManyFilters(max: number): ApiError {
  const message = `a workspace may have ${max} different filters on its open feeds (FEED_FILTERS_PER_WORKSPACE)`
  return new ApiError('RATE_LIMITED', message, { retryAfterSeconds: 10 })
}
