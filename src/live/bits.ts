/** A bit set of small integers; set operations process 32 members at a time. */
export class Bits {
  private words = new Uint32Array(1)

  add(member: number): void {
    const word = member >>> 5
    if (word >= this.words.length) this.grow(Math.max(word + 1, this.words.length * 2))
    this.words[word] |= 1 << (member & 31)
  }

  delete(member: number): void {
    const word = member >>> 5
    if (word < this.words.length) this.words[word] &= ~(1 << (member & 31))
  }

  /** Makes this set equal to `other`. */
  assign({ words }: Bits): void {
    if (words.length > this.words.length) this.words = words.slice()
    else {
      this.words.set(words)
      this.words.fill(0, words.length)
    }
  }

  /** Keeps only the members that `other` has too. */
  intersect({ words }: Bits): void {
    const length = Math.min(this.words.length, words.length)
    for (let i = 0; i < length; i++) this.words[i] &= words[i]
    this.words.fill(0, length)
  }

  intersects({ words }: Bits): boolean {
    const length = Math.min(this.words.length, words.length)
    for (let i = 0; i < length; i++) if ((this.words[i] & words[i]) !== 0) return true
    return false
  }

  get isEmpty(): boolean {
    for (const word of this.words) if (word !== 0) return false
    return true
  }

  /** In ascending order. */
  forEach(visit: (member: number) => void): void {
    for (let i = 0; i < this.words.length; i++)
      for (let rest = this.words[i]; rest !== 0; rest &= rest - 1) visit(i * 32 + 31 - Math.clz32(rest & -rest))
  }

  private grow(length: number): void {
    const words = new Uint32Array(length)
    words.set(this.words)
    this.words = words
  }
}
