/**
 * A number that may print differently than it is written: 16 digits, a last zero after the point, an exponent, almost zero,
 * or `-0`. Texts without one are parsed several times faster; those that only contain it in a string lose nothing but that.
 */
const INEXACT = /(?:^|[:[,\s])-?(?:(?=[\d.]{16})\d|\d+\.\d*0(?=[,}\]\s]|$)|0\.0{6}|\d[\d.]*[eE]|(?<=-)0(?=[,}\]\s]|$))/

/**
 * Parses JSON without losing digits: a number that would print differently than it was sent (64-bit integers, `1.0`) is
 * an object that `JSON.stringify` prints unchanged. In browsers that do not support this, it is a plain number.
 */
export function parseIntact(text: string): unknown {
  return JSON.parse(text, rawJSON !== undefined && INEXACT.test(text) ? keepDigits : undefined)
}

// TypeScript's library does not have these two of ECMAScript 2026 yet.
const { rawJSON } = JSON as { rawJSON?: (text: string) => object }
type Source = { readonly source?: string } | undefined

function keepDigits(_key: string, value: unknown, context?: Source): unknown {
  const source = context?.source
  return typeof value === 'number' && source !== undefined && String(value) !== source ? rawJSON?.(source) : value
}
