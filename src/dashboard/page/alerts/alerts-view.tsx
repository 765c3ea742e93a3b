import { address, hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Alert, listAlerts } from '../data/alerts.ts'
import { useLoad } from '../data/loading.ts'
import { ResourceView } from '../parts/resource-view.tsx'
import { Empty } from '../parts/states.tsx'
import { AlertForm } from './alert-form.tsx'
import { AlertList } from './alert-list.tsx'
import { AlertPane } from './alert-pane.tsx'

const REFRESH_MS = 15_000

/** The alerts of the workspace, and beside them the one that the address names. */
export function AlertsView() {
  const { api } = useSession()
  const { path, query } = address.value
  const list = useLoad((signal) => listAlerts(api, signal), [], { everyMs: REFRESH_MS })
  const alert = list.data?.find(({ alert_id }) => alert_id === path[0]?.toLowerCase())
  const created = (stored: Alert) => {
    list.reload()
    navigate(hrefOf('alerts', [stored.alert_id]))
  }
  return (
    <ResourceView
      view="alerts"
      title="Alerts"
      noun="alert"
      list={list}
      pane={alert && <AlertPane key={alert.alert_id} alert={alert} reload={list.reload} />}
      form={<AlertForm key={`${query.q} ${query.saved}`} alert={null} saved={created} />}
    >
      {list.data?.length ? <AlertList alerts={list.data} selected={alert?.alert_id} /> : <NoAlerts />}
    </ResourceView>
  )
}

function NoAlerts() {
  return (
    <div class="list-pane">
      <Empty title="No alerts yet" icon="alerts">
        <p>
          An alert runs a SQL query at a fixed interval, and notifies your webhooks when its condition starts to hold
          and when it no longer does.
        </p>
        <p>Begin with a template. A dry run shows when it would have fired.</p>
      </Empty>
    </div>
  )
}
