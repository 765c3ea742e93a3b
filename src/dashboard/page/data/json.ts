import { allVisible } from '../../../base/visible.ts'

/** JSON indented by two spaces per level. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? ''
}

/** {@link pretty} for approvals: every character that cannot be seen is shown as an escape. The value is the same. */
export function plain(value: unknown): string {
  // Line breaks between the parts are ours; those in strings are already escaped.
  return allVisible(pretty(value))
}

/** JSON on one line; a string is shown without quotes. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** A value of an answer as a number; numbers may be texts, or objects that keep their digits. */
export function numOrNull(value: unknown): number | null {
  if (value === null || value === undefined) return null
  const number = Number(typeof value === 'object' ? JSON.stringify(value) : value)
  return Number.isFinite(number) ? number : null
}

export function num(value: unknown): number {
  return numOrNull(value) ?? 0
}

/** The numbers of a list; none if it is no list. */
export function numbers(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(num) : []
}
