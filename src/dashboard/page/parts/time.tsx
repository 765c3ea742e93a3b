import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { clockText } from '../../../base/format.ts'

/** Times for people. All clocks of the page are alike: 24 hours, in the zone that the user chose. */

type Zone = 'local' | 'utc'

const STORED = 'time-zone'

/** The zone of all times of the page. */
export const zone = signal<Zone>(globalThis.localStorage?.getItem(STORED) === 'utc' ? 'utc' : 'local')

export function chooseZone(to: Zone): void {
  zone.value = to
  localStorage.setItem(STORED, to)
}

/** Looked up once, because it takes as long as drawing several rows of a list, and each row has a time. */
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'local time'

/** `UTC`, or the name of the user's zone. */
export function zoneName(): string {
  return zone.value === 'utc' ? 'UTC' : ownZone
}

/** `just now`, `12 s ago`, `5 min ago`, `3 h ago`; a date from two days on. @param now Unix milliseconds */
export function ago(timestamp: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(timestamp)) / 1_000)
  if (seconds < 2) return 'just now'
  const distance = distanceOf(seconds)
  return distance === null ? date(timestamp) : `${distance} ago`
}

/** `in 40 s`, `in 5 min`, `in 3 h`; a date from two days on; `now` when it is due. @param now Unix milliseconds */
export function ahead(timestamp: string, now: number): string {
  const seconds = Math.ceil((Date.parse(timestamp) - now) / 1_000)
  if (seconds <= 0) return 'now'
  const distance = distanceOf(seconds)
  return distance === null ? date(timestamp) : `in ${distance}`
}

/** Null from two days on. */
function distanceOf(seconds: number): string | null {
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  return seconds < 2 * 86_400 ? `${Math.floor(seconds / 3_600)} h` : null
}

/** `2026-01-31`. */
function date(timestamp: string | number): string {
  return clock(timestamp).slice(0, 10)
}

/** `14:03`. */
export function hourAndMinute(timestamp: string | number): string {
  return clock(timestamp).slice(11, 16)
}

/** `14:03:07.120`. */
export function timeOfDay(timestamp: string | number): string {
  return clock(timestamp).slice(11)
}

/** `2026-01-31 14:03:07`. */
export function dateAndTime(timestamp: string | number): string {
  return clock(timestamp).slice(0, 19)
}

/** `2026-01-31 14:03:07.120 Europe/Berlin`: the whole, for hints. */
function fullTime(timestamp: string | number): string {
  return `${clock(timestamp)} ${zoneName()}`
}

/** `2026-01-31 14:03:07.120` in the chosen zone. */
function clock(timestamp: string | number): string {
  return clockText(timestamp, zone.value === 'utc')
}

/** A time as the value of a field for a date and time, in the chosen zone. */
export function fieldOf(timestamp: string): string {
  return dateAndTime(timestamp).slice(0, 16).replace(' ', 'T')
}

/** Unix milliseconds of the value of such a field, which has no zone of its own. */
export function timeOfField(text: string): number {
  return Date.parse(zone.value === 'utc' ? `${text}Z` : text)
}

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

interface TimeProps {
  readonly at: string
  readonly prefix?: string
}

/** A text for a moment; the hint has the whole. */
function Time({ at, text, prefix = '', ...rest }: TimeProps & { readonly text: string; readonly class?: string }) {
  return (
    <time dateTime={at} title={fullTime(at)} {...rest}>
      {prefix}
      {text}
    </time>
  )
}

/** `5 min ago`. */
export function Ago(props: TimeProps) {
  return <Time {...props} text={ago(props.at, useNow())} />
}

/** `in 5 min`. */
export function Ahead(props: TimeProps) {
  return <Time {...props} text={ahead(props.at, useNow())} />
}

/** `14:03:07.120`. */
export function ClockTime({ at }: TimeProps) {
  return <Time at={at} text={timeOfDay(at)} class="clock" />
}

/** `2026-01-31 14:03:07`. */
export function Moment({ at }: TimeProps) {
  return <Time at={at} text={dateAndTime(at)} />
}
