import { bytes, compact, dollars, duration, percent } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'
import type { Column, Result } from '../data/api.ts'
import { numOrNull, textOf } from '../data/json.ts'
import type { Schemas } from '../data/records.ts'
import { withEmptyBuckets } from '../parts/chart.tsx'
import { bucketsOf, type TimeRange } from '../parts/range.tsx'
import { isNumeric, isTime, timeOf } from './columns.ts'

/** How a result is drawn: as the user chose, and otherwise by the names and types of its columns. */

/** What the user chose; addresses and saved queries contain it in this form. */
export type ChartChoice = Schemas['Chart']
type ChartKind = NonNullable<ChartChoice['kind']>
export type Unit = NonNullable<ChartChoice['unit']>
type Row = Result['rows'][number]
type Values = readonly (number | null)[]

export const KINDS: readonly (readonly [ChartKind, string])[] = [
  ['line', 'Line'],
  ['bar', 'Bars'],
  ['area', 'Stacked area'],
  ['number', 'Number'],
]
export const UNITS: readonly (readonly [Unit, string])[] = [
  ['number', 'Plain number'],
  ['ms', 'Milliseconds'],
  ['s', 'Seconds'],
  ['usd', 'US dollars'],
  ['percent', 'Percent, of 0 to 1'],
  ['bytes', 'Bytes'],
]
const FORMATS = lookup<(value: number) => string>({
  number: compact,
  ms: duration,
  s: (value) => duration(value * 1_000),
  usd: (value) => (value < 0 ? `-${dollars(-value)}` : dollars(value)),
  percent,
  bytes,
})

export function formatOf(unit: Unit): (value: number) => string {
  return FORMATS.get(unit) ?? compact
}

/** One line, stack or kind of bar. */
export interface PlanSeries {
  readonly label: string
  readonly values: Values
  readonly unit: Unit
  readonly isOnRight: boolean
}

export interface ChartPlan {
  readonly kind: ChartKind
  readonly x: Column
  /** The positions on the horizontal axis: Unix seconds, numbers, or the indexes of `labels`. */
  readonly at: readonly number[]
  /** The label at each position, for an axis of texts. */
  readonly labels: readonly string[] | null
  /** Lines continue where values are missing, because the times are not buckets. */
  readonly isConnected: boolean
  readonly series: readonly PlanSeries[]
  /** Series are stacked. */
  readonly isStacked: boolean
  readonly unit: Unit
  readonly rightUnit: Unit
  /** The columns of each axis, and the one whose values are series. */
  readonly left: readonly string[]
  readonly right: readonly string[]
  readonly by: string | null
}

/** Whether anything of the result can be drawn. */
export function canDraw({ rows, columns }: Result): boolean {
  return rows.length > 0 && columns.some(isNumeric)
}

/**
 * What to draw; null for a result without numbers. Columns that the result does not have count as not chosen.
 * @param range whose buckets the result has, of which all are shown
 */
export function planOf(result: Result, choice: ChartChoice, range?: TimeRange): ChartPlan | null {
  const { columns, rows } = result
  if (!canDraw(result)) return null
  const named = (name: string | undefined) => columns.find((column) => column.name === name)
  const x = named(choice.x) ?? columns.find(isTime) ?? columns.find((column) => !isNumeric(column)) ?? columns[0]
  if (x === undefined) return null
  const kind = choice.kind ?? automaticKind(result, x)
  const numeric = columns.filter(isNumeric)
  const others = numeric.filter((column) => column !== x)
  const numbers = kind === 'number' || others.length === 0 ? numeric : others
  const by = named(choice.series) ?? automaticSeries(result, x)
  const series = kind === 'number' || by === x ? undefined : by
  const axes = axesOf(choice, numbers, { kind, isOne: series !== undefined || isList(kind, x), rows })
  const left = axes.left
  const right = series === undefined ? axes.right : []
  const unit = choice.unit ?? unitOf(left, rows)
  const rightUnit = choice.right_unit ?? unitOf(right, rows)
  const shown = kind === 'number' ? latestRow(rows, x) : rows
  const axis = positionsOf(shown, x, kind === 'number' || (isList(kind, x) && series === undefined), range)
  const lineOf = (name: string, isOnRight: boolean): PlanSeries => {
    const own = kind === 'number' ? (choice.unit ?? unitOf([name], rows)) : isOnRight ? rightUnit : unit
    return { label: name, values: axis.valuesOf(shown, name), unit: own, isOnRight }
  }
  const lines = [...left.map((name) => lineOf(name, false)), ...right.map((name) => lineOf(name, true))]
  return {
    kind,
    x,
    at: axis.at,
    labels: axis.labels,
    isConnected: axis.isConnected,
    series: series === undefined ? lines : seriesBy(series.name, rows, (of) => axis.valuesOf(of, left[0] ?? ''), unit),
    isStacked: kind === 'area' || (kind === 'bar' && series !== undefined),
    unit,
    rightUnit,
    left,
    right,
    by: series?.name ?? null,
  }
}

/** Bars over anything but time are a list, from top to bottom. */
function isList(kind: ChartKind, x: Column): boolean {
  return kind === 'bar' && !isTime(x)
}

/** The row whose numbers are shown: the latest one, or the first if the rows have no time. */
function latestRow(rows: readonly Row[], x: Column): readonly Row[] {
  if (!isTime(x)) return rows.slice(0, 1)
  return rows.toSorted((a, b) => timeOf(b[x.name]) - timeOf(a[x.name])).slice(0, 1)
}

function automaticKind({ columns, rows }: Result, x: Column): ChartKind {
  if (rows.length === 1 && columns.every(isNumeric)) return 'number'
  // A single point is not a line.
  return isTime(x) && rows.length > 1 ? 'line' : 'bar'
}

/** Several rows at the same place of the axis are one series for each value of the first column of texts. */
function automaticSeries({ columns, rows }: Result, x: Column): Column | undefined {
  const places = new Set(rows.map((row) => textOf(row[x.name] ?? null)))
  return places.size === rows.length ? undefined : columns.find((column) => column !== x && !isNumeric(column))
}

interface AxesHint {
  readonly kind: ChartKind
  /** Whether the chart can show only one column. */
  readonly isOne: boolean
  readonly rows: readonly Row[]
}

/** The columns of both axes. By default, lines with another unit than the first one use the right axis. */
function axesOf(choice: ChartChoice, numbers: readonly Column[], { kind, isOne, rows }: AxesHint) {
  const names = numbers.map(({ name }) => name)
  const known = (chosen: readonly string[] = []) => chosen.filter((name) => names.includes(name))
  const left = known(choice.y)
  const right = kind === 'line' || kind === 'bar' ? known(choice.right).filter((name) => !left.includes(name)) : []
  if (left.length > 0) return { left, right }
  if (right.length > 0) return { left: right, right: [] }
  const first = names.slice(0, 1)
  if (isOne) return { left: first, right: [] }
  if (kind === 'number') return { left: names, right: [] }
  const unit = unitOf(first, rows)
  const [same, others] = [true, false].map((is) => names.filter((name) => (unitOf([name], rows) === unit) === is))
  return { left: same ?? [], right: kind === 'line' ? (others ?? []) : [] }
}

const UNIT_NAMES: readonly (readonly [RegExp, Unit])[] = [
  [/usd|cost|price/i, 'usd'],
  [/(^|_)ms$|milliseconds|latency$|duration$/i, 'ms'],
  [/(^|_)(s|sec|secs|seconds)$/i, 's'],
  [/bytes/i, 'bytes'],
  [/rate|share|ratio|percent/i, 'percent'],
]

/** The unit that the names of all columns have in common; a plain number otherwise. */
function unitOf(names: readonly string[], rows: readonly Row[]): Unit {
  const units = new Set(names.map((name) => UNIT_NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? 'number'))
  const [unit = 'number', ...others] = units
  if (others.length > 0) return 'number'
  const isShare = () => rows.every((row) => names.every((name) => Math.abs(numOrNull(row[name]) ?? 0) <= 1))
  return unit === 'percent' && !isShare() ? 'number' : unit
}

/** Where rows stand on the horizontal axis. @param isOwn each row has a place of its own, whatever its value is */
function positionsOf(rows: readonly Row[], x: Column, isOwn: boolean, range?: TimeRange) {
  const isPoint = isTime(x) || isNumeric(x)
  const read = isTime(x) ? timeOf : (value: unknown) => numOrNull(value) ?? Number.NaN
  const text = (row: Row) => textOf(row[x.name] ?? 'null')
  const labels = isOwn ? rows.map(text) : isPoint ? null : [...new Set(rows.map(text))]
  const places = new Map((labels ?? []).map((label, index) => [label, index]))
  const place = (row: Row, index: number) =>
    labels === null ? read(row[x.name]) : isOwn ? index : (places.get(text(row)) as number)
  const found = [...new Set(rows.map(place))].filter(Number.isFinite).sort((a, b) => a - b)
  const filled = labels === null && isTime(x) ? (rangeBuckets(found, range) ?? withEmptyBuckets(found)) : null
  const at = filled ?? found
  const indexes = new Map(at.map((each, index) => [each, index]))
  const valuesOf = (of: readonly Row[], name: string): Values => {
    const values = new Array<number | null>(at.length).fill(null)
    for (const [rowIndex, row] of of.entries()) {
      const index = indexes.get(place(row, rowIndex))
      if (index !== undefined) values[index] = numOrNull(row[name])
    }
    return values
  }
  return { at, labels, isConnected: filled === null, valuesOf }
}

/** All buckets of a range, if the times are buckets. */
function rangeBuckets(times: readonly number[], range: TimeRange | undefined): readonly number[] | null {
  const buckets = range === undefined ? [] : bucketsOf(range)
  const known = new Set(buckets)
  return buckets.length > 1 && times.every((time) => known.has(time)) ? buckets : null
}

/** One series for each value of a column, the largest first. */
function seriesBy(
  by: string,
  rows: readonly Row[],
  valuesOf: (rows: readonly Row[]) => Values,
  unit: Unit,
): PlanSeries[] {
  return [...Map.groupBy(rows, (row) => textOf(row[by] ?? 'null'))]
    .map(([label, of]) => ({ label, values: valuesOf(of), unit, isOnRight: false }))
    .map((series) => ({ series, sum: sumOf(series.values) }))
    .sort((a, b) => b.sum - a.sum)
    .map(({ series }) => series)
}

export function sumOf(values: Values): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
}

/** The choice that an address names; an empty one for none, or for a damaged one. */
export function readChoice(text: string | undefined): ChartChoice {
  try {
    const given: unknown = JSON.parse(text ?? '{}')
    return typeof given === 'object' && given !== null ? checked(given as Readonly<Record<string, unknown>>) : {}
  } catch {
    return {}
  }
}

/** The members of a choice that are well formed, in one order, so that equal choices are equal texts. */
function checked(given: Readonly<Record<string, unknown>>): ChartChoice {
  const word = <T extends string>(value: unknown, words: readonly (readonly [T, string])[]) =>
    words.find(([each]) => each === value)?.[0]
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const list = (value: unknown) =>
    Array.isArray(value) && value.length > 0 && value.every((each) => text(each)) ? (value as string[]) : undefined
  const choice = {
    kind: word(given.kind, KINDS),
    x: text(given.x),
    y: list(given.y),
    right: list(given.right),
    series: text(given.series),
    unit: word(given.unit, UNITS),
    right_unit: word(given.right_unit, UNITS),
  }
  return Object.fromEntries(Object.entries(choice).filter(([, value]) => value !== undefined))
}

/** The choice as a member of an address; null for an empty one. */
export function writeChoice(choice: object): string | null {
  const text = JSON.stringify(checked({ ...choice }))
  return text === '{}' ? null : text
}

/** How a result is shown as it was saved: null is a table. */
export function lookOf(chart: ChartChoice | null): { readonly as: 'table' | 'chart'; readonly chart: ChartChoice } {
  return { as: chart === null ? 'table' : 'chart', chart: chart ?? {} }
}
