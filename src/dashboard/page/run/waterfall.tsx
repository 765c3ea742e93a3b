import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { duration, words } from '../../../base/format.ts'
import { setQuery } from '../context/router.ts'
import { isLive, type Run } from '../data/records.ts'
import { Button } from '../parts/button.tsx'
import { Icon, type IconName } from '../parts/icons.tsx'
import { useNow } from '../parts/now.ts'
import { Skeleton } from '../parts/states.tsx'
import { toneOf } from '../parts/status.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { type Bar, type BarKind, timelineSummary } from './bars.ts'
import type { RunModel } from './run-model.ts'
import { panned, placeOf, type TimeWindow, tickLabel, ticksOf, zoomed } from './time-window.ts'

interface WaterfallProps {
  readonly model: RunModel
  readonly run: Run
  readonly selected: string | null
}

const ROW_HEIGHT = 30
const DEPTH_MAX = 8
/** A shorter bar would be invisible. */
const WIDTH_PERCENT_MIN = 0.4
const ZOOM_STEP = 0.6
const PAN_STEP = 0.25

export const KINDS: Readonly<Record<BarKind, { readonly icon: IconName; readonly name: string }>> = {
  child: { icon: 'agents', name: 'child run' },
  task: { icon: 'task', name: 'task' },
  model: { icon: 'model', name: 'model call' },
  tool: { icon: 'tool', name: 'tool call' },
  wait: { icon: 'person', name: 'wait for a person' },
}

/** Everything below a run on one time axis: child runs, tasks, model and tool calls, and waits. It grows with the run. */
export function Waterfall({ model, run, selected }: WaterfallProps) {
  const rows = model.rows.value
  const live = isLive(run)
  const now = useNow()
  const whole = extent(run, rows, live ? now : null)
  const [zoom, setZoom] = useState<TimeWindow | null>(null)
  const shownRange = zoom ?? whole
  const events = model.log.events.value
  const summary = useMemo(() => timelineSummary(rows, events, run), [rows, events, run])
  return (
    <section class="waterfall" aria-label="Timeline">
      <div class="waterfall-head">
        <h2>Timeline</h2>
        <span class="hint">{summary}</span>
        <div class="waterfall-tools">
          <Button
            icon="plus"
            title="Zoom in (Ctrl and wheel)"
            onClick={() => setZoom(zoomed(shownRange, whole, middle(shownRange), ZOOM_STEP))}
          />
          <Button class="small" text="Fit" disabled={zoom === null} onClick={() => setZoom(null)} />
        </div>
      </div>
      {rows.length === 0 ? (
        <div class="waterfall-none">
          {model.isLoaded.value ? <p class="hint">No tasks, calls or child runs{live ? ' yet' : ''}.</p> : <Skeleton />}
        </div>
      ) : (
        <Zoomable shownRange={shownRange} whole={whole} onZoom={(to) => setZoom(sameAs(to, whole) ? null : to)}>
          <Axis shownRange={shownRange} whole={whole} />
          <VirtualList
            class="waterfall-rows"
            count={rows.length}
            rowHeight={ROW_HEIGHT}
            label="Steps of the run"
            reveal={rows.findIndex(({ id }) => id === selected)}
            row={(index) => {
              const bar = rows[index] as (typeof rows)[number]
              return <Row key={bar.id} bar={bar} shownRange={shownRange} now={now} isSelected={bar.id === selected} />
            }}
          />
        </Zoomable>
      )}
    </section>
  )
}

interface ZoomableProps {
  readonly shownRange: TimeWindow
  readonly whole: TimeWindow
  readonly onZoom: (to: TimeWindow) => void
  readonly children: preact.ComponentChildren
}

/** Ctrl and the wheel zoom around the pointer, Shift and the wheel move the window. */
function Zoomable({ shownRange, whole, onZoom, children }: ZoomableProps) {
  const element = useRef<HTMLDivElement>(null)
  const current = useRef({ shownRange, whole, onZoom })
  current.current = { shownRange, whole, onZoom }
  useEffect(() => {
    const box = element.current as HTMLDivElement
    const turn = (event: WheelEvent) => {
      const { shownRange: shown, whole: all, onZoom: zoom } = current.current
      const track = box.querySelector('.axis-track')?.getBoundingClientRect()
      if (track === undefined || !(event.ctrlKey || event.metaKey || event.shiftKey)) return
      event.preventDefault()
      const direction = Math.sign(event.deltaY || event.deltaX)
      if (event.shiftKey) return zoom(panned(shown, all, direction * PAN_STEP))
      const share = Math.min(1, Math.max(0, (event.clientX - track.left) / track.width))
      const at = shown.fromMs + share * (shown.toMs - shown.fromMs)
      zoom(zoomed(shown, all, at, direction > 0 ? 1 / ZOOM_STEP : ZOOM_STEP))
    }
    box.addEventListener('wheel', turn, { passive: false })
    return () => box.removeEventListener('wheel', turn)
  }, [])
  return (
    <div ref={element} class="waterfall-body">
      {children}
    </div>
  )
}

function Axis({ shownRange, whole }: { readonly shownRange: TimeWindow; readonly whole: TimeWindow }) {
  return (
    <div class="axis" aria-hidden="true">
      <span />
      <div class="axis-track">
        {ticksOf(shownRange, whole).map((at) => (
          <span key={at} style={{ left: `${placeOf(whole.fromMs + at, shownRange)}%` }}>
            {tickLabel(at)}
          </span>
        ))}
      </div>
      <span />
    </div>
  )
}

interface RowProps {
  readonly bar: Bar & { readonly depth: number }
  readonly shownRange: TimeWindow
  readonly now: number
  readonly isSelected: boolean
}

function Row({ bar, shownRange, now, isSelected }: RowProps) {
  const endMs = bar.endMs ?? now
  const from = placeOf(bar.startMs, shownRange)
  const to = placeOf(endMs, shownRange)
  const left = Math.min(100 - WIDTH_PERCENT_MIN, Math.max(0, from))
  const width = Math.max(WIDTH_PERCENT_MIN, Math.min(100, to) - left)
  const isOutside = to < 0 || from > 100
  const took = duration(endMs - bar.startMs)
  const choose = () => setQuery({ span: isSelected ? null : bar.id, event: null })
  return (
    <button type="button" class={`span-row ${bar.kind}`} aria-pressed={isSelected} onClick={choose}>
      <span class="span-name" style={{ paddingLeft: `${Math.min(bar.depth, DEPTH_MAX) * 14}px` }}>
        <Icon name={KINDS[bar.kind].icon} />
        <span>
          <span class="unseen">{KINDS[bar.kind].name} </span>
          {bar.name}
          <span class="unseen"> {words(bar.status)}</span>
        </span>
      </span>
      <span class="span-track">
        {!isOutside && (
          <span
            class={`span-bar ${bar.kind} ${toneOf(bar.status)} ${bar.endMs === null ? 'is-open' : ''}`}
            style={{ left: `${left}%`, width: `${width}%` }}
          />
        )}
      </span>
      <span class="span-took">{took}</span>
    </button>
  )
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

function middle({ fromMs, toMs }: TimeWindow): number {
  return (fromMs + toMs) / 2
}

function sameAs(a: TimeWindow, b: TimeWindow): boolean {
  return a.fromMs === b.fromMs && a.toMs === b.toMs
}
