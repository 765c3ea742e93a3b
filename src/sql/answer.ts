import { elements, member, members } from '../tail/json-parts.ts'

/** What a table shows. */
export interface Grid {
  readonly columns: readonly Column[]
  /** Text as it is to be read; null for NULL. */
  readonly rows: readonly (readonly (string | null)[])[]
}

export interface Column {
  readonly name: string
  /** As ClickHouse calls it. */
  readonly type: string
}

/** `data` of `POST /api/v1/query` in the format json (docs/specification.md#answers). */
export interface Answer extends Grid {
  /** As it came. */
  readonly json: string
  readonly truncated: boolean
  /** Milliseconds at the service, and bytes of the rows. */
  readonly statistics: { readonly elapsed_ms: number; readonly bytes_read: number }
  readonly complete_through: string
}

/**
 * @param envelope the body of the response; numbers keep the digits they have there
 * @throws SyntaxError for what is no JSON
 */
export function readAnswer(envelope: string): Answer {
  const { data } = JSON.parse(envelope) as { data: Omit<Answer, 'json' | 'rows'> }
  const json = member(envelope, 'data') ?? '{}'
  const rows = elements(member(json, 'rows') ?? '[]')
  return { ...data, json, rows: rows.map((row) => members(row).map(([, value]) => cellOf(value))) }
}

/** Whether a column's values are aligned by their last digit. */
export function isNumeric({ type }: Column): boolean {
  return /^(LowCardinality\()?(Nullable\()?(U?Int|Float|BFloat|Decimal)/.test(type)
}

function cellOf(json: string): string | null {
  if (json === 'null') return null
  return json.startsWith('"') ? (JSON.parse(json) as string) : json
}
