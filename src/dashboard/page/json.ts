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

/**
 * {@link pretty} for somebody who decides on it: what cannot be seen, or turns the direction of what can, stands there as
 * its escape, so that nothing looks like something else. It is the same value still.
 */
export function plain(value: unknown): string {
  // Line breaks between the parts are ours; those in texts are escapes already.
  return pretty(value).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (unseen) =>
    Array.from({ length: unseen.length }, (_, at) => `\\u${unseen.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  )
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
