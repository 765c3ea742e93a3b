interface Waiting {
  readonly bytes: number
  readonly resolve: () => void
}

/**
 * Bytes that may be in memory at once. No workspace has more than half of them; those of one workspace wait in order, and
 * workspaces that wait take turns.
 */
export class ByteBudget {
  private free: number
  /** By workspace: those of one that waits for its own share are not in the way of others. */
  private readonly held = new Map<string, number>()
  /** In the order of turns. */
  private readonly queues = new Map<string, Waiting[]>()

  constructor(private readonly total: number) {
    this.free = total
  }

  /** Resolves with what gives the bytes back. Whoever needs more than a share gets all of it. */
  async take(workspaceId: string, bytes: number): Promise<() => void> {
    const taken = Math.min(bytes, this.share)
    await new Promise<void>((resolve) => {
      const queue = this.queues.get(workspaceId)
      if (queue === undefined) this.queues.set(workspaceId, [{ bytes: taken, resolve }])
      else queue.push({ bytes: taken, resolve })
      this.grant()
    })
    return () => this.release(workspaceId, taken)
  }

  private get share(): number {
    return this.total / 2
  }

  private release(workspaceId: string, bytes: number): void {
    this.free += bytes
    const held = this.held.get(workspaceId)! - bytes
    if (held === 0) this.held.delete(workspaceId)
    else this.held.set(workspaceId, held)
    this.grant()
  }

  private grant(): void {
    for (const [workspaceId, queue] of this.queues) {
      const held = this.held.get(workspaceId) ?? 0
      if (held + queue[0].bytes > this.share) continue
      // The others wait, too: a large amount would never be free otherwise.
      if (queue[0].bytes > this.free) return
      const { bytes, resolve } = queue.shift()!
      this.queues.delete(workspaceId)
      if (queue.length > 0) this.queues.set(workspaceId, queue)
      this.free -= bytes
      this.held.set(workspaceId, held + bytes)
      resolve()
    }
  }
}
