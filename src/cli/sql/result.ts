import { elements, member, members } from '../shared/json-parts.ts'
import type { Grid } from '../shared/table.ts'

/** `data` of `POST /api/v1/query` in the format json (docs/specification.md#answers). */
export interface QueryResult extends Grid {
  /** The original text. */
  readonly json: string
  readonly truncated: boolean
  /** Duration at the service, and size of the rows. */
  readonly statistics: { readonly elapsed_ms: number; readonly bytes_read: number }
  readonly complete_through: string
}

/**
 * @param envelope the body of the response; numbers keep their original digits
 * @throws SyntaxError for invalid JSON
 */
export function readResult(envelope: string): QueryResult {
  const { data } = JSON.parse(envelope) as { data: Omit<QueryResult, 'json' | 'rows'> }
  const json = member(envelope, 'data') ?? '{}'
  const rows = elements(member(json, 'rows') ?? '[]')
  return { ...data, json, rows: rows.map((row) => members(row).map(([, value]) => cellOf(value))) }
}

function cellOf(json: string): string | null {
  if (json === 'null') return null
  return json.startsWith('"') ? (JSON.parse(json) as string) : json
}
