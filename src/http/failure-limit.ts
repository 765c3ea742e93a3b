import { Buckets } from './buckets.ts'
import { ApiError } from './errors.ts'

export interface FailureLimitOptions {
  /** What failed, in the plural: `wrong operator tokens`. */
  readonly what: string
  /** Failures of one address in a minute; 0: unlimited. */
  readonly perMinute: number
  /** Of all addresses together; undefined: unlimited. */
  readonly totalPerMinute?: number
  /** Milliseconds that never jump, unlike the wall clock. */
  readonly monotonicMs?: () => number
}

/** An attempt whose outcome is not known yet: it counts as a failure until it is forgiven. */
export interface Attempt {
  forgive(): void
}

const UNLIMITED: Attempt = { forgive() {} }
const TOTAL = 'total'
const WINDOW_SECONDS = 60

/**
 * Bounds how often callers of one address may fail, and callers of all addresses. Successes cost nothing. When the bound of all is
 * reached, addresses that have failed lately are refused, and any other has its first attempt: so many callers who
 * guess do not lock out the one who knows.
 */
export class FailureLimit {
  private readonly addresses: Buckets
  private readonly total: Buckets | undefined
  private readonly monotonicMs: () => number

  constructor(private readonly options: FailureLimitOptions) {
    const { perMinute, totalPerMinute, monotonicMs = () => performance.now() } = options
    this.addresses = new Buckets(perMinute, WINDOW_SECONDS)
    this.total = totalPerMinute === undefined ? undefined : new Buckets(totalPerMinute, WINDOW_SECONDS)
    this.monotonicMs = monotonicMs
  }

  /**
   * Begins an attempt.
   * @throws ApiError RATE_LIMITED: whether it would have succeeded is not looked at
   */
  begin(address: string): Attempt {
    const { addresses } = this
    if (addresses.quota === 0) return UNLIMITED
    const now = this.monotonicMs()
    const total = this.total?.at(TOTAL, now)
    const known = addresses.known(address, now)
    if (known !== undefined && known.tokens < 1)
      throw this.refusal('from this address', addresses.secondsUntil(known, 1))
    const hasFailed = known !== undefined && known.tokens < addresses.quota
    if (total !== undefined && total.tokens < 1 && hasFailed)
      throw this.refusal('from several addresses', this.total!.secondsUntil(total, 1))
    const bucket = addresses.at(address, now)
    bucket.tokens--
    if (total !== undefined) total.tokens = Math.max(0, total.tokens - 1)
    return {
      forgive() {
        bucket.tokens++
        if (total !== undefined) total.tokens++
      },
    }
  }

  private refusal(whence: string, retryAfterSeconds: number): ApiError {
    return new ApiError('RATE_LIMITED', `too many ${this.options.what} ${whence}; retry in ${retryAfterSeconds} s`, {
      retryAfterSeconds,
    })
  }
}
