import { compact } from '../../../base/format.ts'
import type { AlertSeries, AlertState, Transition } from '../data/alerts.ts'
import { textOf } from '../data/json.ts'

/** The series of an alert, and their states over time. */

/** A series in words: the values of its columns. */
export function seriesName(series: AlertSeries): string {
  const values = Object.values(series).map((value) => textOf(value ?? 'null'))
  return values.length === 0 ? 'all rows' : values.join(' · ')
}

/** A value with three digits, also a small one: rates are between 0 and 1. */
export function figure(value: number): string {
  return Math.abs(value) < 1 ? String(Number(value.toPrecision(3))) : compact(value)
}

/** A change of the state of a series, of a test or of the log. */
export type Change = Pick<Transition, 'series' | 'from' | 'to' | 'at' | 'value' | 'renotified'>

/** A part of the time of a test in which a series had one state. */
export interface Span {
  readonly state: AlertState
  readonly fromMs: number
  readonly toMs: number
}

/** The states of each series over a time, by its name; those of most transitions first. */
export function spansOf(
  changes: readonly Change[],
  fromMs: number,
  toMs: number,
): readonly (readonly [series: string, spans: readonly Span[]])[] {
  const real = changes.filter(({ renotified }) => !renotified)
  return [...Map.groupBy(real, ({ series }) => seriesName(series))]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([name, own]) => {
      const spans = own.map(({ to, at }, index): Span => {
        const next = own[index + 1]
        return { state: to, fromMs: Date.parse(at), toMs: next === undefined ? toMs : Date.parse(next.at) }
      })
      const [first] = own
      const before = first && { state: first.from, fromMs, toMs: Date.parse(first.at) }
      return [name, before === undefined ? spans : [before, ...spans]]
    })
}
