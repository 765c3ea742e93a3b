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

/** A value as JSON text, exact. */
export function encodeValue(value: AnyValue): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value === null || typeof value !== 'object') return `${value}`
  if (value instanceof Map) return encodeAttributes(value)
  return `[${value.map(encodeValue).join(',')}]`
}

export function encodeAttributes(attributes: Attributes): string {
  let text = '{'
  for (const [name, value] of attributes) {
    text += `${text.length === 1 ? '' : ','}${JSON.stringify(name)}:${encodeValue(value)}`
  }
  return `${text}}`
}
