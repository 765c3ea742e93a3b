/** Most buckets kept. Full ones are dropped first, which loses nothing. */
const BUCKETS_MAX = 20_000

export interface Bucket {
  /** Negative after a cost larger than the whole bucket. */
  tokens: number
  atMs: number
}

/**
 * Token buckets of one size, one per name, in bounded number. A bucket holds the quota of one window and refills
 * evenly.
 */
export class Buckets {
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
