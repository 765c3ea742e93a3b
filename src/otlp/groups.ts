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

/** Collects what is written at once, because the event loop encodes each write in one step. */
export class WriteBatch<T> {
  private items: T[] = []
  private events = 0
  private bytes = 0

  /** @param bytes about the size of its text */
  add(item: T, events: number, bytes: number): void {
    this.items.push(item)
    this.events += events
    this.bytes += bytes
  }

  get isFull(): boolean {
    return this.items.length >= WRITE_EVENTS_MAX || this.events >= WRITE_EVENTS_MAX || this.bytes >= WRITE_BYTES_MAX
  }

  take(): readonly T[] {
    const taken = this.items
    this.items = []
    this.events = this.bytes = 0
    return taken
  }
}
