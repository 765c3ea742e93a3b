import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

const TICK_MS = 1_000

/** The time in Unix milliseconds, once a second while the page is visible and something shows it. */
const now = signal(Date.now())
let users = 0
let timer: ReturnType<typeof setInterval> | undefined

/** The current time, which updates the component every second. */
export function useNow(): number {
  useEffect(() => {
    if (++users === 1) {
      now.value = Date.now()
      timer = setInterval(() => {
        if (!document.hidden) now.value = Date.now()
      }, TICK_MS)
    }
    return () => {
      if (--users === 0) clearInterval(timer)
    }
  }, [])
  return now.value
}
