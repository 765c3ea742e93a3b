import { counted, words } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { type Alert, conditionText, stateOf } from '../data/alerts.ts'
import { Status } from '../parts/states.tsx'
import { Ago, Ahead } from '../parts/time.tsx'
import { Value } from './transition-table.tsx'

interface ListProps {
  readonly alerts: readonly Alert[]
  /** The id of the one that is shown beside the list. */
  readonly selected: string | undefined
}

/** The alerts of the workspace, those that fire first. */
export function AlertList({ alerts, selected }: ListProps) {
  return (
    <div class="list-pane">
      <div class="panel table-scroll agent-table alert-table">
        <table class="run-list">
          <thead>
            <tr>
              <th scope="col">Alert</th>
              <th scope="col" class="number col-value">
                Value
              </th>
              <th scope="col" class="col-last">
                Evaluated
              </th>
              <th scope="col" class="col-next">
                Next
              </th>
            </tr>
          </thead>
          <tbody>
            {alerts.map((alert) => (
              <AlertRow key={alert.alert_id} alert={alert} isSelected={alert.alert_id === selected} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">{counted(alerts.length, 'alert')}</p>
    </div>
  )
}

function AlertRow({ alert, isSelected }: { readonly alert: Alert; readonly isSelected: boolean }) {
  const { alert_id, name, states, every, evaluated_at, next_at } = alert
  return (
    <tr aria-current={isSelected ? 'true' : undefined}>
      <td class="agent-name">
        <a class="row-link" href={hrefOf('alerts', [alert_id])} aria-current={isSelected ? 'true' : undefined}>
          {name}
        </a>
        <AlertStatus alert={alert} />
        <p class="hint">
          {conditionText(alert)}, every {every}
        </p>
      </td>
      <td class="number col-value">
        <Value value={states[0]?.value} />
      </td>
      <td class="col-last">{evaluated_at === null ? <span class="hint">never</span> : <Ago at={evaluated_at} />}</td>
      <td class="col-next">{next_at === null ? <span class="hint">–</span> : <Ahead at={next_at} />}</td>
    </tr>
  )
}

/** The most urgent state of an alert, with the number of series that have it if there are several. */
export function AlertStatus({ alert }: { readonly alert: Alert }) {
  const state = stateOf(alert)
  const number = alert.states.filter((each) => each.state === state).length
  const isCounted = state !== 'ok' && alert.series_count > 1 && number > 0
  if (alert.error !== null && alert.states.length === 0) return <Status name="error" />
  if (alert.enabled && alert.evaluated_at === null) return <Status name="queued" text="new" />
  return (
    <>
      <Status name={state} text={isCounted ? `${words(state)} (${number})` : words(state)} />{' '}
      {alert.error !== null && <Status name="error" />}
    </>
  )
}
