import { useMemo } from 'preact/hooks'
import { count } from '../../../base/format.ts'
import type { Result } from '../data/api.ts'
import { type Colour, type Series, TimeChart } from '../parts/chart.tsx'
import { bucketsOf, completeBuckets, type TimeRange } from '../parts/range.tsx'
import { type ChartChoice, type ChartPlan, formatOf, type PlanSeries, planOf, sumOf } from './chart-plan.ts'
import { isTime } from './columns.ts'

const COLOURS: readonly Colour[] = Array.from({ length: 8 }, (_, at) => `chart-${at + 1}` as Colour)
const BARS_MAX = 50
const HEIGHT = 320
const LABEL_LENGTH_MAX = 14

interface ResultChartProps {
  readonly result: Result
  readonly choice: ChartChoice
  readonly title?: string
  /** In pixels. */
  readonly height?: number
  /** The time range of the result: all of its buckets are shown, and those that are not over yet are marked. */
  readonly range?: TimeRange | undefined
  /** Called when the user selects a part of the time axis, in Unix milliseconds. */
  readonly onZoom?: ((fromMs: number, toMs: number) => void) | undefined
}

/** A result as lines, bars, stacked areas or numbers. */
export function ResultChart({
  result,
  choice,
  title = 'The result',
  height = HEIGHT,
  range,
  onZoom,
}: ResultChartProps) {
  const plan = useMemo(() => planOf(result, choice, range), [result, choice])
  if (plan === null) return <p class="hint">There are no numbers to draw.</p>
  if (plan.kind === 'number') return <Numbers plan={plan} />
  if (plan.kind === 'bar' && !isTime(plan.x)) return <Bars plan={plan} />
  return <Lines plan={plan} title={title} height={height} range={range} onZoom={onZoom} />
}

type LinesProps = { readonly plan: ChartPlan } & Pick<ResultChartProps, 'onZoom' | 'range'> & {
    readonly title: string
    readonly height: number
  }

/** Lines, areas and bars over a horizontal axis. */
function Lines({ plan, title, height, range, onZoom }: LinesProps) {
  const { labels, x, at } = plan
  const { series, omitted } = useMemo(() => drawnSeries(plan), [plan])
  const format = formatOf(plan.unit)
  const isOfRange = range !== undefined && at[0] === range.fromMs / 1_000 && at.length === bucketsOf(range).length
  const complete = isOfRange ? completeBuckets(range, Date.now()) : plan.kind === 'bar' ? at.length : undefined
  const labelOf = (value: number) =>
    labels === null ? formatOf('number')(value) : (labels[value] ?? '').slice(0, LABEL_LENGTH_MAX)
  return (
    <>
      <TimeChart
        title={`${title} by ${x.name}`}
        times={at}
        series={series}
        format={format}
        formatRight={formatOf(plan.rightUnit)}
        height={height}
        {...(complete !== undefined && { complete })}
        {...(isTime(x) ? onZoom && { onZoom } : { labelOf })}
      />
      {omitted > 0 && (
        <p class="hint">
          Showing the {COLOURS.length} largest series; {count(omitted)} not shown.
        </p>
      )}
    </>
  )
}

/** The series with their colours. Stacked ones are listed from the top down, and the smallest are drawn as one. */
function drawnSeries({ series, isStacked, kind, isConnected }: ChartPlan) {
  if (!isStacked) {
    const kindOf = kind === 'bar' ? 'bars' : 'line'
    const lines = series.slice(0, COLOURS.length).map((each, at): Series => {
      return { ...each, colour: COLOURS[at] as Colour, kind: kindOf, isConnected }
    })
    // Smaller bars are drawn in front of larger ones.
    if (kind === 'bar') lines.sort((a, b) => sumOf(b.values) - sumOf(a.values))
    return { series: lines, omitted: series.length - lines.length }
  }
  const own = series.length > COLOURS.length ? COLOURS.length - 1 : series.length
  const rest = series.slice(own)
  const shown = rest.length === 0 ? series : [...series.slice(0, own), othersOf(rest)]
  const heights = new Array<number>(series[0]?.values.length ?? 0).fill(0)
  const stacked = shown.map(({ label, values }, at): Series => {
    for (const [index, value] of values.entries()) heights[index] = (heights[index] as number) + (value ?? 0)
    const colour = at < own ? (COLOURS[at] as Colour) : 'soft'
    return { label, values, drawn: [...heights], colour, kind: kind === 'bar' ? 'bars' : 'stack' }
  })
  return { series: stacked.reverse(), omitted: 0 }
}

function othersOf(series: readonly PlanSeries[]): PlanSeries {
  const values = series[0]?.values.map((_, at) => sumOf(series.map((each) => each.values[at] ?? null))) ?? []
  return { label: `${count(series.length)} others`, values, unit: series[0]?.unit ?? 'number', isOnRight: false }
}

/** Bars from top to bottom: at each place one bar per column, or one bar made of its series. */
function Bars({ plan: { labels, at, series, x, isStacked, unit } }: { readonly plan: ChartPlan }) {
  const shown = at.slice(0, BARS_MAX)
  const columns = series.slice(0, COLOURS.length)
  const mostOf = (isOnRight: boolean) => {
    const of = columns.filter((each) => each.isOnRight === isOnRight)
    const values = shown.flatMap((_, index) => {
      const row = of.map(({ values }) => Math.abs(values[index] ?? 0))
      return isStacked ? [sumOf(row)] : row
    })
    return Math.max(1e-12, ...values)
  }
  const most = { left: mostOf(false), right: mostOf(true) }
  const width = (value: number, isOnRight: boolean) =>
    `${(Math.abs(value) / (isOnRight ? most.right : most.left)) * 100}%`
  return (
    <>
      {columns.length > 1 && (
        <p class="chart-legend">
          {columns.map(({ label }, index) => (
            <span key={label} class="chart-key" style={{ '--key': `var(--${COLOURS[index]})` }}>
              {label}
            </span>
          ))}
        </p>
      )}
      <ol
        class={`bars ${isStacked ? 'is-stacked' : ''}`}
        aria-label={`${columns.map(({ label }) => label).join(', ')} by ${x.name}`}
      >
        {shown.map((place, index) => (
          <li key={place}>
            <span class="bar-label" title={labels?.[index]}>
              {labels?.[index] ?? formatOf('number')(place)}
            </span>
            <span class="bar-track">
              {columns.map(({ label, values, unit: own, isOnRight }, colour) => (
                <i
                  key={label}
                  title={`${label}: ${textOfValue(values[index], own)}`}
                  style={{ width: width(values[index] ?? 0, isOnRight), background: `var(--${COLOURS[colour]})` }}
                />
              ))}
            </span>
            <span class="number">
              {isStacked
                ? textOfValue(sumOf(columns.map(({ values }) => values[index] ?? null)), unit)
                : columns.map(({ label, values, unit: own }) => (
                    <span key={label}>{textOfValue(values[index], own)}</span>
                  ))}
            </span>
          </li>
        ))}
      </ol>
      {at.length > BARS_MAX && (
        <p class="hint">
          The first {BARS_MAX} of {count(at.length)}.
        </p>
      )}
    </>
  )
}

function Numbers({ plan: { series } }: { readonly plan: ChartPlan }) {
  return (
    <dl class="figures">
      {series.map(({ label, values, unit }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{textOfValue(values[0], unit)}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A value with all of its digits if they are few. */
function textOfValue(value: number | null | undefined, unit: ChartPlan['unit']): string {
  if (value === null || value === undefined) return '–'
  return unit === 'number' && Number.isInteger(value) ? count(value) : formatOf(unit)(value)
}
