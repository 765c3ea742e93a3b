import type { Operator, State } from './schema.ts'

/**
 * The states of an alert's series (docs/alerts.md). Pure: the same evaluations lead to the same transitions,
 * live and in a dry run.
 *
 *     ok ──▶ pending ──▶ firing ⇄ recovering ──▶ ok        any ──▶ no_data, error ──▶ firing or ok
 *
 * `pending` is skipped without `for`, `recovering` without `keep_firing_for`.
 */

/** What determines the states. Durations and times are milliseconds. */
export interface Rule {
  /** Columns that tell the series apart. */
  readonly by: readonly string[]
  /** Null: any row. */
  readonly comparison: Comparison | null
  readonly forMs: number
  readonly keepFiringMs: number
  readonly noData: 'ok' | 'last' | 'alert' | 'zero'
  readonly onError: 'last' | 'alert'
  readonly renotifyMs: number | null
}

interface Comparison {
  readonly op: Operator
  readonly value: number
  readonly recoverValue: number | null
}

/** The values of the columns of `by`, in that order. */
export type SeriesValues = readonly unknown[]

export interface SeriesState {
  readonly series: SeriesValues
  readonly state: State
  readonly value: number | null
  /** The tick that led to the state. */
  readonly since: number
  /** The tick of the last `alert.fired`; null while the series does not alert. */
  readonly notifiedAt: number | null
}

/** By {@link keyOf}. */
export type States = ReadonlyMap<string, SeriesState>

/** What a row says about its series. */
export interface Observed {
  readonly series: SeriesValues
  /** Null for `any_row`, and where the column is null: then there is no data. */
  readonly value: number | null
}

/** The result of an evaluation: the series that have rows, by key, or why it failed. */
export type Result = ReadonlyMap<string, Observed> | EvaluationError

export class EvaluationError {
  constructor(readonly message: string) {}
}

type TransitionType = 'alert.fired' | 'alert.resolved' | 'alert.changed'

export interface Transition {
  readonly key: string
  readonly series: SeriesValues
  readonly type: TransitionType
  readonly from: State
  readonly to: State
  /** The tick. */
  readonly at: number
  readonly value: number | null
  /** It only repeats `alert.fired`. */
  readonly renotified: boolean
}

export interface Advanced {
  readonly states: States
  readonly transitions: readonly Transition[]
  readonly error: string | null
}

export const SERIES_MAX = 1_000
/** The series of an alert without `by`, of the errors of any alert, and of missing data while no series is known. */
const NO_VALUES: SeriesValues = []
const NO_VALUES_KEY = '[]'

export function keyOf(series: SeriesValues): string {
  return JSON.stringify(series)
}

/** Whether a series in this state has been reported by `alert.fired`, and not yet by `alert.resolved`. */
export function isAlerting(state: State): boolean {
  return state === 'firing' || state === 'recovering' || state === 'no_data' || state === 'error'
}

/** The states after an evaluation, and how they got there. */
export function advance(rule: Rule, states: States, tick: number, result: Result): Advanced {
  if (result instanceof EvaluationError) return failed(rule, states, tick, result.message)
  const all = new Map<string, { before: SeriesState | undefined; observed: Observed | undefined }>()
  for (const [key, before] of states) all.set(key, { before, observed: result.get(key) })
  for (const [key, observed] of result) if (!states.has(key)) all.set(key, { before: undefined, observed })
  const isNoneKnown = all.keys().every((key) => key === NO_VALUES_KEY)
  const isAllMissing = isNoneKnown && rule.by.length > 0 && rule.noData === 'alert' && rule.comparison !== null
  if (rule.by.length === 0 || isAllMissing) all.getOrInsert(NO_VALUES_KEY, { before: undefined, observed: undefined })

  const after = new Map<string, SeriesState>()
  const transitions: Transition[] = []
  // The order does not depend on that of the rows.
  for (const [key, { before, observed }] of [...all].sort(byKey)) {
    const series = before?.series ?? observed?.series ?? NO_VALUES
    const { state = 'ok' } = before ?? {}
    const value = valueIn(rule, observed)
    // An error ends with the first evaluation that succeeds. With `by` it has a series of its own, as missing data has while
    // no series is known that could miss it.
    const isOwnSeries = rule.by.length > 0 && series.length === 0
    const signal = isOwnSeries ? (isAllMissing ? 'no_data' : 'clear') : signalOf(rule, state, observed, value)
    const to = next(rule, before, signal, tick)
    // Series that are ok and gone are forgotten.
    const isGone = to === 'ok' && observed === undefined && rule.by.length > 0
    const moved = move(rule, {
      key,
      series,
      before,
      to,
      tick,
      value: signal === 'last' ? (before?.value ?? null) : value,
    })
    if (!isGone) after.set(key, moved.state)
    transitions.push(...moved.transitions)
  }
  if (after.size > SERIES_MAX)
    return failed(rule, states, tick, `more than ${SERIES_MAX} series: group the rows by fewer columns`)
  return { states: after, transitions, error: null }
}

/** All series are ok, because the alert was edited, disabled or deleted. */
export function resetAll(states: States, at: number): Transition[] {
  return [...states.entries()].flatMap(([key, { series, state: from }]) =>
    from === 'ok'
      ? []
      : [{ key, series, type: changeType(from, 'ok'), from, to: 'ok', at, value: null, renotified: false }],
  )
}

function failed(rule: Rule, states: States, tick: number, error: string): Advanced {
  if (rule.onError === 'last') return { states, transitions: [], error }
  const key = NO_VALUES_KEY
  const before = states.get(key)
  const { state, transitions } = move(rule, { key, series: NO_VALUES, before, to: 'error', tick, value: null })
  return { states: new Map(states).set(key, state), transitions, error }
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

type Signal = 'holds' | 'clear' | 'last' | 'no_data'

function valueIn({ comparison, noData }: Rule, observed: Observed | undefined): number | null {
  return observed?.value ?? (comparison !== null && noData === 'zero' ? 0 : null)
}

function signalOf(rule: Rule, state: State, observed: Observed | undefined, value: number | null): Signal {
  const { comparison, noData } = rule
  if (comparison === null) return observed === undefined ? 'clear' : 'holds'
  if (value !== null) return holds(comparison, state, value) ? 'holds' : 'clear'
  if (noData === 'alert') return 'no_data'
  return noData === 'last' ? 'last' : 'clear'
}

function holds({ op, value: limit, recoverValue }: Comparison, state: State, value: number): boolean {
  const isLatched = state === 'firing' || state === 'recovering'
  return compare(op, value, limit) || (isLatched && recoverValue !== null && compare(op, value, recoverValue))
}

function compare(op: Operator, value: number, limit: number): boolean {
  switch (op) {
    case '>':
      return value > limit
    case '>=':
      return value >= limit
    case '<':
      return value < limit
    case '<=':
      return value <= limit
    case '=':
      return value === limit
    case '!=':
      return value !== limit
  }
}

function next({ forMs, keepFiringMs }: Rule, before: SeriesState | undefined, signal: Signal, tick: number): State {
  const { state = 'ok', since = tick } = before ?? {}
  if (signal === 'no_data') return 'no_data'
  if (signal === 'last') return state
  if (signal === 'holds') {
    if (state === 'ok') return forMs > 0 ? 'pending' : 'firing'
    // A series without data, or with an error, alerts already.
    return state === 'pending' && tick - since < forMs ? 'pending' : 'firing'
  }
  if (state === 'firing' && keepFiringMs > 0) return 'recovering'
  return state === 'recovering' && tick - since < keepFiringMs ? 'recovering' : 'ok'
}

interface Move {
  readonly key: string
  readonly series: SeriesValues
  readonly before: SeriesState | undefined
  readonly to: State
  readonly tick: number
  readonly value: number | null
}

function move({ renotifyMs }: Rule, { key, series, before, to, tick, value }: Move) {
  const { state: from = 'ok', since = tick, notifiedAt = null } = before ?? {}
  const isDue = renotifyMs !== null && notifiedAt !== null && tick - notifiedAt >= renotifyMs
  const renotified = from === to && to !== 'recovering' && isAlerting(to) && isDue
  const type = renotified || (!isAlerting(from) && isAlerting(to)) ? 'alert.fired' : changeType(from, to)
  const transitions: Transition[] =
    from === to && !renotified ? [] : [{ key, series, type, from, to, at: tick, value, renotified }]
  const state: SeriesState = {
    series,
    state: to,
    value,
    since: from === to ? since : tick,
    notifiedAt: isAlerting(to) ? (type === 'alert.fired' && transitions.length > 0 ? tick : notifiedAt) : null,
  }
  return { state, transitions }
}

function changeType(from: State, to: State): TransitionType {
  return isAlerting(from) && !isAlerting(to) ? 'alert.resolved' : 'alert.changed'
}
