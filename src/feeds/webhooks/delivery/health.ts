import type { Outcome } from './attempt.ts'
import type { Schedule } from './schedule.ts'

/** What the row of an endpoint says of its attempts, Unix milliseconds. */
export interface StoredHealth {
  /** The first failure since the last success. */
  readonly failingSince: number | null
  /** The time over which attempts have failed since then, milliseconds. */
  readonly failingMs: number
  readonly succeededAt: number | null
  readonly failedAt: number | null
}

/**
 * An endpoint is disabled after at least so many failures, spread over the time: what lies between two counts up to a part of
 * it. So a clock that jumps ahead by days disables none.
 */
const PARTS = 5
/** The receiver wants no more deliveries. */
const GONE = 410

/** Whether an endpoint works, and whether to disable it. */
export class Health {
  /** Why the endpoint is disabled; null if it is not. */
  disabledBecause: string | null = null

  constructor(private state: StoredHealth) {}

  get stored(): StoredHealth {
    return this.state
  }

  note(
    { isSuccess, httpStatus }: Pick<Outcome, 'isSuccess' | 'httpStatus'>,
    { disableAfterMs }: Schedule,
    now: number,
  ): void {
    if (isSuccess) {
      this.state = { ...this.state, succeededAt: now, failingSince: null, failingMs: 0 }
      return
    }
    const { failingSince, failedAt } = this.state
    const sinceMs = failingSince === null ? 0 : now - (failedAt ?? failingSince)
    const failingMs =
      (failingSince === null ? 0 : this.state.failingMs) + Math.min(Math.max(0, sinceMs), disableAfterMs / PARTS)
    const since = failingSince ?? now
    this.state = { ...this.state, failedAt: now, failingSince: since, failingMs }
    if (httpStatus === GONE) this.disabledBecause ??= 'the receiver answered 410 Gone'
    else if (failingMs >= disableAfterMs)
      this.disabledBecause ??= `every attempt since ${new Date(since).toISOString()} has failed`
  }
}
