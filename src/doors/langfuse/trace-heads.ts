import { Counts } from '../../base/counts.ts'
import { addTo } from '../traces/groups.ts'

/**
 * Lets batches that have overtaken the beginning of their trace wait for it a moment: the agent of a run never changes, and
 * only the beginning says which one it is.
 */
export class TraceHeads {
  /** How many batches with the beginning of a trace are being stored. */
  private readonly arrived = new Counts()
  private readonly waiting = new Map<string, Array<() => void>>()

  /** Stores a batch with the beginning of a trace; `store` takes its turn before those that wait. */
  async arrive(key: string, store: () => Promise<void>): Promise<void> {
    const release = this.arrived.hold(key)
    const stored = store()
    for (const go of this.waiting.get(key) ?? []) go()
    try {
      await stored
    } finally {
      release()
    }
  }

  /** Resolves when the beginning of the trace has arrived, or after so many milliseconds. */
  async wait(key: string, ms: number): Promise<void> {
    if (ms <= 0 || this.arrived.of(key) > 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    addTo(this.waiting, key, resolve)
    const timer = setTimeout(resolve, ms)
    await promise
    clearTimeout(timer)
    const others = (this.waiting.get(key) ?? []).filter((each) => each !== resolve)
    if (others.length === 0) this.waiting.delete(key)
    else this.waiting.set(key, others)
  }
}
