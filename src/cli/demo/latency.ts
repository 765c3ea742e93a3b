/** Bucket bounds grow by 3 %, which is the maximum error of a percentile. */
const GROWTH = 1.03
const SMALLEST_MS = 0.01
const BUCKETS = 620

/** A latency histogram of fixed size. */
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

  /** The latency in milliseconds that the given share (0 to 1) of all latencies does not exceed; 0 if there are none. */
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
