/** Bounds how long other work, such as reporting calls, waits for the event loop, however many subscriptions there are. */
const SLICE_MS = 5

/** A cooperative time slice: long work checks whether its slice is over and then yields to the event loop. */
export class TimeSlice {
  private endsMs = 0

  /** @param now milliseconds on a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {}

  get isOver(): boolean {
    return this.now() > this.endsMs
  }

  /** Yields to the event loop, then starts a new slice. */
  async yield(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.endsMs = this.now() + SLICE_MS
  }
}

/** How much a workspace may send in one turn: about ten milliseconds of system calls. */
const QUANTUM_BYTES = 1024 * 1024

/**
 * Sends what one workspace's subscriptions have yet to receive. Workspaces take turns (deficit round robin): each turn adds a
 * quantum of bytes, and bytes sent beyond it are deducted from the next one. So how long a workspace waits depends on the number
 * of others, but not on how much they have to send.
 */
export class FairShare {
  private credit = 0
  private isDone = false

  /** @param steps sends something with each step, and yields the bytes that outlets took */
  constructor(
    private readonly steps: Iterator<number>,
    private readonly slice: TimeSlice,
  ) {}

  get isEmpty(): boolean {
    return this.isDone
  }

  /** Sends up to a quantum; yields to the event loop whenever the time slice is over. @returns the bytes sent */
  async turn(): Promise<number> {
    let sent = 0
    this.credit += QUANTUM_BYTES
    while (this.credit > 0) {
      const { done, value } = this.steps.next()
      if (done === true) {
        this.isDone = true
        break
      }
      this.credit -= value
      sent += value
      if (this.slice.isOver) await this.slice.yield()
    }
    return sent
  }
}
