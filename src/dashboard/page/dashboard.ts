import { agentsView } from './agents.ts'
import { type Api, ApiFailure } from './api.ts'
import { createDirectory } from './directory.ts'
import { h, setText } from './dom.ts'
import { healthStrip } from './health.ts'
import { liveView } from './live.ts'
import { isPauseKind } from './pause.ts'
import { createRefresher } from './refresh.ts'
import { runsView } from './runs.ts'
import { sqlView } from './sql.ts'
import { totals } from './totals.ts'
import { waitingView } from './waiting.ts'

export interface DashboardDeps {
  readonly api: Api
  /** Aborted when the key is forgotten, to stop everything. */
  readonly signal: AbortSignal
  /** Forgets the key. `problem` says why, unless the user requested it. */
  readonly leave: (problem?: string) => void
}

/** The page for one key, refreshed while it is visible. The fragment of the URL says what it shows. */
export function openDashboard({ api, signal, leave }: DashboardDeps): Node[] {
  const { refresh, refreshEarly } = createRefresher(refreshShown, signal)
  const directory = createDirectory(api)
  const health = healthStrip()
  const sums = totals(api)
  const runs = runsView({ api, directory, refreshSoon: () => void refresh() })
  const agents = agentsView({ api, directory, signal, showRuns: runs.filterByAgent })
  const waiting = waitingView({ api, directory })
  const live = liveView({
    api,
    directory,
    signal,
    onActivity(items) {
      if (items.some(({ run }) => run?.status.startsWith('awaiting_'))) waiting.invalidate()
      refreshEarly()
    },
  })
  const views = { runs, waiting, live, agents, sql: sqlView(api) }
  const links = {
    runs: link('runs', 'Runs'),
    waiting: link('waiting', 'Waiting', waiting.badge),
    live: link('live', 'Live'),
    agents: link('agents', 'Agents'),
    sql: link('sql', 'SQL'),
  }
  const notice = h('p', { class: 'notice', role: 'status' })
  const forget = h('button', { type: 'button', class: 'quiet' }, 'Forget key')
  forget.addEventListener('click', () => leave())
  let current: keyof typeof views = 'runs'

  function navigate(): void {
    const [, view = '', ...rest] = location.hash.split('/')
    current = Object.hasOwn(views, view) ? (view as keyof typeof views) : 'runs'
    for (const name of Object.keys(views) as (keyof typeof views)[]) {
      views[name].element.hidden = name !== current
      if (name === current) links[name].setAttribute('aria-current', 'page')
      else links[name].removeAttribute('aria-current')
    }
    document.title = `${links[current].firstChild?.textContent} · Agent Run Service`
    const id = (rest.pop() ?? '').toLowerCase()
    const [kind = ''] = rest
    if (current === 'runs') runs.select(UUID.test(id) ? id : null)
    if (current === 'waiting') waiting.open(isPauseKind(kind) && UUID.test(id) ? { kind, id } : null)
    void refresh()
  }

  async function refreshShown(): Promise<number> {
    const parts = [
      health.refresh(),
      sums.refresh(),
      directory.refresh(),
      waiting.refreshBadge(),
      views[current].refresh(),
    ]
    const failures = (await Promise.allSettled(parts)).flatMap((part) =>
      part.status === 'rejected' ? [part.reason] : [],
    )
    return signal.aborted ? 0 : report(failures, notice, leave)
  }

  addEventListener('hashchange', navigate, { signal })
  navigate()
  return [
    h(
      'header',
      {},
      h('h1', {}, 'Agent Run Service'),
      h('nav', { 'aria-label': 'Views' }, ...Object.values(links), h('a', { href: '/docs' }, 'API')),
      health.element,
      forget,
    ),
    sums.element,
    notice,
    h('main', {}, ...Object.values(views).map(({ element }) => element)),
  ]
}

/** Shows what could not be refreshed. @returns how long to wait before the next refresh, in milliseconds */
function report(failures: readonly unknown[], notice: HTMLElement, leave: DashboardDeps['leave']): number {
  const refusals = failures.filter((failure) => failure instanceof ApiFailure)
  // What remains are bugs of this page; its other parts continue.
  for (const failure of failures) if (!(failure instanceof ApiFailure)) reportError(failure)
  const keyRefused = refusals.find(({ code }) => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN')
  if (keyRefused !== undefined) {
    leave(`The service no longer accepts this key: ${keyRefused.message}`)
    return 0
  }
  setText(notice, refusals.length === 0 ? '' : `${refusals[0]?.message} Trying again…`)
  return Math.max(0, ...refusals.map(({ retryAfterSeconds }) => retryAfterSeconds * 1_000))
}

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

function link(view: string, title: string, ...more: readonly Node[]): HTMLAnchorElement {
  return h('a', { href: `#/${view}` }, title, ...more)
}
