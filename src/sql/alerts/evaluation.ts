import { ApiError } from '../../base/errors.ts'
import type { AsOfSession, CompactAnswer } from '../analytics/analytics.ts'
import type { RunQuery } from '../analytics/schema.ts'
import { EvaluationError, keyOf, type Observed, type Result, SERIES_MAX } from './machine.ts'

/** Rows of a result. */
const ROWS_MAX = 10_000
/** Characters of the values of a series, as JSON. */
const SERIES_LENGTH_MAX = 500
/** What an event shows of a series. */
const SHOWN_ROWS_MAX = 10
const SHOWN_ROWS_BYTES_MAX = 8 * 1024
/** And what all events of an evaluation show together: a thousand series may fire at once, and their events are written at once. */
const SHOWN_BYTES_MAX = 1 << 20
/** Values are rounded, because the last digits of a sum of fractions depend on the order of the rows. */
const SIGNIFICANT_DIGITS = 12
const INTEGER_TYPE = /^(Nullable\()?U?Int(64|128|256)\b/
const NUMERIC_TYPE = /^(LowCardinality\()?(Nullable\()?(U?Int\d+|B?Float\d+|Decimal|Bool\b)/

/** What is evaluated at each tick. */
export interface Evaluated {
  readonly query: string
  readonly params: RunQuery['params']
  readonly windowMs: number | null
  readonly by: readonly string[]
  /** The column of the condition; null for any row. */
  readonly column: string | null
}

/** A series with its rows. */
interface SeriesRows extends Observed {
  readonly rowCount: number
  /** The first rows. */
  readonly rows: readonly (readonly unknown[])[]
}

export interface Evaluation {
  readonly result: Result
  /** The rows of a series as objects: the first ones, up to 8 KiB of JSON, and 1 MiB of all series that were asked for. */
  rowsOf(key: string): { readonly rows: readonly object[]; readonly rowCount: number }
}

/**
 * The result of an alert's query as of a tick. A query that fails because of its text or its rows is a result, too.
 * @throws ApiError for other failures, such as UNAVAILABLE and RATE_LIMITED: the evaluation must be repeated
 */
export async function evaluate(
  session: AsOfSession,
  evaluated: Evaluated,
  tick: number,
  signal: AbortSignal,
): Promise<Evaluation> {
  try {
    const answer = await session.run({ ...queryAt(evaluated, tick), rows: ROWS_MAX }, signal)
    const series = seriesOf(evaluated, answer)
    let left = SHOWN_BYTES_MAX
    const rowsOf: Evaluation['rowsOf'] = (key) => {
      const most = Math.min(left, SHOWN_ROWS_BYTES_MAX)
      const { rows, bytes } = shownRows(answer.columns, series.get(key)?.rows ?? [], most)
      left -= bytes
      return { rows, rowCount: series.get(key)?.rowCount ?? 0 }
    }
    return { result: series, rowsOf }
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'VALIDATION_ERROR') throw error
    return { result: new EvaluationError(error.message), rowsOf: () => ({ rows: [], rowCount: 0 }) }
  }
}

/**
 * Checks an alert's query without reading rows.
 * @throws ApiError VALIDATION_ERROR that names the member; as {@link evaluate}
 */
export async function checkEvaluated(
  session: AsOfSession,
  evaluated: Evaluated,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const { columns } = await session.run({ ...queryAt(evaluated, now), rows: 0 }, signal)
  for (const [index, name] of evaluated.by.entries()) indexOf(columns, name, `by[${index}]`)
  const { column } = evaluated
  if (column === null) return
  const { type } = columns[indexOf(columns, column, 'condition.column')]
  if (!NUMERIC_TYPE.test(type)) throw failure(`condition.column: ${JSON.stringify(column)} is not numeric, but ${type}`)
}

function queryAt({ query, params, windowMs }: Evaluated, tick: number) {
  const range = windowMs !== null && { from: seconds(tick - windowMs), to: seconds(tick) }
  return { query, params: { ...params, ...range }, asOf: tick }
}

/** Does not depend on the time zone of the server. */
function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}

function seriesOf({ by, column }: Evaluated, { columns, rows }: CompactAnswer): Map<string, SeriesRows> {
  const byIndexes = by.map((name, index) => indexOf(columns, name, `by[${index}]`))
  const valueIndex = column === null ? null : indexOf(columns, column, 'condition.column')
  const found = new Map<string, { observed: Observed; rows: (readonly unknown[])[]; rowCount: number }>()
  for (const row of rows) {
    const series = byIndexes.map((index) => plain(row[index], columns[index].type))
    const key = keyOf(series)
    if (key.length > SERIES_LENGTH_MAX)
      throw failure(`the values of a series have more than ${SERIES_LENGTH_MAX} characters`)
    let entry = found.get(key)
    if (entry === undefined) {
      entry = {
        observed: { series, value: valueIndex === null ? null : numberOf(row[valueIndex]) },
        rows: [],
        rowCount: 0,
      }
      found.set(key, entry)
      if (found.size > SERIES_MAX) throw failure(`more than ${SERIES_MAX} series: group the rows by fewer columns`)
    } else if (column !== null)
      throw failure(`two rows of the series ${key}: by must name all columns that identify a series`)
    entry.rowCount++
    if (entry.rows.length < SHOWN_ROWS_MAX) entry.rows.push(row)
  }
  return new Map([...found].map(([key, { observed, ...shown }]) => [key, { ...observed, ...shown }]))
}

function indexOf(columns: CompactAnswer['columns'], name: string, member: string): number {
  const index = columns.findIndex((column) => column.name === name)
  if (index >= 0) return index
  const names = columns.map((column) => column.name).join(', ')
  throw failure(`${member}: the result has no column ${JSON.stringify(name)}; its columns are ${names}`)
}

/** ClickHouse writes 64-bit integers as text; those that a number holds exactly become one. */
function plain(value: unknown, type: string): unknown {
  return typeof value === 'string' && INTEGER_TYPE.test(type) && Number.isSafeInteger(Number(value))
    ? Number(value)
    : value
}

function numberOf(value: unknown): number | null {
  if (value === null || value === undefined) return null
  const number = Number(value)
  return Number.isFinite(number) ? Number(number.toPrecision(SIGNIFICANT_DIGITS)) : null
}

function shownRows(columns: CompactAnswer['columns'], rows: SeriesRows['rows'], bytesMax: number) {
  const shown: object[] = []
  let bytes = 0
  // No row fits, and a thousand series would each find that out.
  if (columns.reduce((length, { name }) => length + name.length, 0) > bytesMax) return { rows: shown, bytes }
  for (const row of rows) {
    const object = Object.fromEntries(columns.map(({ name, type }, index) => [name, plain(row[index], type)]))
    const length = Buffer.byteLength(JSON.stringify(object))
    if (bytes + length > bytesMax) break
    bytes += length
    shown.push(object)
  }
  return { rows: shown, bytes }
}

function failure(problem: string): ApiError {
  return new ApiError('VALIDATION_ERROR', problem)
}
