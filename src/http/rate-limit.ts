import type { Clock } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { type Bucket, Buckets } from './buckets.ts'

/** The budgets of a key, counted separately, so that batching is not penalized (docs/specification.md#rate-limits). */
const BUDGETS = {
  ingest: { limit: 'ingestRequestsPerMinute', windowSeconds: 60, counts: 'ingest requests' },
  events: { limit: 'eventsPerSecond', windowSeconds: 1, counts: 'events' },
  invokes: { limit: 'invokesPerMinute', windowSeconds: 60, counts: 'invocations' },
  reads: { limit: 'readsPerMinute', windowSeconds: 60, counts: 'requests' },
  queries: { limit: 'queriesPerMinute', windowSeconds: 60, counts: 'queries' },
} as const
export type Budget = keyof typeof BUDGETS

/** What each key may spend; 0 means unlimited (docs/specification.md#rate-limits). */
export type RateLimits = Readonly<Record<(typeof BUDGETS)[Budget]['limit'], number>>

export interface RateLimiterOptions {
  readonly clock: Clock
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
  private readonly clock: Clock
  private readonly monotonicMs: () => number
  private readonly nodes: () => number

  constructor(
    limits: RateLimits,
    { clock, monotonicMs = () => performance.now(), nodes = () => 1 }: RateLimiterOptions,
  ) {
    this.clock = clock
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
      { retryAfterSeconds },
    )
  }

  private writeHeaders(policy: Policy, budget: Budget, bucket: Bucket, headers: Record<string, string | number>): void {
    const remaining = bucket.tokens > 0 ? Math.floor(bucket.tokens) : 0
    const untilFull = Math.ceil((policy.quota - bucket.tokens) / policy.buckets.perMs / 1000)
    headers['ratelimit-policy'] = policy.header
    headers.ratelimit = `"${budget}";r=${remaining};t=${untilFull}`
    headers['x-ratelimit-limit'] = policy.quotaText
    headers['x-ratelimit-remaining'] = `${remaining}`
    headers['x-ratelimit-reset'] = `${Math.ceil(this.clock.now() / 1000) + untilFull}`
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
    quotaText: `${quota}`,
    buckets: new Buckets(quota, windowSeconds),
  }
}
