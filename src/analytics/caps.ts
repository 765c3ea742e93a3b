import { type Clock, systemClock } from '../clock.ts'
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
      const problem = `query concurrency limit reached: ${others} queries of this workspace are running; retry when one finishes`
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

const PENALTY_GROWTH = 4
const PENALTY_SECONDS_MAX = 3_600
/** After so long without another one, the next is the first again. */
const FORGOTTEN_AFTER_MS = 6 * 3_600_000

/**
 * Workspaces whose queries cost everybody a restart of the engine. Their queries are refused for a while, each time for
 * longer, so that one workspace cannot take SQL away from the others.
 */
export class Penalties {
  private readonly strikes = new Map<string, { count: number; untilMs: number }>()

  /** @param firstSeconds the shortest one; 0 for none at all */
  constructor(
    private readonly firstSeconds: number,
    private readonly clock: Clock = systemClock,
  ) {}

  /** A query of the workspace could not be ended but with the engine. */
  add(workspaceId: string): void {
    const now = this.clock.now()
    for (const [id, { untilMs }] of this.strikes) if (now - untilMs > FORGOTTEN_AFTER_MS) this.strikes.delete(id)
    const count = (this.strikes.get(workspaceId)?.count ?? 0) + 1
    const seconds = Math.min(this.firstSeconds * PENALTY_GROWTH ** (count - 1), PENALTY_SECONDS_MAX)
    this.strikes.set(workspaceId, { count, untilMs: now + seconds * 1000 })
  }

  /** @throws ApiError RATE_LIMITED while queries of the workspace are refused */
  check(workspaceId: string): void {
    const leftMs = (this.strikes.get(workspaceId)?.untilMs ?? 0) - this.clock.now()
    if (leftMs <= 0) return
    const problem =
      'a query of this workspace could not be stopped at its time limit and made a restart of the SQL engine necessary: ' +
      'queries of the workspace are refused for a while'
    throw new ApiError('RATE_LIMITED', problem, { retryAfterSeconds: Math.ceil(leftMs / 1000) })
  }
}
