import type { Activity } from './activity.ts'

/** Passes at most `maxPerSecond` activities and counts the rest. Each one-second window starts with its first activity. */
export class Throttle {
  private windowStartedMs = Number.NEGATIVE_INFINITY
  private passed = 0
  private skipped = 0

  constructor(private readonly maxPerSecond: number) {}

  /**
   * @param now milliseconds on the monotonic clock
   * @returns the leading items that still fit into the window
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

  /** The number of items skipped since the last call. */
  takeSkipped(): number {
    const { skipped } = this
    this.skipped = 0
    return skipped
  }
}
