import { messageOf, type Problem } from '../../base/errors.ts'
import type { Appended } from '../../stores/journal/journal.ts'
import { attempt } from '../kit.ts'
import type { Refusal } from './telemetry.ts'

/** Names places of an export in messages. */
export interface Places {
  /** @param name of an item, as given to the tally */
  item(name: string): string
  /** @param first from 1 */
  range(first: number, last: number): string
}

/** Names items by what they are and their own names. */
export function placesOf(noun: string): Places {
  return {
    item: (name) => `${noun} ${JSON.stringify(name.slice(0, 80))}`,
    range: (first, last) => (first === last ? `${noun} ${first}` : `${noun}s ${first} to ${last}`),
  }
}

/** The result of an export. Everything that was not rejected is on stable storage. */
export interface ExportResult {
  readonly rejected: number
  /** Names the first rejected item and why; empty if nothing was rejected. */
  readonly message: string
  /** The place of that item. */
  readonly param?: string | undefined
  /** Positions of the first and last event stored, or task if no span has ended; null if nothing was new. */
  readonly firstSeq: number | null
  readonly lastSeq: number | null
}

/** Collects what an export has stored and what was rejected. */
export class ExportTally {
  private rejected = 0
  private first: Problem | undefined
  private firstSeq: number | null = null
  private lastSeq: number | null = null

  constructor(private readonly places: Places) {}

  reject(name: string, problem: string, items = 1): void {
    this.count(items, problem, () => this.places.item(name))
  }

  /** Counts what was not decoded. */
  refuse(refusals: readonly Refusal[]): void {
    for (const { first, items, problem } of refusals) {
      this.count(items, problem, () => this.places.range(first, first + items - 1))
    }
  }

  private count(items: number, message: string, place: () => string): void {
    this.first ??= { param: place(), message }
    this.rejected += items
  }

  stored(positions: Appended | null): void {
    if (positions === null) return
    this.firstSeq = Math.min(this.firstSeq ?? positions.firstSeq, positions.firstSeq)
    this.lastSeq = Math.max(this.lastSeq ?? 0, positions.lastSeq)
  }

  /**
   * Stores items that belong to one run; counts all of them as rejected if the run cannot take them.
   * @param name of the first one
   */
  attempt(items: number, store: () => Promise<void>, name: () => string): Promise<void> {
    return attempt(store, ({ message }) => this.reject(name(), message, items))
  }

  result(): ExportResult {
    const { rejected, first, firstSeq, lastSeq } = this
    return { rejected, message: first === undefined ? '' : messageOf(first), param: first?.param, firstSeq, lastSeq }
  }
}
