/** The consumer that loads rows into ClickHouse. */
export const SINK = 'sink'

/** The position that a consumer has released. */
interface Released {
  readonly seq: number
  /** When it last released a position, on the monotonic clock. */
  readonly atMs: number
}

/** The slowest consumer of a journal without consumers. */
const NO_CONSUMER: Released = { seq: Number.POSITIVE_INFINITY, atMs: 0 }

/** The registered consumers of a journal. Rows that the slowest has not released must be kept. */
export class Consumers {
  private readonly released = new Map<string, Released>()

  /** Registers a consumer with its first call. */
  release(consumer: string, seq: number): void {
    this.released.set(consumer, { seq, atMs: performance.now() })
  }

  /** The position that a consumer has released; 0 for one that is not registered. */
  seqOf(consumer: string): number {
    return this.released.get(consumer)?.seq ?? 0
  }

  /** How many consumers are registered. */
  get count(): number {
    return this.released.size
  }

  /** The release of the consumer that is furthest behind. */
  get slowest(): Released {
    let slowest = NO_CONSUMER
    for (const released of this.released.values()) if (released.seq < slowest.seq) slowest = released
    return slowest
  }
}
