import type { AlertDefinition } from '../data/alerts.ts'
import type { Params, Result } from '../data/api.ts'
import { num, numOrNull } from '../data/json.ts'
import { paramsAt } from './alert-draft.ts'
import { seriesName } from './series.ts'

/** The values of an alert's query over time, for many windows in one query. */

/** Points of a chart. */
const POINTS = 48
/** The number of the window, in a name that no column of an alert has. */
const POINT = 'point of the chart'
/** How many rows the query had: the value of an alert on any row. */
const ROWS = 'rows of the query'

interface HistoryQuery {
  readonly query: string
  readonly params: Params
  /** The ends of the windows in Unix milliseconds, evenly spread. */
  readonly times: readonly number[]
}

/** Null for a query that does not use the window of its alert: it has no values for earlier times. */
export function historyQuery(
  definition: AlertDefinition,
  text: string,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): HistoryQuery | null {
  const names = Object.keys(paramsAt({ ...definition, params: {} }, text, toMs))
  if (!definition.window || names.length === 0) return null
  const times = Array.from({ length: POINTS }, (_, at) => fromMs + ((toMs - fromMs) * (at + 1)) / POINTS)
  const { condition, by = [] } = definition
  const isAnyRow = condition === 'any_row'
  const columns = [...by.map(quoted), isAnyRow ? `count() AS ${quoted(ROWS)}` : quoted(condition.column)]
  const grouping = isAnyRow && by.length > 0 ? ` GROUP BY ${by.map(quoted).join(', ')}` : ''
  const params: Record<string, unknown> = { ...definition.params }
  const parts = times.map((atMs, index) => {
    for (const [name, value] of Object.entries(paramsAt({ ...definition, params: {} }, text, atMs)))
      params[`${name}_${index}`] = value
    const own = text.replaceAll(/\{\s*(\w+)\s*:/g, (found, name) =>
      names.includes(name) ? `{${name}_${index}:` : found,
    )
    // The line break ends a comment.
    return `SELECT ${index} AS ${quoted(POINT)}, ${columns.join(', ')} FROM (\n${own}\n)${grouping}`
  })
  return { query: parts.join('\nUNION ALL\n'), params: params as Params, times }
}

/** The values of each series, by its name, at the times of the query; null where it has none. */
export function historyOf(
  { rows }: Pick<Result, 'rows'>,
  { by = [], condition }: AlertDefinition,
): ReadonlyMap<string, readonly (number | null)[]> {
  const column = condition === 'any_row' ? ROWS : condition.column
  const found = new Map<string, (number | null)[]>()
  for (const row of rows) {
    const name = seriesName(Object.fromEntries(by.map((each) => [each, row[each]])))
    const values = found.get(name) ?? new Array<number | null>(POINTS).fill(null)
    values[num(row[POINT])] = numOrNull(row[column])
    found.set(name, values)
  }
  return found
}

function quoted(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}
