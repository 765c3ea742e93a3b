/** The consumer that loads rows into ClickHouse. */
export const SINK = 'sink'

/** How far a consumer has come. */
export interface Released {
  readonly seq: number
  /** When it last came on, on the monotonic clock. */
  readonly atMs: number
}

/** Stands for the slowest consumer of a journal that has none. */
const NOBODY: Released = { seq: Number.POSITIVE_INFINITY, atMs: 0 }

/** The registered consumers of a journal: what the slowest has yet to read must be kept. */
export class Consumers {
  private readonly released = new Map<string, Released>()

  release(consumer: string, seq: number): void {
    this.released.set(consumer, { seq, atMs: performance.now() })
  }

  /** How far a consumer has come; 0 for one that is not registered. */
  seqOf(consumer: string): number {
    return this.released.get(consumer)?.seq ?? 0
  }

  get count(): number {
    return this.released.size
  }

  get slowest(): Released {
    let slowest = NOBODY
    for (const released of this.released.values()) if (released.seq < slowest.seq) slowest = released
    return slowest
  }
}
