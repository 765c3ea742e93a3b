/** When failed deliveries are attempted again, and when an endpoint is given up (docs/webhooks.md#deliveries). */

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

export interface Schedule {
  /** The time from each failed attempt to the next. */
  readonly delaysMs: readonly number[]
  /** An endpoint of which no attempt has succeeded for so long is disabled. */
  readonly disableAfterMs: number
}

export const SCHEDULE: Schedule = {
  delaysMs: [
    5 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
  ],
  disableAfterMs: 5 * 24 * HOUR_MS,
}

/** The longest wait that a receiver can ask for. */
const RETRY_AFTER_MAX_MS = HOUR_MS
/** Delays vary by this share, so that what failed together is not attempted together. */
const JITTER = 0.2

interface Failed {
  /** Attempts made, this one included. */
  readonly attempt: number
  /** Whether the delivery is attempted until it succeeds: all others wait for it. */
  readonly isStrict: boolean
  /** What the receiver asked for, at most {@link RETRY_AFTER_MAX_MS}. */
  readonly retryAfterMs: number
}

/**
 * Milliseconds from a failed attempt to the next one; null after the last.
 * @param random from 0 to 1
 */
export function delayAfter({ delaysMs }: Schedule, failed: Failed, random: number): number | null {
  const { attempt, isStrict, retryAfterMs } = failed
  const delay = delaysMs[attempt - 1] ?? (isStrict ? delaysMs.at(-1) : undefined)
  return delay === undefined ? null : Math.max(retryAfterMs, delay * (1 + JITTER * (2 * random - 1)))
}

/** For each number of attempts made, the longest that {@link delayAfter} gives, milliseconds. */
export function longestDelays({ delaysMs }: Schedule): number[] {
  return delaysMs.map((delay) => Math.max(RETRY_AFTER_MAX_MS, delay * (1 + JITTER)))
}

/** The wait that a `Retry-After` header asks for, in seconds or until a date; 0 for none. @param now Unix milliseconds */
export function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * SECOND_MS : Date.parse(header) - now
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : 0
}
