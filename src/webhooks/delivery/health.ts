import type { Outcome } from './attempt.ts'
import type { Schedule } from './schedule.ts'

/** What the row of an endpoint says of its attempts, Unix milliseconds. */
export interface StoredHealth {
  /** The first failure since the last success. */
  readonly failingSince: number | null
  readonly succeededAt: number | null
  readonly failedAt: number | null
}

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
      this.state = { ...this.state, succeededAt: now, failingSince: null }
      return
    }
    const failingSince = this.state.failingSince ?? now
    this.state = { ...this.state, failedAt: now, failingSince }
    if (httpStatus === GONE) this.disabledBecause ??= 'the receiver answered 410 Gone'
    else if (now - failingSince >= disableAfterMs)
      this.disabledBecause ??= `every attempt since ${new Date(failingSince).toISOString()} has failed`
  }
}
