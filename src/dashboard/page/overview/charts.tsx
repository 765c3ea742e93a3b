import { compact, dollars, duration, percent } from '../../../base/format.ts'
import { TimeChart } from '../parts/chart.tsx'
import type { RunMetrics } from './metrics.ts'

interface ChartsProps {
  readonly metrics: RunMetrics
  readonly rates: readonly number[]
  readonly zoom: (fromMs: number, toMs: number) => void
}

/** The figures over time. Dragging over a chart selects a shorter range. */
export function Charts({ metrics: { times, complete, settled, series }, rates, zoom }: ChartsProps) {
  const common = { times, complete, onZoom: zoom }
  const ofEnded = { ...common, complete: settled }
  return (
    <div class="charts">
      <ChartPanel title="Runs">
        <TimeChart
          {...common}
          title="Runs over time"
          format={compact}
          series={[
            { label: 'all', colour: 'chart-1', kind: 'bars', values: series.map(({ runs }) => runs) },
            { label: 'failed', colour: 'bad', kind: 'bars', values: series.map(({ failed }) => failed) },
          ]}
        />
      </ChartPanel>
      <ChartPanel title="Failure rate">
        <TimeChart
          {...ofEnded}
          title="Failure rate over time"
          format={percent}
          series={[
            {
              label: 'failed of ended',
              colour: 'bad',
              kind: 'area',
              values: series.map(({ failed, ended }) => (ended === 0 ? null : failed / ended)),
            },
          ]}
        />
      </ChartPanel>
      <ChartPanel title="Latency">
        <TimeChart
          {...ofEnded}
          title="Latency of runs over time"
          format={duration}
          series={[
            { label: 'p50', colour: 'chart-2', values: series.map(({ p50 }) => p50) },
            { label: 'p95', colour: 'chart-1', values: series.map(({ p95 }) => p95) },
            { label: 'p99', colour: 'chart-3', values: series.map(({ p99 }) => p99) },
          ]}
        />
      </ChartPanel>
      <ChartPanel title="Events per second">
        <TimeChart
          {...common}
          title="Events per second over time"
          format={compact}
          series={[
            {
              label: 'events/s',
              colour: 'chart-2',
              kind: 'area',
              values: times.map((_, index) => rates[index] ?? null),
            },
          ]}
        />
      </ChartPanel>
      <ChartPanel title="Tokens">
        <TimeChart
          {...ofEnded}
          title="Tokens over time"
          format={compact}
          series={[{ label: 'tokens', colour: 'chart-4', kind: 'bars', values: series.map(({ tokens }) => tokens) }]}
        />
      </ChartPanel>
      <ChartPanel title="Cost">
        <TimeChart
          {...ofEnded}
          title="Cost over time"
          format={dollars}
          series={[{ label: 'USD', colour: 'chart-3', kind: 'bars', values: series.map(({ cost }) => cost) }]}
        />
      </ChartPanel>
    </div>
  )
}

function ChartPanel({ title, children }: { readonly title: string; readonly children: preact.ComponentChildren }) {
  return (
    <section class="panel chart-panel">
      <h2>{title}</h2>
      {children}
    </section>
  )
}
