import { useMemo } from 'preact/hooks'
import { textOf } from '../data/json.ts'
import type { Result } from '../data/query.ts'
import { type Colour, type Series, TimeChart } from '../parts/chart.tsx'
import { compact, count } from '../parts/format.ts'
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

function Lines({ result: { columns, rows }, time }: { readonly result: Result; readonly time: string }) {
  const { times, series } = useMemo(() => {
    const points = rows
      .map((row) => ({ at: timeOf(row[time]), row }))
      .filter(({ at }) => Number.isFinite(at))
      .sort((a, b) => a.at - b.at)
    const numbers = columns.filter(isNumeric).slice(0, COLOURS.length)
    return {
      times: points.map(({ at }) => at),
      series: numbers.map(
        ({ name }, index): Series => ({
          label: name,
          colour: COLOURS[index] as Colour,
          values: points.map(({ row }) => numberOf(row[name])),
        }),
      ),
    }
  }, [columns, rows, time])
  return <TimeChart title="The result over time" times={times} series={series} format={compact} height={320} />
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
