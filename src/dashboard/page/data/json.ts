import { allVisible } from '../../../base/visible.ts'

/**
 * A number that may print differently than it is written: 16 digits, a last zero after the point, an exponent, almost zero,
 * or `-0`. Texts without one are parsed several times faster; those that only contain it in a string lose nothing but that.
 */
const INEXACT = /(?:^|[:[,\s])-?(?:(?=[\d.]{16})\d|\d+\.\d*0(?=[,}\]\s]|$)|0\.0{6}|\d[\d.]*[eE]|(?<=-)0(?=[,}\]\s]|$))/

/**
 * Parses JSON without losing digits: a number that would print differently than it was sent (64-bit integers, `1.0`) is
 * kept as text, which {@link pretty} and {@link textOf} print unchanged. In browsers that do not support this, it is a
 * plain number.
 */
export function parseIntact(text: string): unknown {
  return JSON.parse(text, rawJSON !== undefined && INEXACT.test(text) ? keepDigits : undefined)
}

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

// TypeScript's library does not have these two of ECMAScript 2026 yet.
const { rawJSON } = JSON as { rawJSON?: (text: string) => object }
type Source = { readonly source?: string } | undefined

function keepDigits(_key: string, value: unknown, context?: Source): unknown {
  const source = context?.source
  return typeof value === 'number' && source !== undefined && String(value) !== source ? rawJSON?.(source) : value
}
