import { parsedJson } from '../../base/json-object.ts'
import { encodeValue } from './json-writer.ts'
import { type AnyValue, type Attributes, type Resource, Utf8Text } from './telemetry.ts'

/** Of a list in a text. */
export const LIST_LENGTH_MAX = 16 * 1024

/** The attribute, a string also if it stayed in the body. */
export function valueAt(attributes: Attributes, name: string): AnyValue | undefined {
  const value = attributes.get(name)
  return value instanceof Utf8Text ? `${value}` : value
}

/** The attribute if it is a string, or else an empty text. */
export function textAt(attributes: Attributes, name: string): string {
  return textOf(attributes.get(name))
}

/** A value if it is a string, or else an empty text. */
export function textOf(value: AnyValue | undefined): string {
  return isText(value) ? `${value}` : ''
}

export function isText(value: AnyValue | undefined): value is string | Utf8Text {
  return typeof value === 'string' || value instanceof Utf8Text
}

/** The first of these attributes that is a non-empty string, or a number, as a string. */
export function firstText(attributes: Attributes, names: readonly string[]): string | null {
  for (const name of names) {
    const value = valueAt(attributes, name)
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number' || typeof value === 'bigint') return `${value}`
  }
  return null
}

/** The first of these attributes that is a non-empty string or a list, also as JSON in a string, whose texts it returns. */
export function firstTexts(attributes: Attributes, names: readonly string[]): string[] {
  for (const name of names) {
    let value: unknown = valueAt(attributes, name)
    if (typeof value === 'string' && value.startsWith('[') && value.length <= LIST_LENGTH_MAX) {
      value = parsedJson(value) ?? value
    }
    if (typeof value === 'string' && value !== '') return [value]
    if (Array.isArray(value)) {
      const texts = value.map((item) => (item instanceof Utf8Text ? `${item}` : item))
      return texts.filter((text) => typeof text === 'string' && text !== '')
    }
  }
  return []
}

/** The first of these attributes that is present and neither null nor empty. */
export function firstValue(attributes: Attributes, names: readonly string[]): AnyValue | undefined {
  for (const name of names) {
    const value = attributes.get(name)
    if (value !== undefined && value !== null && value !== '') return value
  }
  return undefined
}

const resourceTexts = new WeakMap<Resource, string>()

/** The attributes of a resource as JSON, encoded once for all items of an export. */
export function resourceText(resource: Resource): string {
  const text = resourceTexts.get(resource) ?? encodeValue(resource.attributes)
  resourceTexts.set(resource, text)
  return text
}
