import type { Schemas } from '../data/records.ts'

/** The placeholders of a query, and their values: in fields, in the address and in a request. */

const PARAM = 'p.'
const PLACEHOLDER = /\{\s*(\w+)\s*:\s*([\w(), ]+?)\s*\}/g

export interface Placeholder {
  readonly name: string
  readonly type: string
}

/** The placeholders of a query, each once, in order. */
export function placeholdersOf(query: string): Placeholder[] {
  const found = new Map<string, Placeholder>()
  for (const [, name = '', type = ''] of query.matchAll(PLACEHOLDER))
    if (!found.has(name)) found.set(name, { name, type })
  return [...found.values()]
}

export function valuesOf(query: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) =>
      name.startsWith(PARAM) ? [[name.slice(PARAM.length), value]] : [],
    ),
  )
}

/** The values as members of the address. */
export function addressOf(text: string, values: Readonly<Record<string, string>>): Record<string, string> {
  const params = Object.entries(values).map(([name, value]) => [`${PARAM}${name}`, value])
  return { q: text, ...Object.fromEntries(params) }
}

/**
 * The values that the placeholders of a query need. The service converts texts to their types; lists are JSON, and an
 * empty field is null where the type allows it.
 */
export function paramsOf(query: string, values: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    placeholdersOf(query).map(({ name, type }) => {
      const value = values[name] ?? ''
      if (/^Nullable/.test(type) && (value === '' || value === 'null')) return [name, null]
      return [name, /^Array/.test(type) ? JSON.parse(value) : value]
    }),
  )
}

/** Values of placeholders as the fields show them. */
export function textsOf(
  params: Schemas['QueryCatalogue']['examples'][number]['params'],
): Readonly<Record<string, string>> {
  const texts = Object.entries(params ?? {}).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return Object.fromEntries(texts)
}
