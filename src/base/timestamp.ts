/**
 * Parses timestamps from callers: any RFC 3339, stored as UTC milliseconds (docs/api.md#times).
 *
 * Accepted: every RFC 3339 date-time, also with a lower-case `t` or `z`, a space instead of the `T`, any offset, and any
 * number of fractional digits (truncated to milliseconds). A leap second (`23:59:60Z`) is read as the second after it, as
 * POSIX clocks do. Refused: days that do not exist, and years outside 1900–2299, which ClickHouse's `DateTime64(3)` cannot
 * hold.
 */

const MIN_MS = Date.UTC(1900, 0, 1)
const MAX_MS = Date.UTC(2300, 0, 1) - 1
const DAYS_OF = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/** Length of `2026-01-31T09:30:00.123Z`, the form nearly every client sends. */
export const CANONICAL_BYTES = 24

/** More than any two digits: the value of a byte that is no digit. */
const NO_DIGIT = 1_000
/** The value of each byte as a digit, and ten times that. */
const ONES = new Int16Array(256).fill(NO_DIGIT)
const TENS = new Int16Array(256).fill(NO_DIGIT)
for (let digit = 0; digit < 10; digit++) {
  ONES[0x30 + digit] = digit
  TENS[0x30 + digit] = digit * 10
}
/** The other bytes of the canonical form. */
const MARKS = Uint8Array.from('--T::.Z', (char) => char.charCodeAt(0))
const MARKS_AT = Uint8Array.of(4, 7, 10, 13, 16, 19, 23)

/** A row as clients see it: its dates are text. */
type WithIsoTimes<T> = {
  [K in keyof T]: T[K] extends Date ? string : T[K] extends Date | null ? string | null : T[K]
}

/** The row of a record that has the same members, its timestamps (`…_at`) as dates. */
export type RowOf<T> = {
  readonly [K in keyof T]: K extends `${string}_at` ? Date | Extract<T[K], null> : T[K]
}

export function withIsoTimes<T extends object>(row: T): WithIsoTimes<T> {
  const members = Object.entries(row).map(([name, value]) => [
    name,
    value instanceof Date ? value.toISOString() : value,
  ])
  return Object.fromEntries(members)
}

export function isoOrNull(time: Date | number | null): string | null {
  return time === null ? null : new Date(time).toISOString()
}

/** The day of a time in Unix milliseconds, as `20260131`: ClickHouse's id of its partition. */
export function partitionOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')
}

/** The time of a timestamp that a schema has accepted; an invalid date for any other text. */
export function dateOf(timestamp: string): Date {
  return new Date(parseTimestamp(timestamp) ?? Number.NaN)
}

/** Unix milliseconds, or null if `text` is not an accepted timestamp. */
export function parseTimestamp(text: string): number | null {
  const ms = parseAny(text)
  return ms !== null && ms >= MIN_MS && ms <= MAX_MS ? ms : null
}

/**
 * Reads that form from the bytes at `at`, for the hot path; null for any other form, which {@link parseTimestamp} reads.
 * The day is cached, because the events of a batch usually share it.
 */
export function parseCanonicalBytes(bytes: Uint8Array, at: number): number | null {
  for (let i = 0; i < MARKS.length; i++) if (bytes[at + MARKS_AT[i]] !== MARKS[i]) return null
  const century = two(bytes, at)
  const year = two(bytes, at + 2)
  const month = two(bytes, at + 5)
  const dayOfMonth = two(bytes, at + 8)
  if (century > 99 || year > 99 || month > 99 || dayOfMonth > 99) return null
  const hour = two(bytes, at + 11)
  const minute = two(bytes, at + 14)
  const second = two(bytes, at + 17)
  const tenth = ONES[bytes[at + 20]]
  const rest = two(bytes, at + 21)
  if (hour > 23 || minute > 59 || second > 59 || tenth > 9 || rest > 99) return null
  const day = century * 1_000_000 + year * 10_000 + month * 100 + dayOfMonth
  if (day !== lastDay.written) {
    const start = parseAny(`${Buffer.from(bytes.buffer, bytes.byteOffset + at, 10).toString('latin1')}T00:00:00Z`)
    if (start === null || start < MIN_MS || start > MAX_MS) return null
    lastDay = { written: day, start }
  }
  return lastDay.start + ((hour * 60 + minute) * 60 + second) * 1_000 + tenth * 100 + rest
}

let lastDay = { written: -1, start: 0 }

/** The number that two digits stand for; more than 99 for other bytes. */
function two(bytes: Uint8Array, at: number): number {
  return TENS[bytes[at]] + ONES[bytes[at + 1]]
}

function parseAny(text: string): number | null {
  const match = RFC_3339.exec(text)
  if (match === null) return null
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] = match
  if (sign !== undefined && (Number(offsetHour) > 23 || Number(offsetMinute) > 59)) return null
  const offset = sign === undefined ? 0 : (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1)
  const ms = Number(fraction.slice(0, 3).padEnd(3, '0'))
  return instant(Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second), ms, offset)
}

/** Every comparison is written so that NaN (from a missing digit) fails it. */
function instant(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
  ms: number,
  offsetMinutes: number,
): number | null {
  if (!(year >= 1000 && month >= 1 && month <= 12 && day >= 1 && hour <= 23 && minute <= 59 && ms <= 999)) return null
  if (!(day <= DAYS_OF[month - 1] || (month === 2 && day === 29 && isLeapYear(year)))) return null
  if (!(second <= 59 || (second === 60 && isLeapSecond(hour * 60 + minute - offsetMinutes)))) return null
  return Date.UTC(year, month - 1, day, hour, minute - offsetMinutes, second, ms)
}

/** Leap seconds are inserted at the end of a UTC day only. */
function isLeapSecond(utcMinute: number): boolean {
  return (((utcMinute + 1) % 1440) + 1440) % 1440 === 0
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}
