import { useSession } from '../context/session.ts'
import type { Alert, AlertSeries, AlertState } from '../data/alerts.ts'
import type { Result } from '../data/api.ts'
import { numOrNull } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import { Loaded } from '../parts/states.tsx'
import type { Change } from './series.ts'
import { StateStrip } from './state-strip.tsx'
import { TransitionTable } from './transition-table.tsx'

const ROWS_MAX = 500
const QUERY = `SELECT toString(series) AS series, state, previous_state, value, toUnixTimestamp64Milli(at) AS at
FROM alert_states
WHERE alert_id = {alert:UUID}
ORDER BY seq DESC
LIMIT {rows:UInt32}`
const REFRESH_MS = 30_000

/** What has changed, and when: all transitions since the alert was created, as far as they are retained. */
export function AlertHistory({ alert: { alert_id, evaluated_at } }: { readonly alert: Alert }) {
  const { queries } = useSession()
  const read = useLoad(
    async (signal) => changesOf(await queries.run(QUERY, { alert: alert_id, rows: ROWS_MAX }, signal)),
    [alert_id],
    { everyMs: REFRESH_MS },
  )
  const timeOf = (change: Change | undefined) => Date.parse(change?.at ?? '')
  return (
    <Loaded read={read} lines={4} empty={<p class="hint">Its state has never changed.</p>}>
      {(changes) => (
        <>
          <StateStrip
            changes={changes}
            fromMs={timeOf(changes[0])}
            toMs={evaluated_at === null ? timeOf(changes.at(-1)) : Date.parse(evaluated_at)}
          />
          <TransitionTable changes={changes} />
          {changes.length === ROWS_MAX && <p class="hint">Only the latest {ROWS_MAX} are read; SQL has all.</p>}
        </>
      )}
    </Loaded>
  )
}

function changesOf({ rows }: Result): readonly Change[] {
  return rows.toReversed().map(({ series, state, previous_state, value, at }): Change => {
    return {
      series: JSON.parse(String(series) || '{}') as AlertSeries,
      from: previous_state as AlertState,
      to: state as AlertState,
      at: new Date(Number(at)).toISOString(),
      value: numOrNull(value),
      renotified: state === previous_state,
    }
  })
}
