import { useMemo } from 'preact/hooks'
import { compact, count } from '../../../base/format.ts'
import { textOf } from '../data/json.ts'
import type { Result } from '../data/query.ts'
import { type Colour, type Series, TimeChart } from '../parts/chart.tsx'
import { withSilence } from '../parts/silence.ts'
import { isNumeric, isTime, timeOf } from './sql-state.ts'

const COLOURS: readonly Colour[] = ['chart-1', 'chart-2', 'chart-3', 'chart-4']
const BARS_MAX = 50

/** A result over its column of time as lines, or as bars by its first column. */
export function ResultChart({ result }: { readonly result: Result }) {
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
  const filled = withSilence(found)
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
