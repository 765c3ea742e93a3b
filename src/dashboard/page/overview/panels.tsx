import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { count, words } from '../../../base/format.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { conditionText, isAlerting, listAlerts, stateOf } from '../data/alerts.ts'
import type { Listed } from '../data/api.ts'
import { LiveResource, type Loading, useLoad } from '../data/loading.ts'
import type { Activity, RunSummary } from '../data/records.ts'
import { hrefOfPause } from '../data/waiting.ts'
import { Icon } from '../parts/controls.tsx'
import { linkedRange, type TimeRange } from '../parts/range.tsx'
import { Loaded, Skeleton, Status } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'
import { TIME } from './metrics.ts'

const STATES = ['queued', 'running', 'awaiting_approval', 'awaiting_input']
const WAITING_SHOWN = 5
const FAILURES_SHOWN = 6
const ALERTS_SHOWN = 6
const ALERTS_REFRESH_MS = 30_000
const FAILED = ['failed', 'timed_out'] as const

/** Runs that are under way, by status. */
export function StatesNow({ states }: { readonly states: ReadonlyMap<string, number> | undefined }) {
  return (
    <section class="panel states">
      <h2>Runs under way now</h2>
      {states === undefined ? (
        <Skeleton />
      ) : (
        <ul>
          {STATES.map((status) => (
            <li key={status}>
              <a href={hrefOf('runs', [], { status })}>
                <Status name={status} text={words(status)} />
                <b>{count(states.get(status) ?? 0)}</b>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** The newest approvals and questions. */
export function WaitingNow() {
  const { waiting, directory } = useSession()
  const pending = waiting.pending.value
  const items = pending.slice(0, WAITING_SHOWN).map((pause) => ({
    href: hrefOfPause(pause.kind, pause.id),
    title: pause.tool === null ? pause.preview : [`Approve `, <code key="tool">{pause.tool}</code>],
    note: directory.nameOf(pause.agent_id),
    at: pause.created_at,
  }))
  return (
    <section class="panel waiting-now">
      <h2>
        Waiting for a person <span class="hint">{pending.length > 0 && count(pending.length)}</span>
      </h2>
      <Items items={items} none="Nothing waits." />
    </section>
  )
}

/** Firing alerts; nothing where there are no alerts. */
export function AlertsNow() {
  const { api } = useSession()
  const { data = [] } = useLoad((signal) => listAlerts(api, signal), [], { everyMs: ALERTS_REFRESH_MS })
  const firing = data.filter((alert) => isAlerting(stateOf(alert)))
  if (data.length === 0) return null
  const items = firing.slice(0, ALERTS_SHOWN).map((alert) => ({
    href: hrefOf('alerts', [alert.alert_id]),
    title: alert.name,
    note: conditionText(alert),
    status: stateOf(alert),
    at: alert.states[0]?.since,
  }))
  return (
    <section class="panel alerts-now">
      <h2>
        Firing alerts <span class="hint">{firing.length > 0 && count(firing.length)}</span>
        <a href={hrefOf('alerts')}>All</a>
      </h2>
      <Items items={items} none="No alert is firing." />
    </section>
  )
}

/** The runs of the range that failed last; the feed brings new ones. */
export function LatestFailures({ range }: { readonly range: TimeRange }) {
  const { directory } = useSession()
  const read = useFailures(range)
  const itemOf = (run: RunSummary): Item => ({
    href: hrefOfRun(run.run_id),
    title: run.error_message ?? 'no message',
    note: directory.nameOf(run.agent_id),
    status: run.status === 'timed_out' ? run.status : undefined,
    at: endOf(run),
  })
  return (
    <section class="panel failures">
      <h2>
        Latest failures <a href={hrefOf('runs', [], { status: 'failed', ...linkedRange(TIME.value) })}>All</a>
      </h2>
      <Loaded read={read}>
        {(runs) => <Items items={latest(runs, range).map(itemOf)} none="No run of this range has failed." />}
      </Loaded>
    </section>
  )
}

interface Item {
  readonly href: string
  readonly title: ComponentChildren
  readonly note: string
  readonly status?: string | undefined
  readonly at: string | undefined
}

function Items({ items, none }: { readonly items: readonly Item[]; readonly none: string }) {
  if (items.length === 0) {
    return (
      <p class="hint quiet-note">
        <Icon name="check" /> {none}
      </p>
    )
  }
  return (
    <ul class="rows">
      {items.map(({ href, title, note, status, at }) => (
        <li key={href}>
          <a href={href}>
            <span class="row-title">{title}</span>
            <span class="hint">{note}</span>
          </a>
          {status && <Status name={status} />}
          {at && <Ago at={at} />}
        </li>
      ))}
    </ul>
  )
}

/**
 * The failed runs of a range. Reads them once: callers mount the component again for another range, unless that only moves.
 */
function useFailures(range: TimeRange): Loading<readonly RunSummary[]> {
  const { api, feed } = useSession()
  const [closing] = useState(() => new AbortController())
  const [failures] = useState(() => {
    const { fromMs, toMs, isMoving } = range
    // The end of a moving range is now.
    const bounds = { from: new Date(fromMs).toISOString(), to: isMoving ? null : new Date(toMs).toISOString() }
    const load = async (signal: AbortSignal) => {
      const read = (status: string) =>
        api.get<Listed<RunSummary>>('/api/v1/runs', { status, ...bounds, limit: FAILURES_SHOWN }, signal)
      return (await Promise.all(FAILED.map(read))).flatMap(({ items }) => items)
    }
    return new LiveResource<readonly RunSummary[] | undefined>(undefined, { load }, closing.signal)
  })
  useEffect(() => {
    const onItems = (items: readonly Activity[]) =>
      failures.update((runs) => runs && latest([...runs, ...items.flatMap(({ run }) => run ?? [])], range))
    const filter = { kind: 'run', status: [...FAILED] }
    const subscription = feed.subscribe(filter, { onItems }, { maxPerSecond: FAILURES_SHOWN })
    void failures.load()
    return () => {
      subscription.stop()
      closing.abort()
    }
  }, [failures])
  return failures.reading(failures.value)
}

/** The runs of a range that ended last, in their latest states. */
function latest(runs: readonly RunSummary[], { fromMs, toMs, isMoving }: TimeRange): readonly RunSummary[] {
  // A run belongs to the range in which it was created, as in all figures and lists of runs.
  const isWithin = (at: number) => at >= fromMs && (isMoving || at < toMs)
  return [...new Map(runs.map((run) => [run.run_id, run])).values()]
    .filter(({ created_at }) => isWithin(Date.parse(created_at)))
    .sort((a, b) => endOf(b).localeCompare(endOf(a)))
    .slice(0, FAILURES_SHOWN)
}

function endOf({ completed_at, created_at }: RunSummary): string {
  return completed_at ?? created_at
}
