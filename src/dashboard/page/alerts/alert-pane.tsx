import { count } from '../../../base/format.ts'
import { hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Alert, type AlertTest, conditionText, pathOfAlert } from '../data/alerts.ts'
import { listQueries } from '../data/boards.ts'
import { useAttempt, useLoad } from '../data/loading.ts'
import { listWebhooks, namesById } from '../data/webhooks.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { BackLink, Button, Id, openTab, Tabs } from '../parts/controls.tsx'
import { withCommas } from '../parts/links.tsx'
import { Facts, ProblemText, Status } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Ago, Ahead } from '../parts/time.tsx'
import { AlertForm } from './alert-form.tsx'
import { AlertHistory } from './alert-history.tsx'
import { AlertStatus } from './alert-list.tsx'
import { DryRun } from './dry-run.tsx'
import { seriesName } from './series.ts'
import { Value } from './transition-table.tsx'
import { ValueChart } from './value-chart.tsx'

const TABS = { now: 'Now', history: 'History', test: 'Dry run', settings: 'Settings' }

interface PaneProps {
  readonly alert: Alert
  /** Reads the alerts again. */
  readonly reload: () => void
}

/** One alert: its state and values, what has changed and when, a dry run, and its settings. */
export function AlertPane({ alert, reload }: PaneProps) {
  const { api } = useSession()
  const tab = openTab({ name: 'tab', tabs: TABS })
  return (
    <section class="panel detail alert-pane" aria-label="Alert">
      <div class="detail-head">
        <BackLink href={hrefOf('alerts')} label="All alerts" />
        <h2>{alert.name}</h2>
        <AlertStatus alert={alert} />
        <Id id={alert.alert_id} what="alert id" />
        <AlertActions alert={alert} reload={reload} />
      </div>
      {alert.error !== null && <p class="problem">{alert.error}</p>}
      <AlertFacts alert={alert} />
      <Tabs label="Parts of the alert" name="tab" tabs={TABS} />
      {tab === 'now' && (
        <>
          <SeriesTable alert={alert} />
          <AlertValues alert={alert} />
        </>
      )}
      {tab === 'history' && <AlertHistory alert={alert} />}
      {tab === 'test' && (
        <DryRun every={alert.every} test={(range) => api.post<AlertTest>(`${pathOfAlert(alert)}/test`, range)} />
      )}
      {tab === 'settings' && <AlertForm alert={alert} saved={reload} />}
    </section>
  )
}

function AlertFacts({ alert }: { readonly alert: Alert }) {
  const { api } = useSession()
  const { data: webhooks = [] } = useLoad((signal) => listWebhooks(api, signal), [])
  const { every, window, by, evaluated_at, next_at, notify } = alert
  const names = namesById(webhooks, notify)
  const notified = withCommas(notify, (id) => <a href={hrefOf('webhooks', [id])}>{names.get(id)}</a>)
  return (
    <Facts
      facts={[
        ['Fires when', <code key="condition">{conditionText(alert)}</code>],
        ['Must hold for', alert.for],
        ['Every', every],
        ['Over the last', window],
        ['Separate state for each', by.join(', ')],
        ['Evaluated', evaluated_at !== null && <Ago key="at" at={evaluated_at} />],
        ['Next', next_at !== null && <Ahead key="next" at={next_at} />],
        ['Notifies', notified.length > 0 ? notified : 'nobody'],
      ]}
    />
  )
}

/** The states of the series, those that alert first. */
function SeriesTable({ alert: { states, series_count } }: { readonly alert: Alert }) {
  if (states.length === 0) return <p class="hint">No series has a state yet.</p>
  return (
    <>
      <Table
        box="table-scroll"
        rows={states}
        keyOf={({ series }) => JSON.stringify(series)}
        columns={[
          { title: 'Series', class: 'series-name', cell: ({ series }) => seriesName(series) },
          { title: 'State', cell: ({ state }) => <Status name={state} /> },
          { title: 'Value', isNumber: true, cell: ({ value }) => <Value value={value} /> },
          { title: 'Since', cell: ({ since }) => <Ago at={since} /> },
        ]}
      />
      {series_count > states.length && (
        <p class="hint">
          {states.length} of {count(series_count)} series.
        </p>
      )}
    </>
  )
}

/** The values of the last day; the text of a saved query is read first. */
function AlertValues({ alert }: { readonly alert: Alert }) {
  const { api } = useSession()
  const { query, query_id } = alert
  const { data } = useLoad(
    async (signal) => query ?? (await listQueries(api, signal)).find((each) => each.query_id === query_id)?.query,
    [query, query_id],
  )
  return data === undefined ? null : <ValueChart alert={alert} text={data} />
}

function AlertActions({ alert, reload }: PaneProps) {
  const { api } = useSession()
  const { problem, attempt } = useAttempt()
  const toggle = () =>
    attempt(async () => {
      await api.patch(pathOfAlert(alert), { enabled: !alert.enabled })
      reload()
    })
  const remove = async () => {
    await api.delete(pathOfAlert(alert), alert.version)
    reload()
    navigate(hrefOf('alerts'))
  }
  return (
    <>
      <div class="head-actions">
        <Button
          needs="admin"
          class="small"
          icon={alert.enabled ? 'pause' : 'play'}
          text={alert.enabled ? 'Disable' : 'Enable'}
          onClick={() => void toggle()}
        />
        <ConfirmButton text="Delete…" title={`Delete "${alert.name}"?`} action="Delete the alert" act={remove}>
          <p>It is no longer evaluated and notifies nobody. Its history stays in SQL.</p>
        </ConfirmButton>
      </div>
      <ProblemText text={problem} />
    </>
  )
}
