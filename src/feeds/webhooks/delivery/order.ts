import { assert } from '../../../base/assert.ts'

/** A delivery, as its order is concerned. */
export interface Ordered {
  /** Deliveries with the same key are made one after the other; null: in no order. */
  readonly key: string | null
}

interface Chain<Item> {
  /** Whether its first delivery is ready or under way. It is not among `waiting`. */
  isBusy: boolean
  /** Failed deliveries that are attempted again later, and those stored behind them. */
  rows: number
  readonly waiting: Item[]
}

/**
 * The order of the new deliveries of an endpoint: which of them may be sent now. One with rows of its key in
 * `webhook_retries` waits; so nothing overtakes a failed delivery of the same key.
 */
export class Order<Item extends Ordered> {
  private readonly chains = new Map<string, Chain<Item>>()
  /** Keys with rows, for which deliveries wait. */
  private readonly blocked = new Set<string>()
  private ready: Item[] = []
  private readyFrom = 0

  /** A row was stored. */
  addRow(key: string | null): void {
    if (key === null) return
    const chain = this.chainOf(key)
    chain.rows++
    if (chain.waiting.length > 0) this.blocked.add(key)
  }

  /** A row was deleted. */
  removeRow(key: string | null): void {
    const chain = key === null ? undefined : this.chains.get(key)
    if (key === null || chain === undefined) return
    chain.rows--
    this.advance(key, chain)
  }

  add(item: Item): void {
    const { key } = item
    if (key === null) {
      this.ready.push(item)
      return
    }
    const chain = this.chainOf(key)
    chain.waiting.push(item)
    if (chain.rows > 0) this.blocked.add(key)
    this.advance(key, chain)
  }

  /** Whether {@link next} has one. */
  get hasNext(): boolean {
    return this.readyFrom < this.ready.length
  }

  /** Takes the next delivery that may be sent. Call {@link done} when it has ended. */
  next(): Item | undefined {
    if (!this.hasNext) return undefined
    const item = this.ready[this.readyFrom++]
    if (this.readyFrom === this.ready.length || this.readyFrom > 1_000) {
      this.ready = this.ready.slice(this.readyFrom)
      this.readyFrom = 0
    }
    return item
  }

  /** A delivery that {@link next} gave has ended. If it is a row from now on, call {@link addRow} before. */
  done({ key }: Item): void {
    if (key === null) return
    const chain = this.chains.get(key)
    assert(chain?.isBusy === true, 'a delivery under way is the first of its key')
    chain.isBusy = false
    this.advance(key, chain)
  }

  /** Whether {@link takeBlocked} has any. */
  get hasBlocked(): boolean {
    return this.blocked.size > 0
  }

  /** Takes up to `max` deliveries that wait behind rows, to be stored behind them. */
  takeBlocked(max: number): Item[] {
    const taken: Item[] = []
    for (const key of this.blocked) {
      if (taken.length >= max) break
      const { waiting } = this.chainOf(key)
      for (const item of waiting.splice(0, max - taken.length)) taken.push(item)
      if (waiting.length === 0) this.blocked.delete(key)
    }
    return taken
  }

  private chainOf(key: string): Chain<Item> {
    return this.chains.getOrInsertComputed(key, () => ({ isBusy: false, rows: 0, waiting: [] }))
  }

  private advance(key: string, chain: Chain<Item>): void {
    if (chain.isBusy || chain.rows > 0) return
    this.blocked.delete(key)
    const next = chain.waiting.shift()
    if (next === undefined) {
      this.chains.delete(key)
      return
    }
    chain.isBusy = true
    this.ready.push(next)
  }
}
