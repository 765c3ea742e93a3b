/**
 * A map that forgets what has not been used for longest, roughly: two generations, of which reading moves an entry into the
 * younger. When the younger is full the older is dropped. A hit on a young entry, the common case, writes nothing.
 */
export class BoundedMap<Key, Value> {
  private young = new Map<Key, Value>()
  private old = new Map<Key, Value>()

  /** @param capacity most entries held, at least 2 */
  constructor(private readonly capacity: number) {}

  get size(): number {
    return this.young.size + this.old.size
  }

  get(key: Key): Value | undefined {
    const value = this.young.get(key)
    if (value !== undefined) return value
    const aged = this.old.get(key)
    if (aged !== undefined) this.set(key, aged)
    return aged
  }

  set(key: Key, value: Value): void {
    this.old.delete(key)
    this.young.set(key, value)
    if (this.young.size * 2 < this.capacity) return
    this.old = this.young
    this.young = new Map()
  }

  deleteWhere(matches: (value: Value) => boolean): void {
    for (const entries of [this.young, this.old])
      for (const [key, value] of entries) if (matches(value)) entries.delete(key)
  }

  clear(): void {
    this.young = new Map()
    this.old = new Map()
  }
}
