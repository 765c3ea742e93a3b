import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/** How many rows each consumer has skipped since the process started, for `GET /readyz` and `GET /metrics`. */
export class SetAside {
  private readonly counts = new Map<string, number>()
  private readonly metric

  constructor(metrics: Pick<Metrics, 'counter'>) {
    const help = 'Rows that a consumer has skipped, because it could never process them.'
    this.metric = metrics.counter('consumer_rows_set_aside_total', help, ['consumer'])
  }

  add(consumer: string, rows: number): void {
    this.counts.set(consumer, this.of(consumer) + rows)
    this.metric.at(consumer).value += rows
  }

  of(consumer: string): number {
    return this.counts.get(consumer) ?? 0
  }
}

interface SieveDeps<Item> {
  /** As `GET /readyz` names it. */
  readonly consumer: string
  readonly log: Log
  readonly counts?: SetAside | undefined
  /** Does the work without any effect: it fails if the work would. */
  readonly probe: (items: readonly Item[]) => unknown
  /** Whether an error is due to what is in the items, so that repeating the work cannot help. */
  readonly isPoison: (error: unknown) => boolean
  /** What the log says about an item. */
  readonly describe: (item: Item) => object
  /** Moves items out of the way, if leaving them out is not enough. */
  readonly remove?: (items: readonly Item[]) => Promise<unknown>
}

/** Consecutive failures after which the batch is searched for the rows at fault: the first may have had another cause. */
const FAILURES_MAX = 2
const LOGGED_MAX = 20

/**
 * Keeps one row that can never be processed from stopping its consumer, and so everybody. When the work on a batch has
 * failed twice because of what is in it, the batch is halved until the rows are found that fail alone. They are skipped:
 * left out, logged and counted. The rest is processed.
 */
export class Sieve<Item> {
  private failures = 0

  constructor(private readonly deps: SieveDeps<Item>) {}

  /** Does `work` on all items or, once it has failed twice, on those that can be processed. @throws what `work` throws */
  async run<Result>(items: readonly Item[], work: (items: readonly Item[]) => Promise<Result>): Promise<Result> {
    try {
      const result = await work(items)
      this.failures = 0
      return result
    } catch (error) {
      if (!this.deps.isPoison(error) || ++this.failures < FAILURES_MAX) throw error
      const poisoned = new Set(await this.poisonedOf(items))
      if (poisoned.size === 0) throw error
      await this.setAside([...poisoned], error)
      const result = await work(items.filter((item) => !poisoned.has(item)))
      this.failures = 0
      return result
    }
  }

  private async poisonedOf(items: readonly Item[]): Promise<readonly Item[]> {
    const { probe, isPoison } = this.deps
    try {
      await probe(items)
      return []
    } catch (error) {
      if (!isPoison(error)) throw error
      if (items.length <= 1) return items
    }
    const middle = items.length >> 1
    return [...(await this.poisonedOf(items.slice(0, middle))), ...(await this.poisonedOf(items.slice(middle)))]
  }

  private async setAside(items: readonly Item[], error: unknown): Promise<void> {
    const { consumer, log, counts, describe, remove } = this.deps
    await remove?.(items)
    counts?.add(consumer, items.length)
    const rows = items.slice(0, LOGGED_MAX).map(describe)
    log.error(`${consumer}: skipped rows that cannot be processed`, { count: items.length, rows, error })
  }
}
