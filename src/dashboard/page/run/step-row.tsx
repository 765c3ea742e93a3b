import { compact, duration, words } from '../../../base/format.ts'
import { Icon } from '../parts/controls.tsx'
import { toneOf } from '../parts/states.tsx'
import type { TreeBar } from './bars.ts'
import { KINDS } from './kinds.ts'
import { placeOf, type TimeWindow } from './time-window.ts'
import { type Below, isFailed } from './tree.ts'

/** A step as the tree shows it. */
export type StepRowData = TreeBar & Below & { readonly isParent: boolean }

interface StepRowProps {
  readonly bar: StepRowData
  readonly shownRange: TimeWindow
  readonly now: number
  readonly isSelected: boolean
  /** Whether it is the row that the keys act on. */
  readonly isCurrent: boolean
  readonly isFolded: boolean
}

const DEPTH_MAX = 10
/** In pixels for each level. */
const INDENT = 16
/** A shorter bar would be invisible. */
const WIDTH_PERCENT_MIN = 0.4

/** The id of the row in the page, by which the tree names the current row (`aria-activedescendant`). */
export function domIdOf(stepId: string): string {
  return `step-${stepId}`
}

/**
 * One step: its name and kind, its place in the time of the run, its tokens and how long it took. Keys and clicks are those
 * of the tree.
 */
export function StepRow({ bar, shownRange, now, isSelected, isCurrent, isFolded }: StepRowProps) {
  const took = (bar.endMs ?? now) - bar.startMs
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, and names its current row.
    <div
      id={domIdOf(bar.id)}
      role="treeitem"
      aria-level={bar.depth + 1}
      aria-selected={isSelected}
      aria-expanded={bar.isParent ? !isFolded : undefined}
      class={`span-row kind-${bar.kind} ${isCurrent ? 'is-current' : ''}`}
      data-step={bar.id}
    >
      <span class="span-name" style={{ paddingLeft: `${Math.min(bar.depth, DEPTH_MAX) * INDENT}px` }}>
        <FoldMark bar={bar} isFolded={isFolded} />
        <span class={`kind-icon kind-${bar.kind}`}>
          <Icon name={KINDS[bar.kind].icon} />
        </span>
        <span class="span-text" title={bar.name}>
          <span class="unseen">{KINDS[bar.kind].name} </span>
          {bar.name}
          <span class="unseen"> {words(bar.status)}</span>
        </span>
        <FailedMark bar={bar} isFolded={isFolded} />
      </span>
      <span class="span-track">
        <TrackBar bar={bar} shownRange={shownRange} now={now} />
      </span>
      <span class="span-tokens">{bar.tokens > 0 && compact(bar.tokens)}</span>
      <span class="span-took">{duration(took)}</span>
    </div>
  )
}

type Marked = Pick<StepRowProps, 'bar' | 'isFolded'>

function FoldMark({ bar, isFolded }: Marked) {
  if (!bar.isParent) return <span class="span-fold" />
  return (
    <span class={`span-fold is-parent ${isFolded ? 'is-folded' : ''}`} aria-hidden="true">
      <Icon name="fold" />
    </span>
  )
}

/** Something failed here, or in what is folded below. */
function FailedMark({ bar, isFolded }: Marked) {
  if (!isFailed(bar) && !(isFolded && bar.hasFailed)) return null
  return (
    <span class="span-failed" title={isFailed(bar) ? 'Failed' : 'Something below has failed'}>
      <Icon name="warning" />
    </span>
  )
}

function TrackBar({ bar, shownRange, now }: Pick<StepRowProps, 'bar' | 'shownRange' | 'now'>) {
  const from = placeOf(bar.startMs, shownRange)
  const to = placeOf(bar.endMs ?? now, shownRange)
  if (to < 0 || from > 100) return null
  const left = Math.min(100 - WIDTH_PERCENT_MIN, Math.max(0, from))
  const width = Math.max(WIDTH_PERCENT_MIN, Math.min(100, to) - left)
  return (
    <span
      class={`span-bar kind-${bar.kind} ${toneOf(bar.status)} ${bar.endMs === null ? 'is-open' : ''}`}
      style={{ left: `${left}%`, width: `${width}%` }}
    />
  )
}
