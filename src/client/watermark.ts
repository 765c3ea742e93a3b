/** Numbers reports in order, and knows up to which number all are settled: acknowledged, refused or dropped. */
export class Watermark {
  private last = 0
  private settledThrough = 0
  /** Settled, but after one that is not. */
  private readonly early = new Set<number>()

  /** The newest number given. */
  get end(): number {
    return this.last
  }

  /** Everything up to this number is settled. */
  get through(): number {
    return this.settledThrough
  }

  next(): number {
    return ++this.last
  }

  settle(mark: number): void {
    if (mark !== this.settledThrough + 1) {
      this.early.add(mark)
      return
    }
    this.settledThrough = mark
    while (this.early.size > 0 && this.early.delete(this.settledThrough + 1)) this.settledThrough++
  }
}
