import type { Schemas } from '../data/records.ts'

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
