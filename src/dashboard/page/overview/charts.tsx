import { compact, dollars, duration, percent } from '../../../base/format.ts'
import { type Colour, type Series, TimeChart } from '../parts/chart.tsx'
import type { RunFigures, RunMetrics } from './metrics.ts'

/** A point of a chart: the figures of a bucket. */
interface Point extends RunFigures {
  readonly failureRate: number | null
  readonly eventsPerSecond: number | null
}

type Line = readonly [label: string, of: keyof Point, colour: Colour, kind?: Series['kind']]

interface Chart {
  readonly title: string
  readonly format: (value: number) => string
  readonly lines: readonly Line[]
  /** Shows figures that are known only when a run has ended. */
  readonly isOfEnded?: boolean
}

const RUNS: readonly Line[] = [
  ['all', 'runs', 'chart-1', 'bars'],
  ['failed', 'failed', 'bad', 'bars'],
]
const QUANTILES: readonly Line[] = [
  ['p50', 'p50', 'chart-2'],
  ['p95', 'p95', 'chart-1'],
  ['p99', 'p99', 'chart-3'],
]
const CHARTS: readonly Chart[] = [
  { title: 'Runs', format: compact, lines: RUNS },
  {
    title: 'Failure rate',
    format: percent,
    lines: [['failed of ended', 'failureRate', 'bad', 'area']],
    isOfEnded: true,
  },
  { title: 'Latency', format: duration, lines: QUANTILES, isOfEnded: true },
  { title: 'Events per second', format: compact, lines: [['events/s', 'eventsPerSecond', 'chart-2', 'area']] },
  { title: 'Tokens', format: compact, lines: [['tokens', 'tokens', 'chart-4', 'bars']], isOfEnded: true },
  { title: 'Cost', format: dollars, lines: [['USD', 'cost', 'chart-3', 'bars']], isOfEnded: true },
]

interface ChartsProps {
  readonly metrics: RunMetrics
  readonly rates: readonly number[]
  readonly zoom: (fromMs: number, toMs: number) => void
}

/** The figures over time. Dragging over a chart selects a shorter range. */
export function Charts({ metrics: { times, complete, settled, series }, rates, zoom }: ChartsProps) {
  const points = series.map((figures, index): Point => {
    const failureRate = figures.ended === 0 ? null : figures.failed / figures.ended
    return { ...figures, failureRate, eventsPerSecond: rates[index] ?? null }
  })
  return (
    <div class="charts">
      {CHARTS.map(({ title, format, lines, isOfEnded }) => (
        <section key={title} class="panel chart-panel">
          <h2>{title}</h2>
          <TimeChart
            title={`${title} over time`}
            times={times}
            complete={isOfEnded ? settled : complete}
            format={format}
            series={lines.map(([label, of, colour, kind]) => {
              return { label, colour, kind, values: points.map((point) => point[of]) }
            })}
            onZoom={zoom}
          />
        </section>
      ))}
    </div>
  )
}
