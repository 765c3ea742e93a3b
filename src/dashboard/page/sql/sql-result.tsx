import { useMemo, useState } from 'preact/hooks'
import { compact, count, duration } from '../../../base/format.ts'
import type { Result } from '../data/api.ts'
import { pretty, textOf } from '../data/json.ts'
import { type Colour, type Series, TimeChart, withEmptyBuckets } from '../parts/chart.tsx'
import { TextBlock } from '../parts/code.tsx'
import { Button, Dialog, openTab, Tabs } from '../parts/controls.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { isNumeric, isTime, type SqlState, timeOf } from './sql-state.ts'

const TABS = { table: 'Table', chart: 'Chart' }

/** The answer of a query as a table or a chart, and as a file. */
export function ResultPanel({ result, sql }: { readonly result: Result; readonly sql: SqlState }) {
  const canChart = useMemo(
    () => result.rows.length > 0 && result.columns.length > 1 && result.columns.some(isNumeric),
    [result],
  )
  const tab = canChart ? openTab({ name: 'as', tabs: TABS }) : 'table'
  return (
    <section class="panel result" aria-label="Result">
      <div class="result-head">
        {canChart && <Tabs label="Show the result as" name="as" tabs={TABS} />}
        <span class="hint" role="status">
          {summaryOf(result)}
        </span>
        <div class="run-actions">
          <Button class="small" onClick={() => void sql.download('csv')} icon="download" text="CSV" />
          <Button class="small" onClick={() => void sql.download('parquet')} icon="download" text="Parquet" />
        </div>
      </div>
      {tab === 'chart' ? <ResultChart result={result} /> : <ResultTable result={result} />}
    </section>
  )
}

function summaryOf({ row_count, truncated, statistics }: Result): string {
  const parts = [`${count(row_count)} ${row_count === 1 ? 'row' : 'rows'}`, duration(statistics.elapsed_ms)]
  if (truncated) parts.push('cut here: add a LIMIT or aggregate; the files have all rows')
  return parts.join(' · ')
}

const ROW_HEIGHT = 28
const CELL_LENGTH_MAX = 300
/** Rows from which the widths of the columns are estimated. */
const SAMPLE_ROWS = 60
const WIDTH_CH_MIN = 6
const WIDTH_CH_MAX = 44
const CELL_PADDING_CH = 3
const LIST_HEIGHT_ROWS_MAX = 18

interface Cell {
  readonly title: string
  readonly value: unknown
}

/** Rows of a result; only those in view exist. Long cells are cut, and open in full. */
function ResultTable({ result }: { readonly result: Result }) {
  const { columns, rows } = result
  const [open, setOpen] = useState<Cell | null>(null)
  const grid = useMemo(() => gridOf(result), [result])
  return (
    <div
      class="result-table"
      role="table"
      aria-label="Rows"
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
    >
      <div class="result-scroll">
        <div role="row" class="result-row result-heads mono" style={grid}>
          {columns.map((column) => (
            <span key={column.name} role="columnheader" title={column.type} class={isNumeric(column) ? 'number' : ''}>
              {column.name}
            </span>
          ))}
        </div>
        <VirtualList
          class="result-rows"
          count={rows.length}
          rowHeight={ROW_HEIGHT}
          label="Rows of the result"
          height={Math.min(rows.length, LIST_HEIGHT_ROWS_MAX) * ROW_HEIGHT}
          isTable
          row={(index) => (
            <div key={index} role="row" aria-rowindex={index + 2} class="result-row mono" style={grid}>
              {columns.map((column) => (
                <ResultCell
                  key={column.name}
                  value={rows[index]?.[column.name]}
                  isNumber={isNumeric(column)}
                  open={(value) => setOpen({ title: column.name, value })}
                />
              ))}
            </div>
          )}
        />
      </div>
      {open !== null && (
        <Dialog title={open.title} close={() => setOpen(null)}>
          <TextBlock
            title="Value"
            text={typeof open.value === 'string' ? open.value : pretty(open.value)}
            isJson={typeof open.value !== 'string'}
          />
        </Dialog>
      )}
    </div>
  )
}

interface ResultCellProps {
  readonly value: unknown
  readonly isNumber: boolean
  readonly open: (value: unknown) => void
}

function ResultCell({ value, isNumber, open }: ResultCellProps) {
  const text = textOf(value ?? 'null')
  const isLong = text.length > WIDTH_CH_MAX || text.includes('\n')
  return (
    <span role="cell" class={`${value === null || value === undefined ? 'null' : ''} ${isNumber ? 'number' : ''}`}>
      {isLong ? <Button class="cell-open" onClick={() => open(value)} text={text.slice(0, CELL_LENGTH_MAX)} /> : text}
    </span>
  )
}

/** Columns as wide as the longest of their first cells, within limits; what is left is shared. */
function gridOf({ columns, rows }: Result) {
  const widths = columns.map(({ name }) => {
    const lengths = rows.slice(0, SAMPLE_ROWS).map((row) => textOf(row[name] ?? 'null').length)
    return Math.min(WIDTH_CH_MAX, Math.max(WIDTH_CH_MIN, name.length, ...lengths)) + CELL_PADDING_CH
  })
  const total = widths.reduce((sum, width) => sum + width, 0)
  return {
    gridTemplateColumns: widths.map((width) => `minmax(${width}ch, ${width}fr)`).join(' '),
    minWidth: `${total}ch`,
  }
}

const COLOURS: readonly Colour[] = ['chart-1', 'chart-2', 'chart-3', 'chart-4']
const BARS_MAX = 50

/** A result over its column of time as lines, or as bars by its first column. */
function ResultChart({ result }: { readonly result: Result }) {
  const time = result.columns.find(isTime)
  // One point makes no line.
  return time === undefined || result.rows.length < 2 ? (
    <Bars result={result} />
  ) : (
    <Lines result={result} time={time.name} />
  )
}

function Lines({ result, time }: { readonly result: Result; readonly time: string }) {
  const { times, series, omitted } = useMemo(() => linesOf(result, time), [result, time])
  return (
    <>
      <TimeChart title="The result over time" times={times} series={series} format={compact} height={320} />
      {omitted > 0 && (
        <p class="hint">
          Showing the {COLOURS.length} largest series; {count(omitted)} not shown.
        </p>
      )}
    </>
  )
}

interface Point {
  readonly at: number
  readonly row: Readonly<Record<string, unknown>>
}

type Values = (number | null)[]

/** The columns of numbers; or one of them by another column, where several rows have the same time. */
function linesOf({ columns, rows }: Result, time: string) {
  const points = rows
    .map((row): Point => ({ at: timeOf(row[time]), row }))
    .filter(({ at }) => Number.isFinite(at))
    .sort((a, b) => a.at - b.at)
  const found = [...new Set(points.map(({ at }) => at))]
  const filled = withEmptyBuckets(found)
  const times = filled ?? found
  const isConnected = filled === null
  const numbers = columns.filter(isNumeric).map(({ name }) => name)
  const label = columns.find((column) => column.name !== time && !isNumeric(column))
  const [number] = numbers
  if (found.length === points.length || label === undefined || number === undefined) {
    const byTime = new Map(points.map(({ at, row }) => [at, row]))
    const lines = numbers.map((name) => [name, times.map((at) => numberOf(byTime.get(at)?.[name]))] as const)
    return { times, series: coloured(lines, isConnected), omitted: 0 }
  }
  const lines = linesBy(label.name, number, points, times)
  return { times, series: coloured(lines, isConnected), omitted: Math.max(0, lines.length - COLOURS.length) }
}

/** One line for each value of `label`, the largest first. */
function linesBy(label: string, number: string, points: readonly Point[], times: readonly number[]) {
  const indexes = new Map(times.map((at, index) => [at, index]))
  const lines = new Map<string, Values>()
  for (const { at, row } of points) {
    const name = textOf(row[label] ?? 'null')
    const values = lines.get(name) ?? new Array<number | null>(times.length).fill(null)
    values[indexes.get(at) as number] = numberOf(row[number])
    lines.set(name, values)
  }
  const sum = (values: Values) => values.reduce<number>((total, value) => total + (value ?? 0), 0)
  return [...lines].sort(([, a], [, b]) => sum(b) - sum(a))
}

function coloured(lines: readonly (readonly [label: string, values: Values])[], isConnected: boolean): Series[] {
  return lines
    .slice(0, COLOURS.length)
    .map(([label, values], index) => ({ label, colour: COLOURS[index] as Colour, values, isConnected }))
}

function Bars({ result: { columns, rows } }: { readonly result: Result }) {
  const value = columns.find(isNumeric)
  const label = columns.find((column) => !isNumeric(column)) ?? columns[0]
  if (value === undefined || label === undefined) return null
  const bars = rows
    .slice(0, BARS_MAX)
    .map((row) => ({ label: textOf(row[label.name] ?? 'null'), value: numberOf(row[value.name]) ?? 0 }))
  const most = Math.max(1e-12, ...bars.map((bar) => Math.abs(bar.value)))
  return (
    <ol class="bars" aria-label={`${value.name} by ${label.name}`}>
      {bars.map((bar, index) => (
        <li key={index}>
          <span class="bar-label">{bar.label}</span>
          <span class="bar-track">
            <i style={{ width: `${(Math.abs(bar.value) / most) * 100}%` }} />
          </span>
          <span class="number">{Number.isInteger(bar.value) ? count(bar.value) : compact(bar.value)}</span>
        </li>
      ))}
      {rows.length > BARS_MAX && <li class="hint">The first {BARS_MAX} rows.</li>}
    </ol>
  )
}

function numberOf(value: unknown): number | null {
  if (value === null || value === undefined) return null
  const number = Number(typeof value === 'object' ? JSON.stringify(value) : value)
  return Number.isFinite(number) ? number : null
}
