import { ApiError } from '../http/errors.ts'

/** Counts what runs for each workspace. */
export class Places {
  private readonly taken = new Map<string, number>()

  /** @param atOnce places of a workspace */
  constructor(private readonly atOnce: number) {}

  /**
   * @returns gives the place back; calling it again does nothing
   * @throws ApiError RATE_LIMITED when all are taken
   */
  take(workspaceId: string): () => void {
    const others = this.taken.get(workspaceId) ?? 0
    if (others >= this.atOnce) {
      const problem = `${others} queries of this workspace are running, as many as may at once: wait for one to end`
      throw new ApiError('RATE_LIMITED', problem, { retryAfterSeconds: 1 })
    }
    this.taken.set(workspaceId, others + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      const left = (this.taken.get(workspaceId) ?? 1) - 1
      if (left === 0) this.taken.delete(workspaceId)
      else this.taken.set(workspaceId, left)
    }
  }
}

/**
 * The time that a query may keep the engine busy: what passes while somebody waits for the engine, and not while the
 * engine waits for a reader.
 */
export class EngineTime {
  private leftMs: number

  /** @param onSpent ends the query; what is being waited for then fails */
  constructor(
    limitMs: number,
    private readonly onSpent: () => void,
  ) {
    this.leftMs = limitMs
  }

  async during<T>(waiting: Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const timer = setTimeout(this.onSpent, this.leftMs)
    try {
      return await waiting
    } finally {
      clearTimeout(timer)
      this.leftMs = Math.max(0, this.leftMs - (performance.now() - startedAt))
    }
  }
}
