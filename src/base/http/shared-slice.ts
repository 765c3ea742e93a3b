/** Long enough that an ordinary call ends within it, short enough that other calls do not notice the wait. */
const SLICE_MS = 10
/** Waiting calls that may continue in one iteration of the event loop, if the slice lasts that long. */
const RESUMED_AT_ONCE_MAX = 32

/** What long work asks after each of its small steps. */
export interface Slice {
  /** Whether the work must {@link yield} before it continues. */
  readonly isOver: boolean
  /** Resolves when the work may continue. */
  yield(): Promise<void>
}

/**
 * Work that can pause at each `yield`, so that no call stops the event loop for longer than one of its steps. A step takes
 * a few milliseconds at most.
 */
export type Steps<Result> = Generator<undefined, Result, undefined>

/**
 * One time slice in each iteration of the event loop for the long work of all calls together; so the number of calls does
 * not lengthen the iteration. Owners that wait take turns, whatever number of calls each of them has.
 */
export class SharedSlice {
  private endsMs = 0
  private hasBegun = false
  private scheduled = 0
  private waiting = 0
  /** In the order of turns. */
  private readonly queues = new Map<string, Array<() => void>>()

  /** @param now milliseconds on a monotonic clock */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** @param owner the workspace that the work is done for */
  of(owner: string): Slice {
    const isOver = () => this.isOver()
    return {
      get isOver() {
        return isOver()
      },
      yield: () => this.wait(owner),
    }
  }

  private isOver(): boolean {
    const now = this.now()
    if (this.hasBegun) return now > this.endsMs
    this.hasBegun = true
    this.endsMs = now + SLICE_MS
    setImmediate(() => {
      this.hasBegun = false
    })
    return false
  }

  private wait(owner: string): Promise<void> {
    return new Promise((resolve) => {
      const queue = this.queues.get(owner)
      if (queue === undefined) this.queues.set(owner, [resolve])
      else queue.push(resolve)
      this.waiting++
      this.schedule()
    })
  }

  private schedule(): void {
    while (this.scheduled < Math.min(this.waiting, RESUMED_AT_ONCE_MAX)) {
      this.scheduled++
      setImmediate(() => {
        this.scheduled--
        if (!this.isOver()) this.resumeNext()
        this.schedule()
      })
    }
  }

  private resumeNext(): void {
    for (const [owner, queue] of this.queues) {
      const resume = queue.shift()!
      this.queues.delete(owner)
      if (queue.length > 0) this.queues.set(owner, queue)
      this.waiting--
      resume()
      return
    }
  }
}

/** Does the work, and yields to other work whenever the slice is over. */
export async function inSlices<Result>(slice: Slice, work: Steps<Result>): Promise<Result> {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
    if (slice.isOver) await slice.yield()
  }
}
