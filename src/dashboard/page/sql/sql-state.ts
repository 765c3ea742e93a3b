import type { Column } from '../data/api.ts'
import type { Schemas } from '../data/records.ts'

/** What the address says of the SQL view: the query, and the values of its placeholders. */

const PARAM = 'p.'
const PLACEHOLDER = /\{\s*(\w+)\s*:\s*([\w(), ]+?)\s*\}/g

interface Placeholder {
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

/** The position in the query that an error is about, from 0: the one it names, else that of the name that it quotes. */
export function positionOf(message: string, query: string): number | null {
  const position = Number(/\bposition (\d+)/.exec(message)?.[1])
  if (Number.isFinite(position)) return position - 1
  const [, name = ''] = /[`'"]([\w.]+)[`'"]/.exec(message) ?? []
  const at = name === '' ? -1 : query.indexOf(name)
  return at === -1 ? null : at
}

/** A value of a column of time, in Unix seconds; texts without a zone are in UTC. */
export function timeOf(value: unknown): number {
  const text = String(value).replace(' ', 'T')
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes('T')
  return Date.parse(hasZone ? text : `${text}Z`) / 1_000
}

export function isNumeric({ type }: Column): boolean {
  return /^(Nullable\()?(U?Int|Float|Decimal)/.test(type)
}

export function isTime({ type }: Column): boolean {
  return /^(Nullable\()?Date/.test(type)
}

const STORED = 'sql-history'
const HISTORY_MAX = 30

/** Queries that were run in this browser, newest first. */
export function readHistory(): readonly string[] {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? '[]')
    return Array.isArray(stored) ? stored.filter((each) => typeof each === 'string') : []
  } catch {
    return []
  }
}

export function remember(query: string): void {
  const next = [query, ...readHistory().filter((each) => each !== query)].slice(0, HISTORY_MAX)
  localStorage.setItem(STORED, JSON.stringify(next))
}

/** The answer of `GET /api/v1/query/schema`. */
export type Catalogue = Schemas['QueryCatalogue']

/** Values of placeholders as the fields show them. */
export function textsOf(params: Catalogue['examples'][number]['params']): Readonly<Record<string, string>> {
  const texts = Object.entries(params ?? {}).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return Object.fromEntries(texts)
}
