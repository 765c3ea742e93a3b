import type { Activity } from './activity.ts'
import type { Filter } from './filter.ts'
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
  /** What matched in the round under way. */
  found: Activity[] = []
  /** By their key, the shards that take the next members. */
  private readonly filling = new Map<string, Shard>()

  constructor(
    readonly workspaceId: string,
    readonly filter: Filter,
  ) {}

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

/** The channels somebody is subscribed to, found by what they may match. */
export class Channels {
  private readonly workspaces = new Map<string, WorkspaceChannels>()

  /** The channel of this filter, new if need be, with one member more. */
  join(workspaceId: string, filter: Filter): Channel {
    let workspace = this.workspaces.get(workspaceId)
    if (workspace === undefined) {
      workspace = { byKey: new Map(), general: new Set(), byRun: new Map() }
      this.workspaces.set(workspaceId, workspace)
    }
    let channel = workspace.byKey.get(filter.key)
    if (channel === undefined) {
      channel = new Channel(workspaceId, filter)
      workspace.byKey.set(filter.key, channel)
    }
    channel.members++
    return channel
  }

  leave(channel: Channel): void {
    channel.members--
    if (channel.members > 0) return
    const workspace = this.workspaces.get(channel.workspaceId)
    workspace?.byKey.delete(channel.filter.key)
    if (workspace?.byKey.size === 0) this.workspaces.delete(channel.workspaceId)
  }

  /** Has the channel looked at for live rows, from its first live member on. */
  activate(channel: Channel): void {
    const workspace = this.workspaces.get(channel.workspaceId)
    const { runIds } = channel.filter
    if (runIds === undefined) workspace?.general.add(channel)
    else for (const runId of runIds) kept(workspace?.byRun, runId)?.add(channel)
  }

  /** The inverse of {@link activate}. */
  deactivate(channel: Channel): void {
    const workspace = this.workspaces.get(channel.workspaceId)
    const { runIds } = channel.filter
    if (runIds === undefined) workspace?.general.delete(channel)
    else
      for (const runId of runIds) {
        const channels = workspace?.byRun.get(runId)
        channels?.delete(channel)
        if (channels?.size === 0) workspace?.byRun.delete(runId)
      }
  }

  /** Calls `visit` with every active channel that rows of this run may match. */
  visit(workspaceId: string, runId: string, visit: (channel: Channel) => void): void {
    const workspace = this.workspaces.get(workspaceId)
    if (workspace === undefined) return
    for (const channel of workspace.general) visit(channel)
    const ofRun = workspace.byRun.get(runId)
    if (ofRun !== undefined) for (const channel of ofRun) visit(channel)
  }

  /** Every live subscription, as a list of its own: the caller may change the channels. */
  allLive(): Subscription[] {
    const all: Subscription[] = []
    for (const { byKey } of this.workspaces.values())
      for (const { singles, shards } of byKey.values()) {
        all.push(...singles)
        for (const { members } of shards) all.push(...members)
      }
    return all
  }
}

interface WorkspaceChannels {
  readonly byKey: Map<string, Channel>
  readonly general: Set<Channel>
  /** A channel for certain runs is looked at for rows of those only. */
  readonly byRun: Map<string, Set<Channel>>
}

function kept(map: Map<string, Set<Channel>> | undefined, runId: string): Set<Channel> | undefined {
  const known = map?.get(runId)
  if (known !== undefined) return known
  const fresh = new Set<Channel>()
  map?.set(runId, fresh)
  return fresh
}
