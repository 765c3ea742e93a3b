/** The source of the current time, which tests can replace. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/**
 * Measures how long ago it was made, in milliseconds: at least as long as it says. The monotonic clock stands still while the
 * machine sleeps, and the system clock may be set back: the one that has gone further counts.
 */
export function stopwatch(): () => number {
  const [startedMs, startedAt] = [performance.now(), Date.now()]
  return () => Math.max(performance.now() - startedMs, Date.now() - startedAt)
}

/** What a {@link SteadyClock} has noticed. */
export interface ClockState {
  /** By how much the system clock is ahead of the time that is used, milliseconds; negative if it is behind. */
  readonly offByMs: number
  /** The last jump that was followed. */
  readonly jump: { readonly byMs: number; readonly agoMs: number } | null
}

/** Smaller steps are followed at once, because time synchronisation corrects clocks in small steps. */
const STEP_MS = 5_000
/** A jump is followed when it has lasted for this long. */
const CONFIRM_MS = 30_000

/**
 * The system clock without its glitches. Time passes as on the monotonic clock of the process. A step of the system clock by
 * more than five seconds is followed only when it has stayed for half a minute: a clock that is hours ahead for a moment
 * changes nothing, and one that is corrected, or goes on after the machine has slept, is right again soon.
 */
export class SteadyClock implements Clock {
  /** What is added to the monotonic clock. */
  private offsetMs: number
  private pending: { readonly offsetMs: number; readonly sinceMs: number } | null = null
  private jump: { readonly byMs: number; readonly atMs: number } | null = null

  /** @param monotonic milliseconds */
  constructor(
    private readonly system: Clock = systemClock,
    private readonly monotonic = () => performance.now(),
  ) {
    this.offsetMs = system.now() - monotonic()
  }

  now(): number {
    const at = this.monotonic()
    const offsetMs = this.system.now() - at
    if (Math.abs(offsetMs - this.offsetMs) <= STEP_MS) {
      this.offsetMs = offsetMs
      this.pending = null
    } else this.judge(offsetMs, at)
    return Math.round(at + this.offsetMs)
  }

  get state(): ClockState {
    this.now()
    const { pending, jump } = this
    return {
      offByMs: pending === null ? 0 : Math.round(pending.offsetMs - this.offsetMs),
      jump: jump && { byMs: Math.round(jump.byMs), agoMs: Math.round(this.monotonic() - jump.atMs) },
    }
  }

  private judge(offsetMs: number, at: number): void {
    if (this.pending === null || Math.abs(offsetMs - this.pending.offsetMs) > STEP_MS)
      this.pending = { offsetMs, sinceMs: at }
    else if (at - this.pending.sinceMs >= CONFIRM_MS) {
      this.jump = { byMs: offsetMs - this.offsetMs, atMs: at }
      this.offsetMs = offsetMs
      this.pending = null
    }
  }
}
