import { counted, words } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { type Alert, conditionText, stateOf } from '../data/alerts.ts'
import { Status } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
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
      <Table
        box="panel table-scroll resource-table alert-table"
        rows={alerts}
        keyOf={({ alert_id }) => alert_id}
        link={({ alert_id, name }) => ({ href: hrefOf('alerts', [alert_id]), children: name })}
        isSelected={({ alert_id }) => alert_id === selected}
        columns={COLUMNS}
      />
      <p class="hint">{counted(alerts.length, 'alert')}</p>
    </div>
  )
}

const COLUMNS: readonly Column<Alert>[] = [
  {
    title: 'Alert',
    class: 'resource-name',
    cell: (alert) => (
      <>
        <AlertStatus alert={alert} />
        <p class="hint">
          {conditionText(alert)}, every {alert.every}
        </p>
      </>
    ),
  },
  { title: 'Value', isNumber: true, class: 'col-value', cell: ({ states }) => <Value value={states[0]?.value} /> },
  {
    title: 'Evaluated',
    class: 'col-last',
    cell: ({ evaluated_at: at }) => (at === null ? <span class="hint">never</span> : <Ago at={at} />),
  },
  {
    title: 'Next',
    class: 'col-next',
    cell: ({ next_at: at }) => (at === null ? <span class="hint">–</span> : <Ahead at={at} />),
  },
]

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
