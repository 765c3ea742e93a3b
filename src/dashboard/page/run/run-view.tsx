import { useEffect, useRef, useState } from 'preact/hooks'
import { isTyping, useKeys } from '../context/browser.ts'
import { hrefOf, navigate, runsHref } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { isUuid, type Run } from '../data/records.ts'
import { kindOfPending, type PendingPause } from '../data/waiting.ts'
import { Tabs } from '../parts/controls.tsx'
import { Scrollable } from '../parts/scrollable.tsx'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'
import { ScoredRun } from '../scores/thumbs.tsx'
import { NamedPauseCard } from '../waiting/pause-card.tsx'
import type { TreeBar } from './bars.ts'
import { DecidedBelow } from './decisions.tsx'
import { ErrorText } from './long-text.tsx'
import { RunHead } from './run-head.tsx'
import { RunModel } from './run-model.ts'
import { RunPane } from './run-pane.tsx'
import { RUN, selectStep, stepOfEvent } from './step-address.ts'
import { StepPane } from './step-pane.tsx'
import { StepTree } from './step-tree.tsx'

/** A narrow screen shows one of the two panes. */
const PANES = { content: 'Content', steps: 'Steps' }

/** One run: its head, the tree of its steps, and beside it the run or the selected step. */
export function RunView({ runId }: { readonly runId: string }) {
  const session = useSession()
  const [model] = useState(() => new RunModel(session, runId))
  useEffect(() => () => model.close(), [model])
  useNamedStep(model)
  useRunKeys(model)
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
  const { step, pane } = RUN.value
  const selected = step || null
  return (
    <ScoredRun.Provider value={model}>
      <section class={`view run ${pane === 'steps' ? 'shows-steps' : 'shows-content'}`} aria-label="Run">
        <RunHead model={model} run={run} />
        {model.problem.value !== null && <Problem problem={model.problem.value} />}
        <div class="run-switch">
          <Tabs label="Part of the view" name="pane" tabs={PANES} badge={{ steps: String(model.rows.value.length) }} />
        </div>
        <div class="run-columns">
          <StepTree model={model} run={run} selected={selected} />
          <Content model={model} run={run} bar={model.rows.value.find(({ id }) => id === selected)} />
        </div>
      </section>
    </ScoredRun.Provider>
  )
}

interface ContentProps {
  readonly model: RunModel
  readonly run: Run
  readonly bar: TreeBar | undefined
}

/** The run or the selected step. A pending decision and the error of the run stand above the run. */
function Content({ model, run, bar }: ContentProps) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = box.current
    if (element === null) return
    element.scrollTop = 0
    // On a narrow screen the whole page scrolls, and the chosen step may be far down.
    if (element.getBoundingClientRect().top < 0) element.scrollIntoView({ block: 'start' })
  }, [bar?.id])
  return (
    <Scrollable as="div" box={box} class="run-side" label={bar === undefined ? 'The run' : 'The step'}>
      <PendingCard run={run} />
      {bar === undefined && run.error_message !== null && <ErrorText text={run.error_message} />}
      {bar === undefined ? (
        <RunPane model={model} run={run} />
      ) : (
        <StepPane key={bar.id} model={model} run={run} bar={bar} />
      )}
    </Scrollable>
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

/**
 * The decision that the run or one of its descendants waits for, which can be made here. Once made, it takes one line: in
 * the list of decisions of the run, or here for a descendant.
 */
function PendingCard({ run }: { readonly run: Run }) {
  const pending = run.pending as PendingPause | null
  const [last, setLast] = useState(pending)
  useEffect(() => {
    if (pending !== null) setLast(pending)
  }, [pending?.id])
  if (pending !== null)
    return <NamedPauseCard key={pending.id} kind={kindOfPending(pending)} id={pending.id} stamp={pending.id} />
  if (last === null || last.run_id === run.run_id) return null
  return <DecidedBelow kind={kindOfPending(last)} id={last.id} stamp={run.status} />
}

/** A link may name a task or an event: its step is selected once the steps are known. */
function useNamedStep(model: RunModel): void {
  const { task, event, tab } = RUN.value
  const isKnown = model.isLoaded.value && model.log.events.isLoaded.value
  useEffect(() => {
    if (task !== '') return selectStep(task)
    if (event === '' || tab !== '' || !isKnown) return
    const bar = stepOfEvent(model.rows.peek(), event)
    if (bar === undefined) RUN.set({ tab: 'events', step: '' })
    else selectStep(bar.id)
  }, [task, event, tab, isKnown])
}

/** Escape closes what is open, or leads back to the list; / searches the events; j and k move through the steps. */
function useRunKeys(model: RunModel): void {
  useKeys((event) => {
    if (event.key === 'Escape' && isTyping(event)) {
      ;(event.target as HTMLElement).blur()
      return true
    }
    if (isTyping(event)) return false
    const shown = RUN.value
    if (event.key === '/') {
      document.querySelector<HTMLInputElement>('.run-search, .waterfall-tools input')?.focus()
      return true
    }
    if (event.key === 'j' || event.key === 'k') {
      const rows = model.rows.peek()
      const at = rows.findIndex(({ id }) => id === shown.step)
      const next = event.key === 'j' ? at + 1 : at - 1
      if (next < rows.length) selectStep(rows[next]?.id ?? null)
      return true
    }
    if (event.key !== 'Escape') return false
    if (shown.step !== '' || shown.event !== '') RUN.set({ step: '', event: '' })
    else navigate(runsHref.value)
    return true
  })
}
