/** The service does other things too: reporting calls wait for about this, however many watch. */
const SLICE_MS = 5

/** A cooperative time slice: long work asks whether it is over, and yields to the event loop. */
export class TimeSlice {
  private endsMs = 0

  /** @param now milliseconds on a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Counts from now. */
  begin(): void {
    this.endsMs = this.now() + SLICE_MS
  }

  get isOver(): boolean {
    return this.now() > this.endsMs
  }

  /** Yields to the event loop, then begins anew. */
  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.begin()
  }
}
