import type { Clock } from '../clock.ts'
import type { RateLimits } from '../config.ts'
import { ApiError } from './errors.ts'

/** What a key may spend, each counted apart so that batching is never punished (contract section 1). */
export type Budget = 'ingest' | 'events' | 'invokes' | 'reads' | 'queries'

const SPENT_ON: Record<Budget, string> = {
  ingest: 'ingest requests',
  events: 'events',
  invokes: 'invocations',
  reads: 'requests',
  queries: 'queries',
}

/** Buckets of one budget that are remembered. One that has filled up again is forgotten first: that loses nothing. */
const BUCKETS_MAX = 20_000

interface Policy {
  /** Size of the bucket, and what flows into it in `windowSeconds`. 0: unlimited. */
  readonly quota: number
  readonly windowSeconds: number
  readonly perMs: number
  /** `RateLimit-Policy`. */
  readonly header: string
  readonly quotaText: string
  readonly buckets: Map<string, Bucket>
}

interface Bucket {
  /** Below zero after a batch that was larger than the whole bucket. */
  tokens: number
  atMs: number
}

export interface RateLimiterOptions {
  readonly clock: Clock
  /** Milliseconds that never jump, unlike the wall clock. */
  readonly monotonicMs?: () => number
}

/**
 * Token buckets, one for each key and budget, in this process.
 *
 * A bucket holds one window's quota and refills evenly. A cost above the whole quota passes when the bucket is full and
 * leaves a debt, since otherwise such a batch could never pass. An unlimited budget (0) sends no headers: there
 * is no quota they could tell of.
 */
export class RateLimiter {
  private readonly policies: Record<Budget, Policy>
  private readonly clock: Clock
  private readonly monotonicMs: () => number

  constructor(limits: RateLimits, { clock, monotonicMs = () => performance.now() }: RateLimiterOptions) {
    this.clock = clock
    this.monotonicMs = monotonicMs
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
   * @param headers the response's, as Elysia's `set.headers`. Left out where another budget's are already there.
   * @throws ApiError RATE_LIMITED with the seconds after which the same cost would pass
   */
  take(keyId: string, budget: Budget, cost: number, headers?: Record<string, string | number>): void {
    const policy = this.policies[budget]
    if (policy.quota === 0) return
    const now = this.monotonicMs()
    const bucket = refill(policy, keyId, now)
    const needed = Math.min(cost, policy.quota)
    const allowed = bucket.tokens >= needed
    if (allowed) bucket.tokens -= cost
    if (headers !== undefined) this.writeHeaders(policy, budget, bucket, headers)
    if (allowed) return
    const retryAfterSeconds = Math.max(1, Math.ceil((needed - bucket.tokens) / policy.perMs / 1000))
    throw new ApiError(
      'RATE_LIMITED',
      `too many ${SPENT_ON[budget]}: a key has ${policy.quota} in ${policy.windowSeconds} s; retry in ${retryAfterSeconds} s`,
      { retryAfterSeconds },
    )
  }

  private writeHeaders(policy: Policy, budget: Budget, bucket: Bucket, headers: Record<string, string | number>): void {
    const remaining = bucket.tokens > 0 ? Math.floor(bucket.tokens) : 0
    const untilFull = Math.ceil((policy.quota - bucket.tokens) / policy.perMs / 1000)
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
    perMs: quota / windowSeconds / 1000,
    header: `"${budget}";q=${quota};w=${windowSeconds}`,
    quotaText: `${quota}`,
    buckets: new Map(),
  }
}

function refill(policy: Policy, keyId: string, now: number): Bucket {
  const bucket = policy.buckets.get(keyId)
  if (bucket !== undefined) {
    bucket.tokens = Math.min(policy.quota, bucket.tokens + (now - bucket.atMs) * policy.perMs)
    bucket.atMs = now
    return bucket
  }
  if (policy.buckets.size >= BUCKETS_MAX) forget(policy, now)
  const full: Bucket = { tokens: policy.quota, atMs: now }
  policy.buckets.set(keyId, full)
  return full
}

/** Makes room: every bucket that is full again, and if that is not enough, the tenth that has been known longest. */
function forget(policy: Policy, now: number): void {
  for (const [keyId, { tokens, atMs }] of policy.buckets)
    if (tokens + (now - atMs) * policy.perMs >= policy.quota) policy.buckets.delete(keyId)
  let surplus = policy.buckets.size - BUCKETS_MAX * 0.9
  for (const keyId of policy.buckets.keys()) {
    if (surplus-- <= 0) return
    policy.buckets.delete(keyId)
  }
}
