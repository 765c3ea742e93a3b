import { address, hrefOf, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { type Alert, listAlerts } from '../data/alerts.ts'
import { useLoad } from '../data/loading.ts'
import { Icon } from '../parts/controls.tsx'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'
import { AlertForm } from './alert-form.tsx'
import { AlertList } from './alert-list.tsx'
import { AlertPane } from './alert-pane.tsx'

const REFRESH_MS = 15_000

/** The alerts of the workspace, and beside them the one that the address names. */
export function AlertsView() {
  const { api } = useSession()
  const { path, query } = address.value
  const { data, problem, isLoading, reload } = useLoad((signal) => listAlerts(api, signal), [], {
    everyMs: REFRESH_MS,
  })
  const id = path[0]?.toLowerCase()
  const isNew = query.new !== undefined
  const alert = data?.find(({ alert_id }) => alert_id === id)
  const created = (stored: Alert) => {
    reload()
    navigate(hrefOf('alerts', [stored.alert_id]))
  }
  return (
    <section class={`view alerts ${alert === undefined && !isNew ? '' : 'with-detail'}`} aria-label="Alerts">
      <div class="view-head">
        <h1>Alerts</h1>
        <div class="view-tools">
          <a class="button primary small" href={hrefOf('alerts', [], { new: 'yes' })}>
            <Icon name="plus" />
            <span>New alert</span>
          </a>
        </div>
      </div>
      {problem !== undefined && <Problem problem={problem} />}
      {data === undefined && problem === undefined && <Skeleton lines={6} />}
      {id !== undefined && data !== undefined && alert === undefined && !isLoading && (
        <p class="hint">This alert does not exist. Somebody may have deleted it.</p>
      )}
      {data !== undefined && (
        <div class="split">
          {data.length === 0 ? <NoAlerts /> : <AlertList alerts={data} selected={alert?.alert_id} />}
          {isNew && (
            <section class="panel detail" aria-label="New alert">
              <div class="detail-head">
                <h2>New alert</h2>
                <a class="icon-only" href={hrefOf('alerts')} aria-label="Close">
                  <Icon name="close" />
                </a>
              </div>
              <AlertForm key={`${query.q} ${query.saved}`} alert={null} saved={created} />
            </section>
          )}
          {alert !== undefined && !isNew && <AlertPane key={alert.alert_id} alert={alert} reload={reload} />}
        </div>
      )}
    </section>
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
