import { useEffect, useState } from 'preact/hooks'
import { rangeOf, refreshMsOf, type TimeRange } from './range.ts'

interface MovingRange extends TimeRange {
  /** Figures are read again when it changes. */
  readonly movedAtMs: number
}

/** The range that an address names; one up to now moves on by itself while the page is visible, less often the longer it is. */
export function useMovingRange(query: Readonly<Record<string, string>>, isStopped = false): MovingRange {
  const [now, setNow] = useState(Date.now())
  const range = rangeOf(query, now)
  const everyMs = refreshMsOf(range)
  useEffect(() => {
    if (!range.isMoving || isStopped) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const move = () => {
      clearTimeout(timer)
      if (document.hidden) return
      const waitMs = now + everyMs - Date.now()
      if (waitMs <= 0) setNow(Date.now())
      else timer = setTimeout(move, waitMs)
    }
    move()
    document.addEventListener('visibilitychange', move)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', move)
    }
  }, [now, range.isMoving, isStopped, everyMs])
  return { ...range, movedAtMs: now }
}
