/** Attempts under way in this process: each holds a socket and a body. */
const IN_FLIGHT_MAX = 1_024
/** Callers to wake for a free slot. More than one, because some may be of a workspace that already has its share. */
const TOLD_MAX = 8

/**
 * Limits the attempts of all endpoints that are under way at once. A workspace never has more than are left for all others, so
 * that 100 hanging endpoints of one workspace do not keep another from delivering.
 */
export class Slots {
  private readonly taken = new Map<string, number>()
  private total = 0
  /** Called when a slot is free; whoever finds none then waits behind the others. */
  private readonly waiting = new Set<() => void>()

  constructor(private readonly max = IN_FLIGHT_MAX) {}

  get inFlight(): number {
    return this.total
  }

  /** Takes a slot if there is one. Otherwise `onFree` is called once, when there may be one. */
  take(workspaceId: string, onFree: () => void): boolean {
    const own = this.taken.get(workspaceId) ?? 0
    if (own + this.total >= this.max) {
      this.waiting.add(onFree)
      return false
    }
    this.waiting.delete(onFree)
    this.taken.set(workspaceId, own + 1)
    this.total++
    return true
  }

  release(workspaceId: string): void {
    const own = (this.taken.get(workspaceId) ?? 0) - 1
    if (own > 0) this.taken.set(workspaceId, own)
    else this.taken.delete(workspaceId)
    this.total--
    for (const each of [...this.waiting.keys().take(TOLD_MAX)]) {
      this.waiting.delete(each)
      each()
    }
  }

  /** Forgets a caller that waits. */
  forget(onFree: () => void): void {
    this.waiting.delete(onFree)
  }
}
