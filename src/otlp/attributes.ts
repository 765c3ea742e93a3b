import type { AnyValue, Attributes } from './telemetry.ts'

/** The first of these attributes that is a non-empty text. */
export function firstText(attributes: Attributes, names: readonly string[]): string | null {
  for (const name of names) {
    const value = attributes.get(name)
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number' || typeof value === 'bigint') return `${value}`
  }
  return null
}

/** The first of these attributes that is a number of at least 0, or the text of one. */
export function firstNumber(attributes: Attributes, names: readonly string[]): number | null {
  for (const name of names) {
    const value = attributes.get(name)
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number === 'number' && Number.isFinite(number) && number >= 0) return number
  }
  return null
}

/** The first of these attributes that is there. */
export function firstValue(attributes: Attributes, names: readonly string[]): AnyValue | undefined {
  for (const name of names) {
    const value = attributes.get(name)
    if (value !== undefined && value !== null && value !== '') return value
  }
  return undefined
}

/** Quotes, backslashes, control characters, and surrogates, which may be lone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them. A class of the others takes ten times as long.
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/
/** Without quotes and backslashes, which take just a backslash before them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const ESCAPED_OTHERWISE = /[\u0000-\u001f\ud800-\udfff]/

/**
 * A text as JSON. Contents are often JSON themselves, with many quotes: `JSON.stringify` takes three times as long for
 * those as for a text without any.
 */
function encodeText(text: string): string {
  if (!ESCAPED.test(text)) return `"${text}"`
  if (ESCAPED_OTHERWISE.test(text)) return JSON.stringify(text)
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** A value as JSON text, exact. */
export function encodeValue(value: AnyValue): string {
  if (typeof value === 'string') return encodeText(value)
  if (value === null || typeof value !== 'object') return `${value}`
  if (value instanceof Map) return encodeAttributes(value)
  return `[${value.map(encodeValue).join(',')}]`
}

export function encodeAttributes(attributes: Attributes): string {
  let text = '{'
  for (const [name, value] of attributes) {
    text += `${text.length === 1 ? '' : ','}${encodeText(name)}:${encodeValue(value)}`
  }
  return `${text}}`
}
