import type { RetryRow } from './attempt-results.ts'

/** Rows in memory, so that the next one is ready when an attempt ends. */
const LOADED_MAX = 32

/** The rows of an endpoint that are due, as far as they have been read. */
export class DueRows {
  private readonly waiting: RetryRow[] = []
  /** Rows that wait here, are under way, or are not settled. */
  private readonly loaded = new Set<number>()
  /** Rows settled since the last {@link beginLoading}: what was read before may be older. */
  private readonly settledSince = new Set<number>()
  private hasMore = false

  /** How many rows {@link add} takes, and which ones it has. Call it before they are read. */
  beginLoading(): { readonly room: number; readonly loaded: readonly number[] } {
    this.settledSince.clear()
    return { room: this.isLow ? LOADED_MAX - this.loaded.size : 0, loaded: [...this.loaded] }
  }

  /** @param hasMore whether there are others */
  add(rows: readonly RetryRow[], hasMore: boolean): void {
    this.hasMore = hasMore
    for (const row of rows) {
      if (this.loaded.has(row.seq) || this.settledSince.has(row.seq)) continue
      this.loaded.add(row.seq)
      this.waiting.push(row)
    }
  }

  get hasNext(): boolean {
    return this.waiting.length > 0
  }

  next(): RetryRow | undefined {
    return this.waiting.shift()
  }

  /** What became of a row has been stored. */
  settled(seq: number): void {
    this.loaded.delete(seq)
    this.settledSince.add(seq)
  }

  /** Whether others should be read now. True once for each {@link add} that left some. */
  takeHasMore(): boolean {
    if (!this.hasMore || !this.isLow) return false
    this.hasMore = false
    return true
  }

  private get isLow(): boolean {
    return this.loaded.size <= LOADED_MAX / 2
  }
}
