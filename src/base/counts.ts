/** How many each key has. A key that has none takes no memory. */
export class Counts<Key = string> {
  private readonly counts = new Map<Key, number>()
  private sum = 0

  /** Of all keys. */
  get total(): number {
    return this.sum
  }

  of(key: Key): number {
    return this.counts.get(key) ?? 0
  }

  /** The keys that have any. */
  keys(): MapIterator<Key> {
    return this.counts.keys()
  }

  add(key: Key, count = 1): void {
    this.sum += count
    const now = this.of(key) + count
    if (now === 0) this.counts.delete(key)
    else this.counts.set(key, now)
  }

  remove(key: Key, count = 1): void {
    this.add(key, -count)
  }

  /** Adds as long as it is held. @returns what removes it again; further calls do nothing */
  hold(key: Key, count = 1): () => void {
    this.add(key, count)
    let left = count
    return () => {
      this.remove(key, left)
      left = 0
    }
  }
}
