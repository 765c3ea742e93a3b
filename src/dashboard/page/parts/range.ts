import { lookup } from '../../../base/lookup.ts'

/** Time ranges of the page, as they are in its address. */

export interface TimeRange {
  readonly fromMs: number
  readonly toMs: number
  /** Width of the points of a chart. */
  readonly bucketSeconds: number
  /** It ends now, and moves on. */
  readonly isMoving: boolean
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Ranges up to now, by their name in the address. */
export const PRESETS = lookup<{ readonly title: string; readonly seconds: number }>({
  '15m': { title: 'Last 15 minutes', seconds: 15 * MINUTE },
  '1h': { title: 'Last hour', seconds: HOUR },
  '6h': { title: 'Last 6 hours', seconds: 6 * HOUR },
  '24h': { title: 'Last 24 hours', seconds: DAY },
  '7d': { title: 'Last 7 days', seconds: 7 * DAY },
  '30d': { title: 'Last 30 days', seconds: 30 * DAY },
})
export const DEFAULT_PRESET = '1h'

const BUCKETS = [5, 15, 30, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY]
const POINTS_MAX = 100

const REFRESH_MS_MIN = 15_000
/** Figures of a long range change slowly, and cost more. */
const REFRESH_PER_BUCKET = 0.25
const REFRESH_MS_MAX = 900_000

/**
 * The range that an address names: `range`, or `from` and `to`. It starts and ends at the edge of a bucket, so that all
 * tabs ask for the same.
 *
 * @param nowMs Unix milliseconds
 */
export function rangeOf(query: Readonly<Record<string, string>>, nowMs: number): TimeRange {
  const from = Date.parse(query.from ?? '')
  const to = Date.parse(query.to ?? '')
  if (from < to) return aligned(from, to, false)
  const preset = PRESETS.get(query.range ?? '') ?? PRESETS.get(DEFAULT_PRESET)
  return aligned(nowMs - (preset?.seconds ?? HOUR) * 1_000, nowMs, true)
}

/** The members of an address that select the same range in another view. */
export function linkedRange({ range, from, to }: Readonly<Record<string, string>>): Record<string, string> {
  return from !== undefined && to !== undefined ? { from, to } : { range: range ?? DEFAULT_PRESET }
}

/** The members of an address that select a part of its range, which `range` still names for the way back. */
export function zoomOf(fromMs: number, toMs: number): { readonly from: string; readonly to: string } {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
}

function aligned(from: number, to: number, isMoving: boolean): TimeRange {
  const bucketSeconds = BUCKETS.find((size) => (to - from) / 1_000 / size <= POINTS_MAX) ?? 30 * DAY
  const bucketMs = bucketSeconds * 1_000
  return {
    fromMs: Math.floor(from / bucketMs) * bucketMs,
    toMs: Math.ceil(to / bucketMs) * bucketMs,
    bucketSeconds,
    isMoving,
  }
}

/** How often figures of a range up to now are read again. */
export function refreshMsOf({ bucketSeconds }: TimeRange): number {
  return Math.min(REFRESH_MS_MAX, Math.max(REFRESH_MS_MIN, bucketSeconds * 1_000 * REFRESH_PER_BUCKET))
}

/** How many of the buckets are over; values of the others still change. */
export function completeBuckets({ fromMs, toMs, bucketSeconds }: TimeRange, nowMs: number): number {
  return Math.max(0, Math.floor((Math.min(toMs, nowMs) - fromMs) / 1_000 / bucketSeconds))
}

/** The start of each bucket, in Unix seconds. */
export function bucketsOf({ fromMs, toMs, bucketSeconds }: TimeRange): number[] {
  const first = fromMs / 1_000
  return Array.from(
    { length: Math.max(1, (toMs - fromMs) / 1_000 / bucketSeconds) },
    (_, at) => first + at * bucketSeconds,
  )
}
