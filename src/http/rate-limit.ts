import type { Clock } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { type Bucket, Buckets } from './buckets.ts'

/** Budgets per key; 0 means unlimited (docs/specification.md#rate-limits). */
export interface RateLimits {
  readonly ingestRequestsPerMinute: number
  readonly eventsPerSecond: number
  readonly invokesPerMinute: number
  readonly readsPerMinute: number
  readonly queriesPerMinute: number
}

/** The budgets of a key, counted separately, so that batching is not penalized (docs/specification.md#rate-limits). */
export type Budget = 'ingest' | 'events' | 'invokes' | 'reads' | 'queries'

const SPENT_ON: Record<Budget, string> = {
  ingest: 'ingest requests',
  events: 'events',
  invokes: 'invocations',
  reads: 'requests',
  queries: 'queries',
}

interface Policy {
  /** 0: unlimited. */
  readonly quota: number
  readonly windowSeconds: number
  /** `RateLimit-Policy`. */
  readonly header: string
  readonly quotaText: string
  readonly buckets: Buckets
}

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
  private readonly policies: Record<Budget, Policy>
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
    this.policies = {
      ingest: policy('ingest', limits.ingestRequestsPerMinute, 60),
      events: policy('events', limits.eventsPerSecond, 1),
      invokes: policy('invokes', limits.invokesPerMinute, 60),
      reads: policy('reads', limits.readsPerMinute, 60),
      queries: policy('queries', limits.queriesPerMinute, 60),
    }
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
      `too many ${SPENT_ON[budget]}: the limit is ${policy.quota} per key in ${policy.windowSeconds} s; retry in ${retryAfterSeconds} s`,
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

function policy(budget: Budget, quota: number, windowSeconds: number): Policy {
  return {
    quota,
    windowSeconds,
    header: `"${budget}";q=${quota};w=${windowSeconds}`,
    quotaText: `${quota}`,
    buckets: new Buckets(quota, windowSeconds),
  }
}
