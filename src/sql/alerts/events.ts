import { type Mint, NIL_UUID } from '../../base/ids.ts'
import { encodeJson } from '../../base/raw-json.ts'
import { levelNumber } from '../../stores/journal/levels.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import type { Evaluation } from './evaluation.ts'
import type { SeriesValues, Transition } from './machine.ts'

/** The alert that a transition belongs to. */
interface AlertRef {
  readonly alert_id: string
  readonly workspace_id: string
  readonly name: string
  readonly by_columns: readonly string[]
  readonly notify: readonly string[]
}

interface EventDetails {
  readonly mint: Mint
  /** When the transition was found, Unix milliseconds. */
  readonly now: number
  readonly rowsOf?: Evaluation['rowsOf']
  readonly error?: string | null
}

/** The system event that reports a transition; it belongs to no run. */
export function eventOf(
  alert: AlertRef,
  transition: Transition,
  { mint, now, rowsOf, error }: EventDetails,
): SystemEventRow {
  const { type, from, to, value, renotified } = transition
  const at = new Date(transition.at).toISOString()
  const { rows, rowCount } = rowsOf?.(transition.key) ?? { rows: [], rowCount: 0 }
  const payload = {
    alert_id: alert.alert_id,
    name: alert.name,
    series: namedSeries(alert.by_columns, transition.series),
    state: to,
    previous_state: from,
    value,
    at,
    tick: at,
    rows,
    row_count: rowCount,
    notify: alert.notify,
    ...(renotified && { renotified }),
    ...(to === 'error' && error != null && { error }),
  }
  return {
    workspace_id: alert.workspace_id,
    agent_id: NIL_UUID,
    run_id: NIL_UUID,
    event_id: mint.ulid(),
    type,
    level: levelNumber(type === 'alert.fired' ? 'error' : 'info'),
    payload: encodeJson(payload),
    occurred_at: now,
  }
}

/** The values of a series by column. */
export function namedSeries(by: readonly string[], series: SeriesValues): Record<string, unknown> {
  return Object.fromEntries(series.map((value, index) => [by[index], value]))
}
