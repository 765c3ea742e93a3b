import { Bytes } from '../../stores/clickhouse/bytes.ts'

/** Adds an item to the group with this key. */
export function addTo<T>(groups: Map<string, T[]>, key: string, item: T): void {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [item])
  else group.push(item)
}

/** Splits the items into batches of at most `size`. */
export function* inBatches<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size)
}

/** Waits for all, so that nothing of a failed call goes on after it. @throws the first error */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const outcomes = await Promise.allSettled(items.map(work))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

const WRITE_EVENTS_MAX = 1_000
const WRITE_BYTES_MAX = 2 * 1024 * 1024

/** Memory for the JSON of an item, as a first guess: growing it means copying it. */
const ITEM_BYTES = 6 * 1024
const FIRST_BYTES_MAX = 512 * 1024

/** Collects what is written at once, because the event loop encodes each write in one step. */
export class WriteBatch<T> {
  readonly items: T[] = []
  /** The JSON of the items. Not used again: the rows of tasks refer to it until the write is durable. */
  readonly json: Bytes
  private events = 0

  /**
   * @param items how many are expected
   * @param bytes of their JSON, if that is known
   */
  constructor(items: number, bytes = Math.min(FIRST_BYTES_MAX, items * ITEM_BYTES)) {
    this.json = new Bytes(Math.min(WRITE_BYTES_MAX, bytes))
  }

  add(item: T, events: number): void {
    this.items.push(item)
    this.events += events
  }

  get isFull(): boolean {
    const { items, events, json } = this
    return items.length >= WRITE_EVENTS_MAX || events >= WRITE_EVENTS_MAX || json.length >= WRITE_BYTES_MAX
  }
}
