import { compact, dollars, duration, percent } from '../../../base/format.ts'
import { type Series, TimeChart } from '../parts/chart.tsx'
import type { RunFigures, RunMetrics } from './metrics.ts'

interface Point extends RunFigures {
  /** Events per second. */
  readonly rate: number | null
}

interface Chart {
  readonly title: string
  readonly format: (value: number) => string
  /** The figures are known when runs end. */
  readonly isOfEnded?: boolean
  readonly series: readonly (Omit<Series, 'values'> & { readonly value: (point: Point) => number | null })[]
}

const CHARTS: readonly Chart[] = [
  {
    title: 'Runs',
    format: compact,
    series: [
      { label: 'all', colour: 'chart-1', kind: 'bars', value: ({ runs }) => runs },
      { label: 'failed', colour: 'bad', kind: 'bars', value: ({ failed }) => failed },
    ],
  },
  {
    title: 'Failure rate',
    format: percent,
    isOfEnded: true,
    series: [
      {
        label: 'failed of ended',
        colour: 'bad',
        kind: 'area',
        value: ({ failed, ended }) => (ended === 0 ? null : failed / ended),
      },
    ],
  },
  {
    title: 'Latency',
    format: duration,
    isOfEnded: true,
    series: [
      { label: 'p50', colour: 'chart-2', value: ({ p50 }) => p50 },
      { label: 'p95', colour: 'chart-1', value: ({ p95 }) => p95 },
      { label: 'p99', colour: 'chart-3', value: ({ p99 }) => p99 },
    ],
  },
  {
    title: 'Events per second',
    format: compact,
    series: [{ label: 'events/s', colour: 'chart-2', kind: 'area', value: ({ rate }) => rate }],
  },
  {
    title: 'Tokens',
    format: compact,
    isOfEnded: true,
    series: [{ label: 'tokens', colour: 'chart-4', kind: 'bars', value: ({ tokens }) => tokens }],
  },
  {
    title: 'Cost',
    format: dollars,
    isOfEnded: true,
    series: [{ label: 'USD', colour: 'chart-3', kind: 'bars', value: ({ cost }) => cost }],
  },
]

interface ChartsProps {
  readonly metrics: RunMetrics
  readonly rates: readonly number[]
  readonly zoom: (fromMs: number, toMs: number) => void
}

/** The figures over time. Dragging over a chart selects a shorter range. */
export function Charts({ metrics: { times, complete, settled, series: figures }, rates, zoom }: ChartsProps) {
  const points = figures.map((each, index) => ({ ...each, rate: rates[index] ?? null }))
  return (
    <div class="charts">
      {CHARTS.map(({ title, format, isOfEnded, series }) => (
        <section key={title} class="panel chart-panel">
          <h2>{title}</h2>
          <TimeChart
            title={`${title} over time`}
            times={times}
            complete={isOfEnded ? settled : complete}
            format={format}
            series={series.map(({ value, ...line }) => ({ ...line, values: points.map(value) }))}
            onZoom={zoom}
          />
        </section>
      ))}
    </div>
  )
}
