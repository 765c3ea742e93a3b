import { ago, ahead, dateAndTime, fullTime, timeOfDay } from './clock.ts'
import { useNow } from './now.ts'

interface TimeProps {
  readonly at: string
  readonly prefix?: string
}

/** `5 min ago`; the hint has the moment. */
export function Ago({ at, prefix = '' }: TimeProps) {
  return (
    <time dateTime={at} title={fullTime(at)}>
      {prefix}
      {ago(at, useNow())}
    </time>
  )
}

/** `in 5 min`. */
export function Ahead({ at, prefix = '' }: TimeProps) {
  return (
    <time dateTime={at} title={fullTime(at)}>
      {prefix}
      {ahead(at, useNow())}
    </time>
  )
}

/** `14:03:07.120`. */
export function ClockTime({ at }: TimeProps) {
  return (
    <time dateTime={at} title={fullTime(at)} class="clock">
      {timeOfDay(at)}
    </time>
  )
}

/** `2026-01-31 14:03:07`. */
export function Moment({ at }: TimeProps) {
  return (
    <time dateTime={at} title={fullTime(at)}>
      {dateAndTime(at)}
    </time>
  )
}
