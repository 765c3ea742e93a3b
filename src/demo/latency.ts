/** Upper bounds grow by 3 % from bucket to bucket, so a percentile is off by at most that much. */
const GROWTH = 1.03
const SMALLEST_MS = 0.01
const BUCKETS = 620

/** A distribution of latencies in a fixed amount of memory. */
export class LatencyHistogram {
  private readonly buckets = new Float64Array(BUCKETS)
  private total = 0

  get count(): number {
    return this.total
  }

  add(ms: number): void {
    const bucket = ms <= SMALLEST_MS ? 0 : Math.ceil(Math.log(ms / SMALLEST_MS) / Math.log(GROWTH))
    this.buckets[Math.min(bucket, BUCKETS - 1)]! += 1
    this.total++
  }

  /** Milliseconds that the given share (0 to 1) of all latencies does not pass; 0 while there are none. */
  percentile(share: number): number {
    let left = Math.ceil(this.total * share)
    if (left === 0) return 0
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      left -= this.buckets[bucket]!
      if (left <= 0) return SMALLEST_MS * GROWTH ** bucket
    }
    return SMALLEST_MS * GROWTH ** BUCKETS
  }
}
