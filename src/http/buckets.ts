/** Buckets that are remembered. One that has filled up again is forgotten first: that loses nothing. */
const BUCKETS_MAX = 20_000

export interface Bucket {
  /** Below zero after a cost that was larger than the whole bucket. */
  tokens: number
  atMs: number
}

/** Token buckets of one size, one for each of a bounded number of names. A bucket holds one window's quota and refills evenly. */
export class Buckets {
  readonly perMs: number
  private readonly buckets = new Map<string, Bucket>()

  /** @param quota size of a bucket, and what flows into it in `windowSeconds` */
  constructor(
    readonly quota: number,
    readonly windowSeconds: number,
  ) {
    this.perMs = quota / windowSeconds / 1000
  }

  /** The bucket of that name, refilled up to `now` (milliseconds, monotonic). */
  at(name: string, now: number): Bucket {
    const bucket = this.known(name, now)
    if (bucket !== undefined) return bucket
    if (this.buckets.size >= BUCKETS_MAX) this.forget(now)
    const full: Bucket = { tokens: this.quota, atMs: now }
    this.buckets.set(name, full)
    return full
  }

  /** The same, without making one. */
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

  /** Makes room: every bucket that is full again, and if that is not enough, the tenth that has been known longest. */
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
