import { numberIn } from '../conventions/usage-names.ts'
import type { AnyValue, Attributes, Resource } from './telemetry.ts'

/** The first of these attributes that is a non-empty string, or a number, as a string. */
export function firstText(attributes: Attributes, names: readonly string[]): string | null {
  for (const name of names) {
    const value = attributes.get(name)
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number' || typeof value === 'bigint') return `${value}`
  }
  return null
}

/** The first of these attributes that is a number of at least 0, or a string with one ({@link numberIn}). */
export function firstNumber(attributes: Attributes, names: readonly string[]): number | null {
  for (const name of names) {
    const value = attributes.get(name)
    const number = typeof value === 'string' ? numberIn(value) : value
    if (typeof number === 'number' && Number.isFinite(number) && number >= 0) return number
  }
  return null
}

/** The first of these attributes that is present and neither null nor empty. */
export function firstValue(attributes: Attributes, names: readonly string[]): AnyValue | undefined {
  for (const name of names) {
    const value = attributes.get(name)
    if (value !== undefined && value !== null && value !== '') return value
  }
  return undefined
}

/** What JSON escapes: quotes, backslashes, control characters and surrogates, which may be lone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them. The inverted class takes ten times as long.
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/
/** The same without quotes and backslashes, whose escape is just a backslash in front. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const NEEDS_STRINGIFY = /[\u0000-\u001f\ud800-\udfff]/

/**
 * Encodes a string as JSON. Contents are often JSON themselves, with many quotes, and `JSON.stringify` takes three times
 * as long for a string with quotes as for one without.
 */
function encodeText(text: string): string {
  if (!ESCAPED.test(text)) return `"${text}"`
  if (NEEDS_STRINGIFY.test(text)) return JSON.stringify(text)
  const escaped = text.includes('\\') ? text.replaceAll('\\', '\\\\') : text
  return `"${escaped.replaceAll('"', '\\"')}"`
}

/** Encodes a value as JSON, without loss of precision. */
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

const resourceTexts = new WeakMap<Resource, string>()

/** The attributes of a resource as JSON, encoded once for all items of an export. */
export function resourceText(resource: Resource): string {
  const text = resourceTexts.get(resource) ?? encodeAttributes(resource.attributes)
  resourceTexts.set(resource, text)
  return text
}
