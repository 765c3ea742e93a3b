import type { QueryCatalogue } from '../../../analytics/catalogue.ts'
import type { OnWire } from '../data/api.ts'

/** The answer of `GET /api/v1/query/schema`. */
export type Catalogue = OnWire<QueryCatalogue>

/** Values of placeholders as the fields show them. */
export function textsOf(params: Catalogue['examples'][number]['params']): Readonly<Record<string, string>> {
  const texts = Object.entries(params ?? {}).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return Object.fromEntries(texts)
}
