/** Bounds how long other work, such as reporting calls, waits for the event loop, whatever the number of watchers. */
const SLICE_MS = 5

/** A cooperative time slice: long work checks whether its slice is over and then yields to the event loop. */
export class TimeSlice {
  private endsMs = 0

  /** @param now milliseconds on a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Starts a slice. */
  begin(): void {
    this.endsMs = this.now() + SLICE_MS
  }

  get isOver(): boolean {
    return this.now() > this.endsMs
  }

  /** Yields to the event loop, then starts a new slice. */
  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.begin()
  }
}
