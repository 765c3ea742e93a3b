/** Silence in lines: where nothing happened there is no value, and no line. */

const POINTS_MAX = 2_000

/**
 * The times with those that are missing, in seconds, if all are a whole number of buckets apart: a query that groups by
 * time has no row for a bucket without data. Null for times of another kind. @param times in ascending order
 */
export function withSilence(times: readonly number[]): number[] | null {
  const [first] = times
  const last = times.at(-1)
  const steps = times.slice(1).map((time, at) => time - (times[at] as number))
  const step = Math.min(...steps)
  if (first === undefined || last === undefined || steps.length === 0 || step <= 0) return null
  if (steps.some((each) => each % step !== 0) || (last - first) / step >= POINTS_MAX) return null
  return Array.from({ length: (last - first) / step + 1 }, (_, at) => first + at * step)
}

/** Where values have no neighbours: a line would not show them. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const has = (at: number) => values[at] !== null && values[at] !== undefined
  return Array.from(values, (_, at) => at).filter((at) => has(at) && !has(at - 1) && !has(at + 1))
}
