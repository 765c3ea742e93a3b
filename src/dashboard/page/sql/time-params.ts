import type { TimeRange } from '../parts/range.tsx'
import { placeholdersOf } from './placeholders.ts'

/**
 * Placeholders that follow a time range: `{from:…}` and `{to:…}` of a type of times or whole numbers, and with one of them
 * `{step:…}`, the seconds of a bucket of a chart.
 */

/** How values are written, by type. Times are Unix seconds, which do not depend on a time zone. */
const WRITERS: readonly (readonly [RegExp, (ms: number) => string])[] = [
  [/\bDateTime/, (ms) => String(ms / 1_000)],
  [/\bDate(32)?\b/, (ms) => new Date(ms).toISOString().slice(0, 10)],
  [/\bU?Int64\b/, (ms) => String(ms)],
  [/\bU?Int32\b/, (ms) => String(Math.floor(ms / 1_000))],
]

/** The values that a range gives to placeholders of a query. */
export function timeParams(
  query: string,
  { fromMs, toMs, bucketSeconds }: TimeRange,
): Readonly<Record<string, string>> {
  const found = placeholdersOf(query)
  const values = found.flatMap(({ name, type }) => {
    const write = WRITERS.find(([pattern]) => pattern.test(type))?.[1]
    if (write === undefined || (name !== 'from' && name !== 'to')) return []
    return [[name, write(name === 'from' ? fromMs : toMs)]]
  })
  const step = found.find(({ name, type }) => name === 'step' && /\bU?Int/.test(type))
  if (values.length > 0 && step !== undefined) values.push([step.name, String(bucketSeconds)])
  return Object.fromEntries(values)
}

/** Whether a query follows a time range. */
export function usesRange(query: string): boolean {
  return Object.keys(timeParams(query, EMPTY_RANGE)).length > 0
}

const EMPTY_RANGE: TimeRange = { fromMs: 0, toMs: 0, bucketSeconds: 1, isMoving: false }
