/** Formats numbers for people, here and in the terminal programs. */

/** `1,204`, grouped as in the user's locale. */
export function count(value: number): string {
  return value.toLocaleString()
}

/** `1 run`, `1,204 runs`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** `940`, `1.2k`, `34M`: three digits at most. */
export function compact(value: number): string {
  if (!Number.isFinite(value)) return '–'
  for (const [size, unit] of COMPACT_UNITS) {
    if (Math.abs(value) >= size * 0.9995) return `${trim(value / size)}${unit}`
  }
  return trim(value)
}

const COMPACT_UNITS = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const

function trim(value: number): string {
  const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2
  return String(Number(value.toFixed(digits)))
}

/** `$0.0042`, `$1.24`, `$1,204`. */
export function dollars(value: number): string {
  if (value === 0) return '$0'
  if (value < 0.01) return `$${Number(value.toPrecision(2))}`
  if (value < 100) return `$${value.toFixed(2)}`
  return `$${count(Math.round(value))}`
}

/** `4.2%`, of a share from 0 to 1. */
export function percent(share: number): string {
  return Number.isFinite(share) ? `${trim(share * 100)}%` : '–'
}

/** `340 ms`, `1.24 s`, `2 min 05 s`, `3 h 20 min`; `–` for null. @param ms negative (a clock that is off) counts as 0 */
export function duration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 9_995) return `${(ms / 1_000).toFixed(2)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${pad(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`
}

/** The end of an identifier: the start of a UUID version 7 is the time, which neighbours share. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`
}

/** `awaiting_input` is `awaiting input`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ')
}

/** `75.9 kB`. */
export function bytes(size: number): string {
  return size < 1_000 ? `${size} B` : `${compact(size).replace('k', ' k').replace('M', ' M').replace('B', ' G')}B`
}

/** `2026-01-31 14:03:07.120`, in UTC or in the user's time zone; what is no timestamp is returned as it is. */
export function clockText(timestamp: string | number, isUtc = false): string {
  const at = new Date(timestamp)
  if (Number.isNaN(at.getTime())) return String(timestamp)
  const shown = isUtc ? at : new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return shown.toISOString().replace('T', ' ').replace('Z', '')
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
