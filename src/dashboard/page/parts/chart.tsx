import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { isDark } from '../context/browser.ts'
import { dateAndTime, hourAndMinute, timeOfDay, zone } from './time.tsx'

/** Names of colour tokens of the style sheet. */
export type Colour = `chart-${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8}` | 'good' | 'bad' | 'wait' | 'busy' | 'soft'

export interface Series {
  readonly label: string
  readonly colour: Colour
  readonly values: readonly (number | null)[]
  /** `stack` fills down to the next series, `bars` hide those that come before. Both need `drawn` to be stacked. */
  readonly kind?: 'line' | 'area' | 'bars' | 'stack' | undefined
  /** Heights at which the values are drawn when they are stacked on those below; by default the values. */
  readonly drawn?: readonly (number | null)[]
  readonly isOnRight?: boolean
  /** The line goes on where values are missing, because its times are no buckets. */
  readonly isConnected?: boolean
}

interface TimeChartProps {
  readonly title: string
  /** In Unix seconds; any numbers with `labelOf`. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** Of the series on the right axis. */
  readonly formatRight?: (value: number) => string
  /** The labels of the horizontal axis, if it is not time. */
  readonly labelOf?: (value: number) => string
  readonly height?: number
  /** The times are the starts of buckets of one width, of which so many are over: values of later ones still change. */
  readonly complete?: number
  /** The user has selected a part of the time axis, in Unix milliseconds. */
  readonly onZoom?: (fromMs: number, toMs: number) => void
}

const HEIGHT = 150
const SHORT_SPAN_SECONDS = 300
const DAY_SECONDS = 86_400
/** A shorter drag is a click. */
const ZOOM_PX_MIN = 8
/** Opacities of the fill of areas, and of bars whose time is not over. */
const AREA = 0.14
const STACK = 0.4
const FADED = 0.45
/** uPlot's number for colours of bars. */
const COLOUR_UNIT = 3
/** The scale of the right axis. */
const RIGHT = 'right'
/** Between the labels of the horizontal axis, in pixels. */
const WIDE_LABEL = 90
const SECONDS_LABEL = 66
const MINUTES_LABEL = 50
const FONT = '11px Inter, system-ui, sans-serif'
/** The least width of a value axis, and the width of a character of its labels, in pixels. */
const VALUE_AXIS_MIN = 52
const LABEL_CHARACTER = 6

/** Values over time, with the values under the pointer in its legend. */
export function TimeChart(props: TimeChartProps) {
  const { times, title, height = HEIGHT, complete = times.length } = props
  const series = props.series.map((each): Series => {
    if (each.kind === 'bars') return each
    return { ...each, values: ended(each.values, complete), ...(each.drawn && { drawn: ended(each.drawn, complete) }) }
  })
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const latest = useRef<Latest['current']>({ ...props, complete })
  const [at, setIndex] = useState<number | null>(null)
  latest.current = { ...props, complete }
  const data = [times, ...series.map(({ values, drawn }) => drawn ?? values)] as uPlot.AlignedData
  const lines = series.map(({ values: _values, drawn: _drawn, ...line }) => line)
  const shape = `${JSON.stringify(lines)} ${isDark.value} ${zone.value} ${height} ${props.labelOf === undefined}`

  // New data goes into the same chart, below.
  useEffect(() => {
    const element = host.current as HTMLDivElement
    const options = chartOptions({ ...props, height }, element, latest, setIndex)
    const drawn = new uPlot(options, data, element)
    plot.current = drawn
    const observer = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      drawn.destroy()
    }
  }, [shape])
  useEffect(() => plot.current?.setData(data), [times, props.series, complete])

  return (
    <figure class="chart" aria-label={title}>
      <figcaption class="chart-legend">
        {series.map(({ label, colour, values, isOnRight }) => (
          <span key={label} class="chart-key" style={{ '--key': `var(--${colour})` }}>
            {label}
            {isOnRight && <small> (right)</small>}{' '}
            <b>{at === null ? '' : shownValue(values[at], formatOf(props, isOnRight))}</b>
          </span>
        ))}
        {at !== null && times[at] !== undefined && (
          <span class="chart-time">
            {props.labelOf?.(times[at]) ?? timeUnderPointer(times[at], times)}
            {at >= complete && ', so far'}
          </span>
        )}
      </figcaption>
      <div
        ref={host}
        class="chart-canvas"
        style={{ height: `${height}px` }}
        role="img"
        aria-label={summary({ ...props, series })}
      />
    </figure>
  )
}

function formatOf({ format, formatRight = format }: Latest['current'], isOnRight = false): (value: number) => string {
  return isOnRight ? formatRight : format
}

function shownValue(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

/** For people who cannot see the chart: the last value and the highest. */
function summary({ title, series, ...formats }: TimeChartProps): string {
  const parts = series.map(({ label, values, isOnRight }) => {
    const known = values.filter((value) => value !== null)
    if (known.length === 0) return `${label}: no data`
    const format = formatOf(formats, isOnRight)
    return `${label}: now ${format(known.at(-1) as number)}, at most ${format(Math.max(...known))}`
  })
  return `${title}. ${parts.join('; ')}`
}

/** The values of a line without those of incomplete buckets; all of them if it has no others. */
function ended(values: Series['values'], complete: number): Series['values'] {
  const known = values.map((value, at) => (at < complete ? value : null))
  return known.every((value) => value === null) ? values : known
}

/** What may change without creating a new chart. */
type Latest = {
  readonly current: Pick<TimeChartProps, 'onZoom' | 'format' | 'formatRight' | 'labelOf' | 'complete'>
}

function chartOptions(
  { series, height = HEIGHT, times, complete, labelOf }: TimeChartProps,
  element: HTMLElement,
  latest: Latest,
  onIndex: (index: number | null) => void,
): uPlot.Options {
  const half = ({ data: [all] }: uPlot) => (complete === undefined ? 0 : widthOf(all) / 2)
  const colourOf = colours(element)
  const axis = { stroke: colourOf('soft'), font: FONT, ticks: { show: false } }
  const grid = { stroke: colourOf('line'), width: 1 }
  const hasRight = series.some(({ isOnRight }) => isOnRight)
  const valueAxis = (isOnRight: boolean): uPlot.Axis => ({
    ...axis,
    ...(isOnRight ? { scale: RIGHT, side: 1, grid: { show: false } } : { grid }),
    // Wide enough for the longest label; before the first drawing there are none.
    size: (_plot, shown) =>
      Math.max(VALUE_AXIS_MIN, ...(shown ?? []).map((label) => label.length * LABEL_CHARACTER + 14)),
    space: 34,
    values: (_plot, splits) => labels(splits, formatOf(latest.current, isOnRight)),
  })
  return {
    width: element.clientWidth || 300,
    height,
    legend: { show: false },
    // Half of the last label.
    padding: [8, hasRight ? 0 : isShort(times) ? 28 : 20, 0, 0],
    cursor: {
      ...(labelOf === undefined && { sync: { key: 'time' } }),
      points: { size: 6 },
      drag: { x: true, y: false, setScale: false },
      y: false,
    },
    scales: {
      // Bars stand in the middle of their buckets' width, also the first and the last.
      x: { time: labelOf === undefined, range: (plot, min, max) => [min - half(plot), max + half(plot)] },
      y: { range: withZero },
      [RIGHT]: { range: withZero },
    },
    bands: series.flatMap(({ kind }, at) =>
      kind === 'stack' && at + 1 < series.length ? [{ series: [at + 1, at + 2] }] : [],
    ),
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 26,
        space: labelOf !== undefined ? WIDE_LABEL : isShort(times) ? SECONDS_LABEL : MINUTES_LABEL,
        values: ({ data: [all] }, splits) => splits.map((at) => latest.current.labelOf?.(at) ?? timeLabel(at, all)),
      },
      valueAxis(false),
      ...(hasRight ? [valueAxis(true)] : []),
    ],
    series: [{}, ...series.map((each) => seriesOptions(each, colourOf, latest))],
    hooks: {
      setCursor: [({ cursor }) => onIndex(cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width < ZOOM_PX_MIN) return
          const at = (px: number) => (plot.posToVal(px, 'x') + half(plot)) * 1_000
          latest.current.onZoom?.(at(left), at(left + width))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  }
}

/** The range of a value axis: it includes zero, and has room above the highest value. */
function withZero(_plot: uPlot, min: number, max: number): [number, number] {
  return [min < 0 ? min * 1.12 : 0, max > 0 ? max * 1.12 : min < 0 ? 0 : 1]
}

function seriesOptions(
  { label, colour, kind = 'line', isConnected = false, isOnRight = false }: Series,
  colourOf: (name: string) => string,
  latest: Latest,
): uPlot.Series {
  const stroke = colourOf(colour)
  const scale = isOnRight ? RIGHT : 'y'
  if (kind === 'bars') {
    const faded = translucent(stroke, FADED)
    const values = (plot: uPlot) =>
      Array.from(plot.data[0], (_, at) => (at < (latest.current.complete ?? Number.POSITIVE_INFINITY) ? stroke : faded))
    const bars = uPlot.paths.bars?.({
      size: [0.72, 28],
      radius: 0.15,
      disp: { fill: { unit: COLOUR_UNIT, values } },
    })
    return { label, scale, stroke, fill: stroke, width: 0, points: { show: false }, ...(bars && { paths: bars }) }
  }
  const points = {
    show: true,
    size: 5,
    fill: stroke,
    filter: (plot: uPlot, at: number) => isolated(plot.data[at] ?? []),
  }
  const line = { label, scale, stroke, width: 1.75, points, spanGaps: isConnected }
  if (kind === 'stack') return { ...line, fill: translucent(stroke, STACK) }
  const segments = isConnected ? line : { ...line, paths: pathOfSegments }
  return kind === 'area' ? { ...segments, fill: translucent(stroke, AREA) } : segments
}

/**
 * A path for each row of neighbouring values. The default draws one line through all values and cuts the gaps out of it,
 * which leaves stubs towards the value behind a gap.
 */
function pathOfSegments(plot: uPlot, index: number, from: number, to: number): uPlot.Series.Paths {
  const scale = plot.series[index]?.scale ?? 'y'
  const [times, values] = [plot.data[0], plot.data[index] ?? []]
  const x = (at: number) => plot.valToPos(times[at] as number, 'x', true)
  const zero = plot.valToPos(0, scale, true)
  const [stroke, fill] = [new Path2D(), new Path2D()]
  for (const [first, last] of segmentsOf(values, from, to)) {
    const segment = new Path2D()
    for (let at = first; at <= last; at++) segment.lineTo(x(at), plot.valToPos(values[at] as number, scale, true))
    stroke.addPath(segment)
    segment.lineTo(x(last), zero)
    segment.lineTo(x(first), zero)
    fill.addPath(segment)
  }
  return { stroke, fill }
}

/** The first and the last index of each row of neighbouring values within a range of indexes. */
export function segmentsOf(values: ArrayLike<number | null | undefined>, from: number, to: number) {
  const segments: [first: number, last: number][] = []
  for (let at = from; at <= to; at++) {
    if (typeof values[at] !== 'number') continue
    const last = segments.at(-1)
    if (last?.[1] === at - 1) last[1] = at
    else segments.push([at, at])
  }
  return segments
}

/** `5 s` rather than `5.00 s`, and no label twice. */
function labels(values: readonly number[], format: (value: number) => string): string[] {
  const texts = values.map((value) => format(value).replace(/\.00(?=\s)/, ''))
  return texts.map((text, at) => (text === texts[at - 1] ? '' : text))
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

function translucent(colour: string, opacity: number): string {
  return colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${opacity})`)
}

function timeLabel(at: number, times: ArrayLike<number>): string {
  if (spanOf(times) > 2 * DAY_SECONDS) return dateAndTime(at * 1_000).slice(5, 10)
  return isShort(times) ? timeOfDay(at * 1_000).slice(0, 8) : hourAndMinute(at * 1_000)
}

/** Short, so that the legend stays in its line. */
function timeUnderPointer(at: number, times: ArrayLike<number>): string {
  return spanOf(times) > DAY_SECONDS ? dateAndTime(at * 1_000).slice(5, 16) : timeOfDay(at * 1_000).slice(0, 8)
}

function isShort(times: ArrayLike<number>): boolean {
  return spanOf(times) < SHORT_SPAN_SECONDS
}

function spanOf(times: ArrayLike<number>): number {
  return (times[times.length - 1] ?? 0) - (times[0] ?? 0)
}

/** Seconds between two times. */
function widthOf(times: ArrayLike<number>): number {
  return (times[1] ?? 0) - (times[0] ?? 0)
}

/** Above this many points, missing times are not added. */
const POINTS_MAX = 2_000

/**
 * Adds the times of empty buckets: a query that groups by time has no row for a bucket without data.
 * @param times in seconds, ascending
 * @returns null if the times are not a whole number of buckets apart, or would be too many
 */
export function withEmptyBuckets(times: readonly number[]): number[] | null {
  const [first] = times
  const last = times.at(-1)
  const steps = times.slice(1).map((time, at) => time - (times[at] as number))
  const step = Math.min(...steps)
  if (first === undefined || last === undefined || steps.length === 0 || step <= 0) return null
  if (steps.some((each) => each % step !== 0) || (last - first) / step >= POINTS_MAX) return null
  return Array.from({ length: (last - first) / step + 1 }, (_, at) => first + at * step)
}

/** The indexes of values without neighbours, which a line would not show. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const has = (at: number) => values[at] !== null && values[at] !== undefined
  return Array.from(values, (_, at) => at).filter((at) => has(at) && !has(at - 1) && !has(at + 1))
}
