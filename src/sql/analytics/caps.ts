import { ApiError } from '../../base/errors.ts'

const PENALTY_GROWTH = 4
const PENALTY_SECONDS_MAX = 3_600
/** After this long without another offence, the next penalty is the shortest again. */
const FORGOTTEN_AFTER_MS = 6 * 3_600_000

/** What an engine that is busy with other work still delivers; a stream of at least this rate never runs out of time. */
const DELIVERED_BYTES_PER_MS = 64

/**
 * Limits the time that a query keeps the engine busy. Time in which the engine waits for the reader does not count, and
 * what it delivers gives time back: a long answer that makes progress is not cut off because the machine is busy.
 */
export class EngineTime {
  private leftMs: number

  /** @param onSpent ends the query, so that the pending operation fails */
  constructor(
    private readonly limitMs: number,
    private readonly onSpent: () => void,
  ) {
    this.leftMs = limitMs
  }

  /** The engine has delivered a piece of the answer. */
  delivered(bytes: number): void {
    this.leftMs = Math.min(this.limitMs, this.leftMs + bytes / DELIVERED_BYTES_PER_MS)
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

/**
 * Penalties for workspaces whose queries forced a restart of the engine, which affects everyone. Their queries are refused
 * for a while, longer each time, so that one workspace cannot make SQL unavailable for the others.
 */
export class Penalties {
  private readonly strikes = new Map<string, { count: number; untilMs: number }>()

  /** @param firstSeconds the shortest penalty; 0 disables penalties */
  constructor(
    private readonly firstSeconds: number,
    /** Milliseconds on a clock that is never set: no jump of the system clock ends or prolongs a penalty. */
    private readonly monotonicMs = () => performance.now(),
  ) {}

  /** Records that a query of the workspace could only be ended by a restart of the engine. */
  add(workspaceId: string): void {
    const now = this.monotonicMs()
    for (const [id, { untilMs }] of this.strikes) if (now - untilMs > FORGOTTEN_AFTER_MS) this.strikes.delete(id)
    const count = (this.strikes.get(workspaceId)?.count ?? 0) + 1
    const seconds = Math.min(this.firstSeconds * PENALTY_GROWTH ** (count - 1), PENALTY_SECONDS_MAX)
    this.strikes.set(workspaceId, { count, untilMs: now + seconds * 1000 })
  }

  /** @throws ApiError RATE_LIMITED while queries of the workspace are refused */
  check(workspaceId: string): void {
    const leftMs = (this.strikes.get(workspaceId)?.untilMs ?? 0) - this.monotonicMs()
    if (leftMs <= 0) return
    const problem =
      'a query of this workspace could not be stopped at its time limit and forced a restart of the SQL engine; ' +
      'queries of this workspace are refused for a while'
    throw new ApiError('RATE_LIMITED', problem, {
      reason: 'too_many_at_once',
      retryAfterSeconds: Math.ceil(leftMs / 1000),
    })
  }
}
