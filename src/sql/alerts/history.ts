import { isObject, parsedJson } from '../../base/json-object.ts'
import type { ColumnarClient } from '../../stores/clickhouse/client.ts'
import { isAlerting, keyOf, type SeriesState, type States } from './machine.ts'
import type { State } from './schema.ts'

interface HistoryRange {
  readonly workspaceId: string
  readonly alert_id: string
  readonly by: readonly string[]
  /** Unix milliseconds. */
  readonly before: number
  /** Series that had rows at the tick before: they are ok unless a transition says otherwise. */
  readonly states: States
}

interface LastTransition {
  readonly series: string
  readonly last_state: State
  readonly last_value: number | null
  readonly since: number
  /** The last time that it was reported as fired; 0 for never. */
  readonly notified_at: number
}

const ALERTING = "('firing', 'recovering', 'no_data', 'error')"

/** The states of an alert before a time, from its transitions. The tuple, because `argMax` would pass over a value of null. */
export async function readStates(columnar: ColumnarClient, range: HistoryRange): Promise<States> {
  const { workspaceId, alert_id, by, before } = range
  const rows = await columnar.query<LastTransition>(
    `select series, argMax(state, seq) as last_state, argMax(tuple(value), seq).1 as last_value,
       toUnixTimestamp64Milli(argMaxIf(at, seq, state != previous_state)) as since,
       toUnixTimestamp64Milli(argMaxIf(at, seq, state in ${ALERTING} and
         (state = previous_state or previous_state not in ${ALERTING}))) as notified_at
     from alert_states prewhere workspace_id = {workspaceId:UUID} and alert_id = {alertId:UUID}
     where at < fromUnixTimestamp64Milli({before:Int64})
     group by series having last_state != 'ok'`,
    { params: { workspaceId, alertId: alert_id, before } },
  )
  const found = rows.map(
    ({ series, last_state: state, last_value: value, since, notified_at }): [string, SeriesState] => {
      const named = parsedJson(series)
      const values = isObject(named) ? seriesOf(named, by) : []
      return [
        keyOf(values),
        { series: values, state, value, since, notifiedAt: isAlerting(state) ? notified_at : null },
      ]
    },
  )
  const known = [...range.states].map(([key, { series, value }]): [string, SeriesState] => [
    key,
    { series, state: 'ok', value, since: before, notifiedAt: null },
  ])
  return new Map([...known, ...found])
}

/** The error of an alert with `by` has no values. */
function seriesOf(named: Record<string, unknown>, by: readonly string[]): unknown[] {
  const values = new Map(Object.entries(named))
  return values.size === 0 ? [] : by.map((name) => values.get(name))
}
