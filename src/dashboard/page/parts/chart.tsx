import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { isDark } from '../app/theme.ts'
import { dateAndTime, hourAndMinute, timeOfDay, zone } from './clock.ts'

/** Names of colour tokens of the style sheet. */
export type Colour = 'chart-1' | 'chart-2' | 'chart-3' | 'chart-4' | 'good' | 'bad' | 'wait' | 'busy'

export interface Series {
  readonly label: string
  readonly colour: Colour
  readonly values: readonly (number | null)[]
  readonly kind?: 'line' | 'area' | 'bars'
}

interface TimeChartProps {
  readonly title: string
  /** In Unix seconds. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  readonly height?: number
  /** The user has selected a part of the time axis, in Unix milliseconds. */
  readonly onZoom?: (fromMs: number, toMs: number) => void
}

const HEIGHT = 150
const SHORT_SPAN_SECONDS = 300
const DAY_SECONDS = 86_400
/** A shorter drag is a click. */
const ZOOM_PX_MIN = 8
const FONT = '11px Inter, system-ui, sans-serif'

/** Values over time, with the values under the pointer in its legend. */
export function TimeChart(props: TimeChartProps) {
  const { times, series, format, title, height = HEIGHT } = props
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const zoom = useRef(props.onZoom)
  const [index, setIndex] = useState<number | null>(null)
  zoom.current = props.onZoom
  const data = [times, ...series.map(({ values }) => values)] as uPlot.AlignedData
  const shape = `${series.map(({ label, colour, kind }) => `${label} ${colour} ${kind}`)} ${isDark.value} ${zone.value} ${height}`

  // New data goes into the same chart, below.
  useEffect(() => {
    const element = host.current as HTMLDivElement
    const options = chartOptions({ ...props, height }, element, setIndex, (from, to) => zoom.current?.(from, to))
    const drawn = new uPlot(options, data, element)
    plot.current = drawn
    const observer = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      drawn.destroy()
    }
  }, [shape])
  useEffect(() => plot.current?.setData(data), [times, series])

  const at = index ?? null
  return (
    <figure class="chart" aria-label={title}>
      <figcaption class="chart-legend">
        {series.map(({ label, colour, values }) => (
          <span key={label} class={`chart-key ${colour}`}>
            {label} <b>{at === null ? '' : shownValue(values[at], format)}</b>
          </span>
        ))}
        {at !== null && times[at] !== undefined && <span class="chart-time">{dateAndTime(times[at] * 1_000)}</span>}
      </figcaption>
      <div ref={host} class="chart-canvas" style={{ height: `${height}px` }} role="img" aria-label={summary(props)} />
    </figure>
  )
}

function shownValue(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

/** For people who cannot see the chart: the last value and the highest. */
function summary({ title, series, format }: TimeChartProps): string {
  const parts = series.map(({ label, values }) => {
    const known = values.filter((value) => value !== null)
    if (known.length === 0) return `${label}: no data`
    return `${label}: now ${format(known.at(-1) as number)}, at most ${format(Math.max(...known))}`
  })
  return `${title}. ${parts.join('; ')}`
}

function chartOptions(
  { series, format, height = HEIGHT, times }: TimeChartProps,
  element: HTMLElement,
  onIndex: (index: number | null) => void,
  onZoom: (fromMs: number, toMs: number) => void,
): uPlot.Options {
  const colourOf = colours(element)
  const axis = { stroke: colourOf('soft'), font: FONT, ticks: { show: false } }
  const grid = { stroke: colourOf('line'), width: 1 }
  return {
    width: element.clientWidth || 300,
    height,
    legend: { show: false },
    padding: [8, 16, 0, 0],
    cursor: { sync: { key: 'time' }, points: { size: 6 }, drag: { x: true, y: false, setScale: false }, y: false },
    scales: { x: { time: true }, y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.12 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, values: (_plot, splits) => splits.map((at) => timeLabel(at, times)) },
      { ...axis, grid, size: 52, space: 34, values: (_plot, splits) => splits.map(format) },
    ],
    series: [{}, ...series.map((each) => seriesOptions(each, colourOf))],
    hooks: {
      setCursor: [({ cursor }) => onIndex(cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width < ZOOM_PX_MIN) return
          onZoom(plot.posToVal(left, 'x') * 1_000, plot.posToVal(left + width, 'x') * 1_000)
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  }
}

function seriesOptions({ label, colour, kind = 'line' }: Series, colourOf: (name: string) => string): uPlot.Series {
  const stroke = colourOf(colour)
  const bars = uPlot.paths.bars?.({ size: [0.72, 28], radius: 0.15 })
  if (kind === 'bars') return { label, stroke, fill: stroke, width: 0, paths: bars, points: { show: false } }
  const line = { label, stroke, width: 1.75, points: { show: false }, spanGaps: true }
  return kind === 'area' ? { ...line, fill: translucent(stroke) } : line
}

/** Canvas cannot use the tokens of the style sheet, so their values are read from an element. */
function colours(element: HTMLElement): (name: string) => string {
  const probe = document.createElement('span')
  probe.hidden = true
  element.append(probe)
  return (name) => {
    probe.style.color = `var(--${name})`
    return getComputedStyle(probe).color
  }
}

function translucent(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.14)')
}

function timeLabel(at: number, times: readonly number[]): string {
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0)
  if (span > 2 * DAY_SECONDS) return dateAndTime(at * 1_000).slice(5, 10)
  return span < SHORT_SPAN_SECONDS ? timeOfDay(at * 1_000).slice(0, 8) : hourAndMinute(at * 1_000)
}
