import type { ComponentChildren, ComponentType } from 'preact'
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks'
import { visible } from '../../../base/visible.ts'
import { nextTheme, theme } from '../context/browser.ts'
import { address, hrefOf, VIEWS, type ViewName } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { failureOf } from '../data/loading.ts'
import { OverviewView } from '../overview/overview-view.tsx'
import { Button, Icon } from '../parts/controls.tsx'
import { lazyView } from '../parts/lazy-view.tsx'
import { Problem } from '../parts/states.tsx'
import { chooseZone, zone, zoneName } from '../parts/time.tsx'
import { RunsView } from '../runs/runs-view.tsx'
import { Mark } from './entry-prompt.tsx'
import { HealthLine } from './health.tsx'
import { LeaveButton, SignedInPerson } from './sign-in.tsx'

const SHOWN: Readonly<Record<ViewName, readonly [title: string, view: ComponentType]>> = {
  overview: ['Overview', OverviewView],
  boards: ['Boards', lazyView(async () => (await import('../boards/boards-view.tsx')).BoardsView)],
  runs: ['Runs', RunsOrRun],
  live: ['Live', lazyView(async () => (await import('../live/live-view.tsx')).LiveView)],
  waiting: ['Waiting', lazyView(async () => (await import('../waiting/waiting-view.tsx')).WaitingView)],
  sessions: ['Sessions', lazyView(async () => (await import('../sessions/sessions-view.tsx')).SessionsView)],
  users: ['Users', lazyView(async () => (await import('../users/users-view.tsx')).UsersView)],
  agents: ['Agents', lazyView(async () => (await import('../agents/agents-view.tsx')).AgentsView)],
  sql: ['SQL', lazyView(async () => (await import('../sql/sql-view.tsx')).SqlView)],
  alerts: ['Alerts', lazyView(async () => (await import('../alerts/alerts-view.tsx')).AlertsView)],
  webhooks: ['Webhooks', lazyView(async () => (await import('../webhooks/webhooks-view.tsx')).WebhooksView)],
  keys: ['Keys', lazyView(async () => (await import('../agents/key-list.tsx')).KeysView)],
  settings: ['Settings', lazyView(async () => (await import('../settings/settings-view.tsx')).SettingsView)],
}

const CompareView = lazyView(async () => (await import('../compare/compare-view.tsx')).CompareView)
const loadRunView = async () => (await import('../run/run-view.tsx')).RunView
const RunView = lazyView(loadRunView)

/** Stands in place of a run's id in the address; the ids of the two runs follow. */
const COMPARE = 'compare'

/** The frame of the page: the navigation, and the view that the address names. */
export function Shell() {
  const { view, path } = address.value
  const [name, View] = SHOWN[view]
  const number = useSession().waiting.pending.value.length
  const waiting = number === 0 ? '' : `(${number}) `
  const title = view === 'runs' && path[0] !== undefined ? titleOfRun(path[0]) : name
  useEffect(() => {
    document.title = visible(`${waiting}${title} · Agent Run Service`)
  }, [waiting, title])
  return (
    <div class="shell">
      <Button class="skip" onClick={skipToMain} text="Skip to the content" />
      <Navigation current={view} />
      <main id="main" tabIndex={-1} data-view={view}>
        <ViewBoundary key={view}>
          <View />
        </ViewBoundary>
      </main>
    </div>
  )
}

function titleOfRun(segment: string): string {
  return segment === COMPARE ? 'Compare runs' : `Run …${segment.slice(-8)}`
}

function RunsOrRun() {
  // What is opened from the list opens without waiting; if this fails, the view says so when it is opened.
  useEffect(() => void loadRunView().catch(() => {}), [])
  const [runId, a = '', b = ''] = address.value.path.map((segment) => segment.toLowerCase())
  if (runId === COMPARE) return <CompareView key={`${a} ${b}`} a={a} b={b} />
  return runId === undefined ? <RunsView /> : <RunView key={runId} runId={runId} />
}

/** Not a link: the fragment of the URL is the address of the view. */
function skipToMain(): void {
  document.querySelector<HTMLElement>('#main')?.focus()
}

function Navigation({ current }: { readonly current: ViewName }) {
  const nav = useRef<HTMLElement>(null)
  // On narrow screens the links are one line, which scrolls.
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [current])
  return (
    <header class="side">
      <a class="brand" href={hrefOf('overview')} aria-label="Agent Run Service">
        <Mark />
        <span>Agent Run Service</span>
      </a>
      <nav ref={nav} aria-label="Views">
        {VIEWS.map((view) => (
          <a key={view} href={hrefOf(view)} aria-current={view === current ? 'page' : undefined}>
            <Icon name={view} />
            <span>{SHOWN[view][0]}</span>
            {view === 'waiting' && <WaitingBadge />}
          </a>
        ))}
      </nav>
      <Footer />
    </header>
  )
}

function WaitingBadge() {
  const { waiting } = useSession()
  const number = waiting.pending.value.length
  if (number === 0) return null
  return (
    <span class="badge" role="img" aria-label={`${number} waiting`}>
      {number}
      {waiting.hasMore.value && '+'}
    </span>
  )
}

function Footer() {
  const other = zone.value === 'utc' ? 'local' : 'utc'
  return (
    <div class="side-foot">
      <SignedInPerson />
      <HealthLine />
      <div class="side-tools">
        <Button
          class="small zone"
          onClick={() => chooseZone(other)}
          title={`All times are in ${zoneName()}. Click for ${other === 'utc' ? 'UTC' : 'your own zone'}.`}
          icon="clock"
          text={zoneName()}
        />
        <Button icon={theme.value === 'dark' ? 'moon' : 'sun'} label={`Theme: ${theme.value}`} onClick={nextTheme} />
        <a class="icon-only" href="/docs" aria-label="API reference" title="API reference">
          <Icon name="api" />
        </a>
        <LeaveButton />
      </div>
    </div>
  )
}

/** Shows an error in place of a view that failed, so that the rest of the page still works. Navigating resets it. */
function ViewBoundary({ children }: { readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((thrown) => reportError(thrown))
  const shown = address.value
  useEffect(() => {
    if (error !== undefined) reset()
  }, [shown])
  if (error === undefined) return <>{children}</>
  return (
    <section class="view" aria-label="Failed view">
      <h1>This view has failed</h1>
      <Problem problem={failureOf(error)} retry={reset} />
    </section>
  )
}
