/** Attempts that an endpoint has under way at most. */
const IN_FLIGHT_MAX = 16
/** The receiver, or a proxy in front of it, is overloaded. */
const OVERLOADED = new Set([429, 502, 504])
/** After so many failures in a row an endpoint gets one attempt at a time, with a pause in between. */
const FAILURES_MAX = 20
const PROBE_INTERVAL_MS = 1_000

/** What an attempt says about its endpoint. */
interface Result {
  readonly isSuccess: boolean
  readonly httpStatus: number | null
  /** The wait that the receiver asked for; 0 for none. */
  readonly retryAfterMs: number
}

/**
 * How many attempts an endpoint may have under way. An overloaded receiver halves that, and each full window of successes
 * adds one. A dead one is only probed: 100 dead endpoints would otherwise take the time of all others.
 */
export class Pace {
  private limit: number
  private underWay = 0
  private successes = 0
  private failuresInARow = 0
  private pausedUntil = 0
  private startedAt = 0

  constructor(private readonly max: number = IN_FLIGHT_MAX) {
    this.limit = max
  }

  /** @param now on a monotonic clock, like all times here: a step of the system clock neither ends nor prolongs a pause */
  hasRoom(now: number): boolean {
    if (this.underWay >= this.limit || now < this.pausedUntil) return false
    if (this.failuresInARow < FAILURES_MAX) return true
    return this.underWay === 0 && now - this.startedAt >= PROBE_INTERVAL_MS
  }

  started(now: number): void {
    this.underWay++
    this.startedAt = now
  }

  /** An attempt was interrupted. */
  cancelled(): void {
    this.underWay--
  }

  ended({ isSuccess, httpStatus, retryAfterMs }: Result, now: number): void {
    this.underWay--
    if (retryAfterMs > 0) this.pausedUntil = Math.max(this.pausedUntil, now + retryAfterMs)
    if (isSuccess) {
      this.failuresInARow = 0
      if (++this.successes < this.limit) return
      this.limit = Math.min(this.max, this.limit + 1)
    } else {
      this.failuresInARow++
      if (httpStatus !== null && OVERLOADED.has(httpStatus)) this.limit = Math.max(1, this.limit >> 1)
    }
    this.successes = 0
  }
}
