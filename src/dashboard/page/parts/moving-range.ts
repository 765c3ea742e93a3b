import { useEffect, useState } from 'preact/hooks'
import { rangeOf, type TimeRange } from './range.ts'

const REFRESH_MS_MIN = 15_000
/** Figures of a long range change slowly, and cost more. */
const REFRESH_PER_BUCKET = 0.25
const REFRESH_MS_MAX = 120_000

/** The range that an address names; one up to now moves on by itself while the page is visible, less often the longer it is. */
export function useMovingRange(query: Readonly<Record<string, string>>, isStopped = false): TimeRange {
  const [now, setNow] = useState(Date.now())
  const range = rangeOf(query, now)
  const everyMs = Math.min(REFRESH_MS_MAX, Math.max(REFRESH_MS_MIN, range.bucketSeconds * 1_000 * REFRESH_PER_BUCKET))
  useEffect(() => {
    if (!range.isMoving || isStopped) return
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now())
    }, everyMs)
    return () => clearInterval(timer)
  }, [range.isMoving, isStopped, everyMs])
  return range
}
