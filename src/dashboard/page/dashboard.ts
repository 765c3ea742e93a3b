import { agentsView } from './agents.ts'
import { type Api, ApiFailure } from './api.ts'
import { createDirectory } from './directory.ts'
import { h, setText } from './dom.ts'
import { healthStrip } from './health.ts'
import { liveView } from './live.ts'
import { isPauseKind } from './pause.ts'
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

const REFRESH_MS = 2_000
const REFRESH_MS_MIN = 700
/** Delay that collects further activity and lets SQL catch up. */
const REFRESH_EARLY_MS = 100

/** The page for one key, refreshed while it is visible. The fragment of the URL says what it shows. */
export function openDashboard({ api, signal, leave }: DashboardDeps): Node[] {
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
  let round = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let refreshedAtMs = 0
  let isEarly = false

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

  /** One refresh. The next is scheduled when it is done, so a slow service is queried less often. */
  async function refresh(): Promise<void> {
    const mine = ++round
    clearTimeout(timer)
    isEarly = false
    let waitMs = REFRESH_MS
    if (!document.hidden) {
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
      if (signal.aborted) return
      waitMs = Math.max(waitMs, report(failures))
    }
    refreshedAtMs = performance.now()
    if (mine === round) timer = setTimeout(refresh, waitMs)
  }

  /**
   * Refreshes early after new activity, but not immediately, so that a busy workspace does not cause constant
   * refreshes.
   */
  function refreshEarly(): void {
    if (isEarly) return
    isEarly = true
    clearTimeout(timer)
    timer = setTimeout(refresh, Math.max(REFRESH_EARLY_MS, refreshedAtMs + REFRESH_MS_MIN - performance.now()))
  }

  /** @returns how long to wait before the next refresh, in milliseconds */
  function report(failures: readonly unknown[]): number {
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

  addEventListener('hashchange', navigate, { signal })
  document.addEventListener('visibilitychange', () => void refresh(), { signal })
  signal.addEventListener('abort', () => clearTimeout(timer))
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

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

function link(view: string, title: string, ...more: readonly Node[]): HTMLAnchorElement {
  return h('a', { href: `#/${view}` }, title, ...more)
}
