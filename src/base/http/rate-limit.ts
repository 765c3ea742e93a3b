import { ApiError } from '../errors.ts'

/** The budgets of a key, counted separately, so that batching is not penalized (docs/api.md#rate-limits). */
const BUDGETS = {
  ingest: { limit: 'ingestRequestsPerMinute', windowSeconds: 60, counts: 'ingest requests' },
  events: { limit: 'eventsPerSecond', windowSeconds: 1, counts: 'events' },
  invokes: { limit: 'invokesPerMinute', windowSeconds: 60, counts: 'invocations' },
  reads: { limit: 'readsPerMinute', windowSeconds: 60, counts: 'requests' },
  queries: { limit: 'queriesPerMinute', windowSeconds: 60, counts: 'queries' },
} as const
export type Budget = keyof typeof BUDGETS

/** What each key may spend; 0 means unlimited (docs/api.md#rate-limits). */
export type RateLimits = Readonly<Record<(typeof BUDGETS)[Budget]['limit'], number>>

export interface RateLimiterOptions {
  /** Milliseconds that never jump, unlike the wall clock. */
  readonly monotonicMs?: () => number
  /** How many nodes share each budget, apart from that of events, which the owner of a workspace's partition keeps alone. */
  readonly nodes?: () => number
}

/**
 * Token buckets, one for each key and budget, in this process.
 *
 * A bucket holds the quota of one window and refills evenly. A cost above the quota passes when the bucket is full and
 * leaves it negative; otherwise such a batch could never pass. An unlimited budget (0) sends no headers.
 */
export class RateLimiter {
  private readonly policies: Readonly<Record<Budget, Policy>>
  private readonly monotonicMs: () => number
  private readonly nodes: () => number

  constructor(limits: RateLimits, { monotonicMs = () => performance.now(), nodes = () => 1 }: RateLimiterOptions = {}) {
    this.monotonicMs = monotonicMs
    this.nodes = nodes
    const policies = Object.entries(BUDGETS).map(([name, { limit, windowSeconds }]) => [
      name,
      policyOf(name, limits[limit], windowSeconds),
    ])
    this.policies = Object.fromEntries(policies)
  }

  /**
   * Spends `cost` of a key's budget and writes the rate-limit headers, also on refusal.
   *
   * @param headers of the response, Elysia's `set.headers`; undefined if they already describe another budget
   * @throws ApiError RATE_LIMITED with the seconds until the same cost passes
   */
  take(keyId: string, budget: Budget, cost: number, headers?: Record<string, string | number>): void {
    const policy = this.policies[budget]
    if (policy.quota === 0) return
    const now = this.monotonicMs()
    const bucket = policy.buckets.at(keyId, now)
    const share = budget === 'events' ? cost : cost * this.nodes()
    const needed = Math.min(share, policy.quota)
    const allowed = bucket.tokens >= needed
    if (allowed) bucket.tokens -= share
    if (headers !== undefined) this.writeHeaders(policy, budget, bucket, headers)
    if (allowed) return
    const retryAfterSeconds = policy.buckets.secondsUntil(bucket, needed)
    throw new ApiError(
      'RATE_LIMITED',
      `too many ${BUDGETS[budget].counts}: the limit is ${policy.quota} per key in ${policy.windowSeconds} s; retry in ${retryAfterSeconds} s`,
      { reason: 'rate_limit', retryAfterSeconds },
    )
  }

  private writeHeaders(policy: Policy, budget: Budget, bucket: Bucket, headers: Record<string, string | number>): void {
    const remaining = bucket.tokens > 0 ? Math.floor(bucket.tokens) : 0
    const untilFull = Math.ceil((policy.quota - bucket.tokens) / policy.buckets.perMs / 1000)
    headers['ratelimit-policy'] = policy.header
    headers.ratelimit = `"${budget}";r=${remaining};t=${untilFull}`
  }
}

type Policy = ReturnType<typeof policyOf>

function policyOf(budget: string, quota: number, windowSeconds: number) {
  return {
    /** 0: unlimited. */
    quota,
    windowSeconds,
    /** `RateLimit-Policy`. */
    header: `"${budget}";q=${quota};w=${windowSeconds}`,
    buckets: new Buckets(quota, windowSeconds),
  }
}

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
      reason: 'too_many_attempts',
      retryAfterSeconds,
    })
  }
}

/** Most buckets kept. Full ones are dropped first, which loses nothing. */
const BUCKETS_MAX = 20_000

interface Bucket {
  /** Negative after a cost larger than the whole bucket. */
  tokens: number
  atMs: number
}

/**
 * Token buckets of one size, one per name, in bounded number. A bucket holds the quota of one window and refills
 * evenly.
 */
class Buckets {
  readonly perMs: number
  private readonly buckets = new Map<string, Bucket>()

  /** @param quota size of a bucket, and the tokens added to it per `windowSeconds` */
  constructor(
    readonly quota: number,
    readonly windowSeconds: number,
  ) {
    this.perMs = quota / windowSeconds / 1000
  }

  /** The bucket of that name, refilled up to `now` (monotonic milliseconds). Creates it if it is missing. */
  at(name: string, now: number): Bucket {
    const bucket = this.known(name, now)
    if (bucket !== undefined) return bucket
    if (this.buckets.size >= BUCKETS_MAX) this.forget(now)
    const full: Bucket = { tokens: this.quota, atMs: now }
    this.buckets.set(name, full)
    return full
  }

  /** Like {@link at}, but does not create the bucket. */
  known(name: string, now: number): Bucket | undefined {
    const bucket = this.buckets.get(name)
    if (bucket === undefined) return undefined
    bucket.tokens = Math.min(this.quota, bucket.tokens + (now - bucket.atMs) * this.perMs)
    bucket.atMs = now
    return bucket
  }

  /** Whole seconds until a bucket holds `tokens`, at least one. */
  secondsUntil(bucket: Bucket, tokens: number): number {
    return Math.max(1, Math.ceil((tokens - bucket.tokens) / this.perMs / 1000))
  }

  /** Evicts all full buckets, and if that is not enough, the oldest tenth. */
  private forget(now: number): void {
    for (const [name, { tokens, atMs }] of this.buckets)
      if (tokens + (now - atMs) * this.perMs >= this.quota) this.buckets.delete(name)
    let surplus = this.buckets.size - BUCKETS_MAX * 0.9
    for (const name of this.buckets.keys()) {
      if (surplus-- <= 0) return
      this.buckets.delete(name)
    }
  }
}
