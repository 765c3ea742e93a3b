const SMALLEST = 1_024

/** Numbers reports in order, and knows which are settled: acknowledged, refused or dropped. */
export class SettledMark {
  /** How many are not settled. */
  open = 0
  private last = 0
  private settledThrough = 0
  /** A ring with a flag for each number that is settled although one before it is not. A Set would take much more memory. */
  private early = new Uint8Array(SMALLEST)

  /** @param isOrdered whether {@link through} is needed. It takes memory for all that is settled after an open number. */
  constructor(private readonly isOrdered = true) {}

  /** The newest number. */
  get end(): number {
    return this.last
  }

  /** Everything up to this number is settled. 0 if that is not needed. */
  get through(): number {
    return this.settledThrough
  }

  /** Numbers the next report. */
  next(): number {
    this.last++
    this.open++
    if (this.isOrdered && this.last - this.settledThrough > this.early.length) this.grow()
    return this.last
  }

  /** Marks a report as settled. */
  settle(mark: number): void {
    this.open--
    if (!this.isOrdered) return
    const { early } = this
    early[mark % early.length] = 1
    for (let next = this.settledThrough + 1; early[next % early.length] === 1; next++) {
      early[next % early.length] = 0
      this.settledThrough = next
    }
  }

  private grow(): void {
    const { early } = this
    const larger = new Uint8Array(early.length * 2)
    for (let mark = this.settledThrough + 1; mark < this.last; mark++)
      larger[mark % larger.length] = early[mark % early.length]!
    this.early = larger
  }
}
