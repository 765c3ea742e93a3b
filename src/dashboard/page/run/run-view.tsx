import { useEffect, useState } from 'preact/hooks'
import { compact } from '../../../base/format.ts'
import { address, hrefOf, navigate, runsHref, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { kindOfPending, type PendingPause, readPause } from '../data/pause.ts'
import { isUuid, type Run } from '../data/records.ts'
import { useLoad } from '../data/use-load.ts'
import { Json } from '../parts/code.tsx'
import { isTyping, useKeys } from '../parts/keyboard.ts'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'
import { openTab, Tabs } from '../parts/tabs.tsx'
import { PauseCard } from '../waiting/pause-card.tsx'
import { BarDetail } from './bar-detail.tsx'
import { RunConversation } from './conversation.tsx'
import { EventsPanel } from './events-panel.tsx'
import { RunHead } from './run-head.tsx'
import { RunModel } from './run-model.ts'
import { Waterfall } from './waterfall.tsx'

const TABS = { events: 'Events', conversation: 'Conversation', data: 'Input and output' }

/** One run: its head, what it waits for, the timeline, and beside it events, conversation, or the selected step. */
export function RunView({ runId }: { readonly runId: string }) {
  const session = useSession()
  const [model] = useState(() => new RunModel(session, runId))
  useEffect(() => () => model.close(), [model])
  useRunKeys()
  const run = model.run.value
  if (model.isMissing.value || !isUuid(runId)) return <NoSuchRun />
  if (run === null) {
    return (
      <section class="view" aria-label="Run">
        <h1 class="unseen">Run</h1>
        {model.problem.value === null ? <Skeleton lines={8} /> : <Problem problem={model.problem.value} />}
      </section>
    )
  }
  const { span: selected = null } = address.value.query
  const bar = model.rows.value.find(({ id }) => id === selected)
  return (
    <section class="view run" aria-label="Run">
      <RunHead model={model} run={run} />
      {model.problem.value !== null && <Problem problem={model.problem.value} />}
      <PendingCard run={run} />
      <div class="run-columns">
        <Waterfall model={model} run={run} selected={selected} />
        <div class="run-side">
          {bar === undefined ? <Side model={model} run={run} /> : <BarDetail bar={bar} agentId={run.agent_id} />}
        </div>
      </div>
    </section>
  )
}

function NoSuchRun() {
  return (
    <section class="view" aria-label="Run">
      <Empty title="No such run" icon="runs">
        <p>This workspace has no run with this id.</p>
        <a class="button" href={hrefOf('runs')}>
          All runs
        </a>
      </Empty>
      <h1 class="unseen">Run</h1>
    </section>
  )
}

function Side({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const tab = openTab({ name: 'tab', tabs: TABS })
  const { events } = model.log
  return (
    <>
      <Tabs
        label="Parts of the run"
        name="tab"
        tabs={TABS}
        badge={{ events: compact(events.isLoaded.value ? events.value.length : run.event_count) }}
      />
      {tab === 'events' && <EventsPanel log={model.log} run={run} />}
      {tab === 'conversation' && <RunConversation model={model} run={run} />}
      {tab === 'data' && <RunData run={run} />}
    </>
  )
}

function RunData({ run }: { readonly run: Run }) {
  const isGiven = (value: unknown) => value !== null && JSON.stringify(value) !== '{}'
  return (
    <div class="run-data">
      <Json title="Input" value={run.input} level="h2" />
      {run.output === null && <p class="hint">No output reported.</p>}
      {run.output !== null && <Json title="Output" value={run.output} level="h2" />}
      {isGiven(run.error_detail) && <Json title="Error detail" value={run.error_detail} level="h2" />}
      {isGiven(run.metadata) && <Json title="Metadata" value={run.metadata} level="h2" />}
    </div>
  )
}

/** The decision that the run, or one below it, waits for: it can be made right here. */
function PendingCard({ run }: { readonly run: Run }) {
  const { api, waiting } = useSession()
  const pending = run.pending as PendingPause | null
  const [last, setLast] = useState(pending)
  useEffect(() => {
    if (pending !== null) setLast(pending)
  }, [pending?.id])
  const { data } = useLoad(async () => last && readPause(api, kindOfPending(last), last.id), [last?.id, pending?.id])
  const shown = waiting.shown.value.find(({ id }) => id === last?.id) ?? data
  return shown && <PauseCard key={shown.id} pause={shown} isOnRunPage />
}

/** Escape closes what is open, or leads back to the list; / searches the events. */
function useRunKeys(): void {
  useKeys((event) => {
    if (event.key === 'Escape' && isTyping(event)) {
      ;(event.target as HTMLElement).blur()
      return true
    }
    if (isTyping(event)) return false
    const { query } = address.value
    if (event.key === '/') {
      document.querySelector<HTMLInputElement>('.run-search')?.focus()
      return true
    }
    if (event.key !== 'Escape') return false
    if (query.span !== undefined || query.event !== undefined) setQuery({ span: null, event: null })
    else navigate(runsHref.value)
    return true
  })
}
