import { Counts } from '../../base/counts.ts'

interface Waiting {
  readonly bytes: number
  readonly resolve: () => void
}

/**
 * Bytes that may be in memory at once. No workspace has more than half of them; those of one workspace wait in order, and
 * workspaces that wait take turns.
 */
export class ByteBudget {
  /** By workspace: those of one that waits for its own share are not in the way of others. */
  private readonly held = new Counts()
  /** In the order of turns. */
  private readonly queues = new Map<string, Waiting[]>()

  constructor(private readonly total: number) {}

  /** Resolves with what gives the bytes back. Whoever needs more than a share gets all of it. */
  async take(workspaceId: string, bytes: number): Promise<() => void> {
    const taken = Math.min(bytes, this.share)
    await new Promise<void>((resolve) => {
      const queue = this.queues.get(workspaceId)
      if (queue === undefined) this.queues.set(workspaceId, [{ bytes: taken, resolve }])
      else queue.push({ bytes: taken, resolve })
      this.grant()
    })
    return () => {
      this.held.remove(workspaceId, taken)
      this.grant()
    }
  }

  private get share(): number {
    return this.total / 2
  }

  private grant(): void {
    for (const [workspaceId, queue] of this.queues) {
      if (this.held.of(workspaceId) + queue[0].bytes > this.share) continue
      // The others wait, too: a large amount would never be free otherwise.
      if (this.held.total + queue[0].bytes > this.total) return
      const { bytes, resolve } = queue.shift()!
      this.queues.delete(workspaceId)
      if (queue.length > 0) this.queues.set(workspaceId, queue)
      this.held.add(workspaceId, bytes)
      resolve()
    }
  }
}
