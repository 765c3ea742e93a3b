import { Counts } from '../../base/counts.ts'

/**
 * How many runs a process executes at once, and of which workspaces. Workspaces with queued runs get free slots in
 * round-robin order: however much one workspace queues, the others wait for at most one round.
 */
export class Slots {
  private readonly taken = new Counts()
  private queued = new Set<string>()
  /** Workspaces of runs that were queued since the queue was last begun to be read, which may have missed them. */
  private added = new Set<string>()
  /** The workspace that got the last slot. */
  private last = ''

  constructor(
    private readonly total: number,
    private readonly perWorkspace: number,
  ) {}

  /** A slot for a new run that has not been queued; false when it has to queue. */
  take(workspaceId: string): boolean {
    if (this.isFull(workspaceId) || this.queued.has(workspaceId)) return false
    this.force(workspaceId)
    return true
  }

  /** A slot for a run that is executed in any case. */
  force(workspaceId: string): void {
    this.taken.add(workspaceId)
  }

  release(workspaceId: string): void {
    this.taken.remove(workspaceId)
  }

  enqueued(workspaceId: string): void {
    this.queued.add(workspaceId)
    this.added.add(workspaceId)
  }

  /** The queue is about to be read. */
  readingQueue(): void {
    this.added = new Set()
  }

  /** Replaces the set of workspaces with queued runs by those that were read, and those added meanwhile. */
  setQueue(workspaces: readonly string[]): void {
    this.queued = new Set([...workspaces, ...this.added])
  }

  get isAnyQueued(): boolean {
    return this.queued.size > 0
  }

  /** Takes the free slots, one by one for each workspace with queued runs, starting after the one that got the last. */
  share(workspaces: readonly string[]): Map<string, number> {
    const queue = [...workspaces].sort()
    const from = queue.findIndex((workspace) => workspace > this.last)
    const order = from <= 0 ? queue : [...queue.slice(from), ...queue.slice(0, from)]
    const shares = new Map<string, number>()
    for (let given = true; given; ) {
      given = false
      for (const workspace of order) {
        if (this.isFull(workspace)) continue
        this.force(workspace)
        shares.set(workspace, (shares.get(workspace) ?? 0) + 1)
        this.last = workspace
        given = true
      }
    }
    return shares
  }

  private isFull(workspaceId: string): boolean {
    return this.taken.total >= this.total || this.taken.of(workspaceId) >= this.perWorkspace
  }
}
