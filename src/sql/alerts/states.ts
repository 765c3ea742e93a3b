import { RawJson } from '../../base/raw-json.ts'
import { namedSeries } from './events.ts'
import { isAlerting, keyOf, type SeriesState, type SeriesValues, type States } from './machine.ts'
import { SHOWN_STATES_MAX, type State } from './schema.ts'

type StoredState = readonly [
  series: SeriesValues,
  state: State,
  value: number | null,
  since: number,
  notifiedAt: number | null,
]

/** The states of an alert as its row has them. */
export interface StoredStates {
  readonly states: RawJson
  readonly shown_states: RawJson
  readonly series_count: number
}

export const NO_STATES: States = new Map()

export function toStored(states: States, by: readonly string[]): StoredStates {
  const all = [...states.values()]
  const stored = all.map(
    ({ series, state, value, since, notifiedAt }): StoredState => [series, state, value, since, notifiedAt],
  )
  const shown = [...all].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, SHOWN_STATES_MAX)
  return {
    states: RawJson.of(stored),
    shown_states: RawJson.of(
      shown.map(({ series, state, value, since }) => ({
        series: namedSeries(by, series),
        state,
        value,
        since: new Date(since).toISOString(),
      })),
    ),
    series_count: all.length,
  }
}

/** @param latest later times, of a clock that was ahead, become this one: durations would not begin before it */
export function fromStored(states: RawJson, latest = Number.POSITIVE_INFINITY): States {
  return new Map(
    (states.parse() as StoredState[]).map(([series, state, value, since, notifiedAt]) => [
      keyOf(series),
      { series, state, value, since: Math.min(since, latest), notifiedAt: notifiedAt && Math.min(notifiedAt, latest) },
    ]),
  )
}

/** Those that alert come first. */
function rankOf({ state }: SeriesState): number {
  if (isAlerting(state)) return 0
  return state === 'pending' ? 1 : 2
}
