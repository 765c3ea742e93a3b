/** Formats numbers and times for people. */

/** `1,204`, grouped as in the user's locale. */
export function count(value: number): string {
  return value.toLocaleString()
}

/** `340 ms`, `1.24 s`, `2 min 05 s`, `3 h 20 min`. @param ms negative (a clock that is off) counts as 0 */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 9_995) return `${(ms / 1_000).toFixed(2)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${pad(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`
}

/** `just now`, `12 s ago`, `5 min ago`, `3 h ago`; a date from two days on. @param now Unix milliseconds */
export function ago(timestamp: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(timestamp)) / 1_000)
  if (seconds < 2) return 'just now'
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return new Date(timestamp).toLocaleDateString()
}

/** `in 40 s`, `in 5 min`, `in 3 h`; a date from two days on; `now` when it is due. @param now Unix milliseconds */
export function ahead(timestamp: string, now: number): string {
  const seconds = Math.ceil((Date.parse(timestamp) - now) / 1_000)
  if (seconds <= 0) return 'now'
  if (seconds < 60) return `in ${seconds} s`
  if (seconds < 3_600) return `in ${Math.floor(seconds / 60)} min`
  if (seconds < 2 * 86_400) return `in ${Math.floor(seconds / 3_600)} h`
  return new Date(timestamp).toLocaleDateString()
}

/** `14:03:07.120` in the user's time zone. */
export function timeOfDay(timestamp: string): string {
  const at = new Date(timestamp)
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`
}

/** The end of an identifier: the start of a UUID version 7 is the time, which neighbours share. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`
}

/** `awaiting_input` is `awaiting input`. */
export function words(name: string): string {
  return name.replaceAll('_', ' ')
}

function pad(value: number, length = 2): string {
  return String(value).padStart(length, '0')
}
