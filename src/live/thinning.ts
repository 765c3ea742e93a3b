import type { Activity } from './activity.ts'

/** Lets so many activities a second through and counts the others. A second begins with the first one after the last. */
export class Thinning {
  private windowStartedMs = Number.NEGATIVE_INFINITY
  private passed = 0
  private skipped = 0

  constructor(private readonly maxPerSecond: number) {}

  /**
   * The first of the items, as many as still may pass.
   * @param now on the monotonic clock
   */
  pass(items: readonly Activity[], now: number): readonly Activity[] {
    if (now - this.windowStartedMs >= 1_000) {
      this.windowStartedMs = now
      this.passed = 0
    }
    const room = Math.min(this.maxPerSecond - this.passed, items.length)
    this.passed += room
    this.skipped += items.length - room
    return room === items.length ? items : items.slice(0, room)
  }

  /** How many have been left out since this was last asked. */
  takeSkipped(): number {
    const { skipped } = this
    this.skipped = 0
    return skipped
  }
}
