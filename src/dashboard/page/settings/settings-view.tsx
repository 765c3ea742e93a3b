import { counted } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'
import { Id, openTab, Tabs } from '../parts/controls.tsx'
import { Facts, Loaded } from '../parts/states.tsx'
import { Moment } from '../parts/time.tsx'
import { SecretList } from './secret-list.tsx'

const TABS = { workspace: 'Workspace', secrets: 'Secrets' }

/** Settings of the workspace, and its secrets. */
export function SettingsView() {
  const tab = openTab({ name: 'tab', tabs: TABS })
  return (
    <section class="view settings" aria-label="Settings">
      <div class="view-head">
        <h1>Settings</h1>
      </div>
      <Tabs label="Parts of the settings" name="tab" tabs={TABS} />
      {tab === 'workspace' && <WorkspacePanel />}
      {tab === 'secrets' && <SecretList />}
    </section>
  )
}

function WorkspacePanel() {
  const { api } = useSession()
  const read = useLoad((signal) => api.get<Schemas['OwnWorkspace']>('/api/v1/workspace', {}, signal), [])
  return (
    <Loaded read={read} lines={4}>
      {workspaceParts}
    </Loaded>
  )
}

function workspaceParts({ name, workspace_id, created_at, events_kept_days }: Schemas['OwnWorkspace']) {
  return (
    <>
      <section class="panel">
        <h2>{name}</h2>
        <Facts
          facts={[
            ['Workspace id', <Id key="id" id={workspace_id} what="workspace id" />],
            ['Created', <Moment key="created" at={created_at} />],
          ]}
        />
        <p class="hint">
          Agents, runs and keys belong to one workspace, which only the operator can rename. Access is managed under{' '}
          <a href={hrefOf('keys')}>Keys</a>.
        </p>
      </section>
      <section class="panel">
        <h2>Retention</h2>
        <p>
          {events_kept_days === null
            ? 'Events are kept forever.'
            : `Events are kept for ${counted(events_kept_days, 'day')}.`}{' '}
          The latest state of runs and tasks is kept.
        </p>
        <p class="hint">
          The operator sets it: for the workspace with <code>retention_days</code>, for all with{' '}
          <code>EVENT_RETENTION_DAYS</code>. The shorter one applies.
        </p>
      </section>
      <section class="panel">
        <h2>Reference</h2>
        <p>
          The <a href="/docs">API reference</a> describes all calls; programs can read it as an{' '}
          <a href="/docs/json">OpenAPI document</a>. The sizes of requests have <a href="/api/v1/limits">limits</a>.
        </p>
      </section>
    </>
  )
}
