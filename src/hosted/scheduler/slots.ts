/**
 * How many runs a process drives at once, and whose. A workspace that has runs in line gets the next place only when its
 * turn comes: no workspace, however much it queues, makes the others wait for more than one round.
 */
export class Slots {
  private taken = 0
  private readonly takenBy = new Map<string, number>()
  private waiting: ReadonlySet<string> = new Set()
  /** Whose turn it was last. */
  private last = ''

  constructor(
    private readonly total: number,
    private readonly perWorkspace: number,
  ) {}

  /** For a run that need not wait in line. */
  take(workspaceId: string): boolean {
    const isFull = this.taken >= this.total || this.of(workspaceId) >= this.perWorkspace
    if (isFull || this.waiting.has(workspaceId)) return false
    this.force(workspaceId)
    return true
  }

  /** For a run that is driven in any case. */
  force(workspaceId: string): void {
    this.taken++
    this.takenBy.set(workspaceId, this.of(workspaceId) + 1)
  }

  give(workspaceId: string): void {
    this.taken--
    const left = this.of(workspaceId) - 1
    if (left > 0) this.takenBy.set(workspaceId, left)
    else this.takenBy.delete(workspaceId)
  }

  inLine(workspaceId: string): void {
    this.waiting = new Set([...this.waiting, workspaceId])
  }

  /** Who was found in line. */
  line(workspaces: readonly string[]): void {
    this.waiting = new Set(workspaces)
  }

  get isAnyInLine(): boolean {
    return this.waiting.size > 0
  }

  /** Takes the free slots, one by one for each workspace in line, beginning after the one that was last. */
  share(workspaces: readonly string[]): Map<string, number> {
    const line = [...workspaces].sort()
    const from = line.findIndex((workspace) => workspace > this.last)
    const order = from <= 0 ? line : [...line.slice(from), ...line.slice(0, from)]
    const shares = new Map<string, number>()
    for (let given = true; given && this.taken < this.total; ) {
      given = false
      for (const workspace of order) {
        if (this.taken >= this.total || this.of(workspace) >= this.perWorkspace) continue
        this.force(workspace)
        shares.set(workspace, (shares.get(workspace) ?? 0) + 1)
        this.last = workspace
        given = true
      }
    }
    return shares
  }

  private of(workspaceId: string): number {
    return this.takenBy.get(workspaceId) ?? 0
  }
}
