import type { Activity } from './activity.ts'
import type { Filter } from './filter.ts'
import type { Subscription } from './subscription.ts'

/** All subscriptions of a workspace whose filters mean the same: what matches is found and encoded once for them. */
export class Channel {
  /** Those that have everything up to the hub's position. */
  readonly live = new Set<Subscription>()
  /** How many subscriptions there are, live or not. */
  members = 0
  /** What matched in the round under way. */
  found: Activity[] = []

  constructor(
    readonly workspaceId: string,
    readonly filter: Filter,
  ) {}
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
    for (const { byKey } of this.workspaces.values()) for (const { live } of byKey.values()) all.push(...live)
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
