import { ApiError } from '../base/errors.ts'
import { type Channel, type Subscription, WorkspaceChannels } from './channel.ts'
import type { Filter } from './filter.ts'

/** All channels with subscriptions, by workspace. */
export class Channels {
  private readonly workspaces = new Map<string, WorkspaceChannels>()
  private count = 0

  /** @param perWorkspaceMax distinct filters that a workspace may have at the same time */
  constructor(private readonly perWorkspaceMax: number) {}

  /** The number of distinct filters of all workspaces. */
  get size(): number {
    return this.count
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

  /** Includes the channel in live matching. Called for its first live member. */
  activate(channel: Channel): void {
    channel.workspace.live.add(channel)
  }

  /** The inverse of {@link activate}. */
  deactivate(channel: Channel): void {
    channel.workspace.live.delete(channel)
  }

  /** A copy of all live subscriptions, so that the caller may change the channels. */
  allLive(): Subscription[] {
    return [...this.workspaces.values()].flatMap((workspace) => workspace.allLive())
  }
}

function tooManyFilters(max: number): ApiError {
  const message = `the open feeds of a workspace may use at most ${max} distinct filters`
  return new ApiError('RATE_LIMITED', message, { retryAfterSeconds: 10 })
}
