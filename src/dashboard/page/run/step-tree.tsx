import { useEffect, useMemo, useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { isLive, type Run } from '../data/records.ts'
import { Button } from '../parts/controls.tsx'
import { SearchField } from '../parts/fields.tsx'
import { Skeleton } from '../parts/states.tsx'
import { useNow } from '../parts/time.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { type Bar, type TreeBar, timelineSummary } from './bars.ts'
import type { RunModel } from './run-model.ts'
import { selectStep } from './step-address.ts'
import { domIdOf, StepRow, type StepRowData } from './step-row.tsx'
import { Axis, ZOOM_STEP, Zoomable } from './time-axis.tsx'
import { type TimeWindow, zoomed } from './time-window.ts'
import { ancestorsOf, type Below, isFailed, matching, unfolded, withBelow } from './tree.ts'

/** The row of the run itself. */
const RUN_ROW = 'run'
const ROW_HEIGHT = 30
/** With fewer steps there is no search: all can be seen. */
const SEARCHED_MIN = 8
const NOTHING: ReadonlySet<string> = new Set()

interface StepTreeProps {
  readonly model: RunModel
  readonly run: Run
  /** The step that the other pane shows; null for the run. */
  readonly selected: string | null
}

/** The run and everything below it as a tree on one time axis. It grows with the run; what is folded stays so. */
export function StepTree({ model, run, selected }: StepTreeProps) {
  const live = isLive(run)
  const now = useNow()
  const all = useRows(model, run)
  const [text, setText] = useState('')
  const found = useMemo(() => (text.trim() === '' ? all : matching(all, nameHas(text))), [all, text])
  const folds = useFolds(found, selected ?? RUN_ROW)
  const { rows } = folds
  const whole = extent(run, all, live ? now : null)
  const [zoom, setZoom] = useState<TimeWindow | null>(null)
  const shownRange = zoom ?? whole
  // The arrows move from the selected step until another one is selected.
  const [moved, setMoved] = useState<{ readonly from: string | null; readonly to: string } | null>(null)
  const current = moved !== null && moved.from === selected ? moved.to : (selected ?? RUN_ROW)
  const setCurrent = (to: string) => setMoved({ from: selected, to })
  const open = (id: string) => selectStep(id === RUN_ROW ? null : id)
  const currentIndex = rows.findIndex(({ id }) => id === current)
  const keys = treeKeys({ rows, current, setCurrent, open, folds })
  return (
    <section class="waterfall" aria-label="Timeline">
      <TreeHead model={model} run={run} all={all} text={text} onText={setText} folds={folds}>
        <Button
          icon="plus"
          title="Zoom in (Ctrl and wheel)"
          label="Zoom in"
          onClick={() => setZoom(zoomed(shownRange, whole, (shownRange.fromMs + shownRange.toMs) / 2, ZOOM_STEP))}
        />
        {zoom !== null && <Button class="small" text="Fit" onClick={() => setZoom(null)} />}
      </TreeHead>
      <Zoomable shownRange={shownRange} whole={whole} onZoom={(to) => setZoom(sameAs(to, whole) ? null : to)}>
        <Axis shownRange={shownRange} whole={whole} />
        <VirtualList
          class="waterfall-rows"
          count={rows.length}
          rowHeight={ROW_HEIGHT}
          label="Steps of the run"
          reveal={currentIndex}
          attributes={{
            role: 'tree',
            'aria-activedescendant': currentIndex === -1 ? undefined : domIdOf(current),
            onKeyDown: keys,
            onClick: ({ target }) => clicked(target as Element, open, folds),
          }}
          row={(index) => {
            const bar = rows[index] as StepRowData
            return (
              <StepRow
                key={bar.id}
                bar={bar}
                shownRange={shownRange}
                now={now}
                isSelected={bar.id === (selected ?? RUN_ROW)}
                isCurrent={bar.id === current}
                isFolded={folds.folded.has(bar.id)}
              />
            )
          }}
        />
      </Zoomable>
      {all.length === 1 && <NoSteps model={model} isLive={live} />}
      <p class="hint tree-hints">
        <kbd>↑</kbd> <kbd>↓</kbd> move · <kbd>←</kbd> <kbd>→</kbd> fold · <kbd>Enter</kbd> opens · <kbd>j</kbd>{' '}
        <kbd>k</kbd> next and previous step
      </p>
    </section>
  )
}

function NoSteps({ model, isLive: live }: { readonly model: RunModel; readonly isLive: boolean }) {
  return (
    <div class="waterfall-none">
      {model.isLoaded.value ? <p class="hint">No tasks, calls or child runs{live ? ' yet' : ''}.</p> : <Skeleton />}
    </div>
  )
}

/** The run, and below it all of its steps, with what is below each. */
function useRows(model: RunModel, run: Run) {
  const { directory } = useSession()
  const name = directory.nameOf(run.agent_id)
  const steps = model.rows.value
  return useMemo(() => {
    const root: TreeBar = { ...barOfRun(run, name), depth: 0 }
    return withBelow([root, ...steps.map((step) => ({ ...step, depth: step.depth + 1 }))])
  }, [steps, run, name])
}

function barOfRun(run: Run, name: string): Bar {
  return {
    id: RUN_ROW,
    parentId: null,
    kind: 'run',
    name,
    startMs: Date.parse(run.started_at ?? run.created_at),
    endMs: run.completed_at === null ? null : Date.parse(run.completed_at),
    status: run.status,
    events: [],
  }
}

function nameHas(text: string): (bar: TreeBar) => boolean {
  const wanted = text.trim().toLowerCase()
  return ({ name, kind }) => name.toLowerCase().includes(wanted) || kind === wanted
}

interface Folds {
  readonly rows: readonly StepRowData[]
  readonly folded: ReadonlySet<string>
  readonly parents: readonly string[]
  readonly toggle: (id: string) => void
  readonly set: (ids: ReadonlySet<string>) => void
}

/** What is folded. A step that a link names is unfolded. */
function useFolds(all: ReturnType<typeof useRows>, selected: string): Folds {
  const [folded, setFolded] = useState<ReadonlySet<string>>(NOTHING)
  const isThere = all.some(({ id }) => id === selected)
  useEffect(() => {
    const above = ancestorsOf(all, selected).filter(({ id }) => folded.has(id))
    if (above.length > 0) setFolded(folded.difference(new Set(above.map(({ id }) => id))))
  }, [selected, isThere])
  const rows = useMemo(() => unfolded(all, folded), [all, folded])
  const parents = useMemo(
    () => unfolded(all, NOTHING).flatMap(({ id, isParent }) => (isParent && id !== RUN_ROW ? [id] : [])),
    [all],
  )
  const toggle = (id: string) => setFolded(folded.symmetricDifference(new Set([id])))
  return { rows, folded, parents, toggle, set: setFolded }
}

interface TreeHeadProps {
  readonly model: RunModel
  readonly run: Run
  readonly all: readonly (TreeBar & Below)[]
  readonly text: string
  readonly onText: (text: string) => void
  readonly folds: Folds
  readonly children: preact.ComponentChildren
}

function TreeHead({ model, run, all, text, onText, folds, children }: TreeHeadProps) {
  const events = model.log.events.value
  const summary = useMemo(() => timelineSummary(all, events, run), [all, events, run])
  const { folded, parents } = folds
  return (
    <div class="waterfall-head">
      <h2>Steps</h2>
      <span class="hint">{summary}</span>
      <NextFailed all={all} />
      <div class="waterfall-tools">
        {all.length > SEARCHED_MIN && (
          <SearchField icon="search" label="Find a step" placeholder="Find a step" value={text} onType={onText} />
        )}
        {parents.length > 0 && (
          <Button
            class="small"
            text={folded.size > 0 ? 'Unfold all' : 'Fold all'}
            onClick={() => folds.set(folded.size > 0 ? NOTHING : new Set(parents))}
          />
        )}
        {children}
      </div>
    </div>
  )
}

/** A button that selects the next failed step. A step that failed because one below it did is not counted again. */
function NextFailed({ all }: Pick<TreeHeadProps, 'all'>) {
  const [last, setLast] = useState(-1)
  const failed = all.filter((bar) => isFailed(bar) && !bar.hasFailed && bar.id !== RUN_ROW)
  if (failed.length === 0) return null
  const next = (last + 1) % failed.length
  const show = () => {
    setLast(next)
    selectStep((failed[next] as TreeBar).id)
  }
  return (
    <Button
      class="small failed-steps"
      icon="warning"
      text={`${failed.length} failed`}
      title="Show the next one"
      onClick={show}
    />
  )
}

/** A click on a row opens its step; a click on its fold mark folds it. */
function clicked(target: Element, open: (id: string) => void, folds: Folds): void {
  const id = target.closest<HTMLElement>('[data-step]')?.dataset.step
  if (id === undefined) return
  if (target.closest('.span-fold.is-parent') !== null) folds.toggle(id)
  else open(id)
}

interface KeyContext {
  readonly rows: readonly StepRowData[]
  readonly current: string
  readonly setCurrent: (id: string) => void
  readonly open: (id: string) => void
  readonly folds: Folds
}

/** The keys of a tree: the arrows move and fold, Enter opens. */
function treeKeys({ rows, current, setCurrent, open, folds }: KeyContext) {
  const at = Math.max(
    0,
    rows.findIndex(({ id }) => id === current),
  )
  const row = rows[at]
  const to = (index: number) => setCurrent(rows[Math.min(rows.length - 1, Math.max(0, index))]?.id ?? RUN_ROW)
  const isFolded = row !== undefined && folds.folded.has(row.id)
  const fold = () => row !== undefined && folds.toggle(row.id)
  const keys: Readonly<Record<string, () => unknown>> = {
    ArrowDown: () => to(at + 1),
    ArrowUp: () => to(at - 1),
    Home: () => to(0),
    End: () => to(rows.length - 1),
    ArrowRight: () => (row?.isParent && isFolded ? fold() : to(at + 1)),
    ArrowLeft: () => {
      if (row?.isParent && !isFolded) return fold()
      const parent = rows.findLastIndex(({ depth }, index) => index < at && depth < (row?.depth ?? 0))
      return to(parent)
    },
    Enter: () => row !== undefined && open(row.id),
    ' ': () => row !== undefined && open(row.id),
  }
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return
    event.preventDefault()
    keys[event.key]?.()
  }
}

function extent(run: Run, bars: readonly Bar[], now: number | null): TimeWindow {
  const start = Date.parse(run.started_at ?? run.created_at)
  const end = now ?? Date.parse(run.completed_at ?? run.last_event_at ?? run.created_at)
  let fromMs = start
  let toMs = Math.max(end, start + 1)
  for (const bar of bars) {
    fromMs = Math.min(fromMs, bar.startMs)
    toMs = Math.max(toMs, bar.endMs ?? toMs)
  }
  return { fromMs, toMs }
}

function sameAs(a: TimeWindow, b: TimeWindow): boolean {
  return a.fromMs === b.fromMs && a.toMs === b.toMs
}
