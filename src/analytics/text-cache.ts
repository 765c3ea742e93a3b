/** Limits of the cache: entries, and characters of their keys. */
const TEXTS_MAX = 1_000
const LENGTH_MAX = 4_000_000

/** An LRU cache of results by text. */
export class TextCache<Found> {
  private readonly known = new Map<string, Found>()
  private length = 0

  /** @param find computes a missing result; failures are not cached */
  async of(text: string, find: () => Promise<Found>): Promise<Found> {
    const found = this.known.get(text) ?? (await find())
    this.forget(text)
    this.known.set(text, found)
    this.length += text.length
    for (const oldest of this.known.keys()) {
      if (this.known.size <= TEXTS_MAX && this.length <= LENGTH_MAX) break
      this.forget(oldest)
    }
    return found
  }

  private forget(text: string): void {
    if (this.known.delete(text)) this.length -= text.length
  }
}
