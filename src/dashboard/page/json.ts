/**
 * Reads JSON without losing digits: a number that would print otherwise than it was sent (64-bit integers, `1.0`) is kept
 * as its text, which {@link pretty} and {@link textOf} write as it was. A browser that cannot do that gives plain numbers.
 */
export function parseIntact(text: string): unknown {
  return JSON.parse(text, rawJSON === undefined ? undefined : keepDigits)
}

/** JSON for reading: two spaces a level. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? ''
}

/** JSON on one line, except that a text stands for itself. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

// TypeScript's library does not know these two of ECMAScript 2026 yet.
const { rawJSON } = JSON as { rawJSON?: (text: string) => object }
type Source = { readonly source?: string } | undefined

function keepDigits(_key: string, value: unknown, context?: Source): unknown {
  const source = context?.source
  return typeof value === 'number' && source !== undefined && String(value) !== source ? rawJSON?.(source) : value
}
