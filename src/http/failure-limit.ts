import { ApiError } from '../base/errors.ts'
import { Buckets } from './buckets.ts'

export interface FailureLimitOptions {
  /** What failed, in the plural, for the message: `wrong operator tokens`. */
  readonly what: string
  /** Failures per address and minute; 0: unlimited. */
  readonly perMinute: number
  /** Failures of all addresses together per minute; undefined: unlimited. */
  readonly totalPerMinute?: number
  /** Milliseconds that never jump, unlike the wall clock. */
  readonly monotonicMs?: () => number
}

/** An attempt in progress. It counts as a failure until {@link forgive} is called. */
interface Attempt {
  forgive(): void
}

const UNLIMITED: Attempt = { forgive() {} }
const TOTAL = 'total'
const WINDOW_SECONDS = 60

/**
 * Limits failed attempts per address and in total. Successes cost nothing. When the total limit is reached, addresses with
 * recent failures are refused, while any other address still gets its first attempt: an attack from many addresses does
 * not lock out legitimate callers.
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
   * @throws ApiError RATE_LIMITED, whether or not the attempt would have succeeded
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

  private refusal(source: string, retryAfterSeconds: number): ApiError {
    return new ApiError('RATE_LIMITED', `too many ${this.options.what} ${source}; retry in ${retryAfterSeconds} s`, {
      retryAfterSeconds,
    })
  }
}
