import { useEffect, useState } from 'preact/hooks'
import { count, words } from '../../../base/format.ts'
import { addressState, oneOf, texts } from '../context/address-state.ts'
import { isNarrow, useKeys } from '../context/browser.ts'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Activity } from '../data/records.ts'
import { Button, Icon } from '../parts/controls.tsx'
import { FilterField, Select } from '../parts/fields.tsx'
import { Empty, Level, Status } from '../parts/states.tsx'
import { timeOfDay } from '../parts/time.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { summaryOf } from '../run/summary.ts'
import { valueText } from '../scores/score.ts'
import { kindOf, LINE_ICONS, LineDetail } from './line-detail.tsx'
import { feedFilterOf, LIVE_CHOICES, Tail, type TailLine } from './tail.ts'

const ROW_HEIGHT = 30
/** On a narrow screen a row has two lines. */
const NARROW_ROW_HEIGHT = 52
/** The height of what opens below a row. */
const DETAIL_HEIGHT = 340
const PREVIEW_LENGTH_MAX = 240
const LEVELS = ['info', 'warn', 'error'] as const
const LIVE = addressState({
  kind: oneOf(LIVE_CHOICES.map(([kind]) => kind)),
  level: oneOf(['', ...LEVELS]),
  ...texts('agent', 'type', 'q'),
})

/** Activity of the workspace as it happens, newest at the end. */
export function LiveView() {
  const { feed } = useSession()
  const query = LIVE.value
  const filter = feedFilterOf(query)
  const [tail] = useState(() => new Tail(feed, filter))
  const [openCursor, setOpen] = useState<string | null>(null)
  useEffect(() => () => tail.close(), [tail])
  useEffect(() => {
    tail.select(filter)
    tail.search(query.q)
  })
  const lines = tail.lines.value
  const isPaused = tail.isPaused.value
  const openIndex = openCursor === null ? -1 : lines.findIndex(({ cursor }) => cursor === openCursor)
  const rowHeight = isNarrow.value ? NARROW_ROW_HEIGHT : ROW_HEIGHT
  // Pausing keeps the row in place while it is read.
  const toggle = (cursor: string) => {
    tail.pause()
    setOpen(cursor === openCursor ? null : cursor)
  }
  const resume = (isSkipping: boolean) => {
    setOpen(null)
    tail.resume(isSkipping)
  }
  useKeys(({ key }) => {
    if (key !== 'Escape' || openIndex === -1) return false
    setOpen(null)
    return true
  })
  return (
    <section class="view live" aria-label="Live">
      <div class="view-head">
        <h1>Live</h1>
        <TailState tail={tail} />
      </div>
      <LiveFilters>
        <Button
          class="small"
          aria-pressed={isPaused}
          onClick={() => (isPaused ? resume(false) : tail.pause())}
          icon={isPaused ? 'play' : 'pause'}
          text={isPaused ? 'Resume' : 'Pause'}
        />
        {isPaused && <Button class="small" onClick={() => resume(true)} icon="end" text="Skip to now" />}
      </LiveFilters>
      <div class="panel tail">
        {lines.length === 0 && <Nothing isPaused={isPaused} text={query.q} />}
        <VirtualList
          class="tail-rows"
          count={lines.length}
          rowHeight={rowHeight}
          label="Activity"
          isFollowing={!isPaused}
          onFollowing={(isAtEnd) => !isAtEnd && tail.pause()}
          opened={openIndex === -1 ? undefined : { index: openIndex, height: DETAIL_HEIGHT }}
          row={(index) => {
            const line = lines[index] as TailLine
            return <Line key={line.cursor} line={line} isOpen={index === openIndex} toggle={toggle} />
          }}
        />
      </div>
    </section>
  )
}

function Nothing({ isPaused, text }: { readonly isPaused: boolean; readonly text: string }) {
  const title = isPaused ? 'Paused.' : text === '' ? 'Waiting for activity…' : `Waiting for activity with "${text}"…`
  return (
    <Empty title={title} icon="live">
      <p>
        {isPaused
          ? 'Resume to see what happened in the meantime.'
          : 'Events and changes of runs appear as they happen.'}
      </p>
    </Empty>
  )
}

function TailState({ tail }: { readonly tail: Tail }) {
  const { feed } = useSession()
  const parts = [
    stateOf(tail, feed.isConnected.value),
    `${count(tail.rate.value)} per second`,
    `${count(tail.seen.value)} since you opened this view`,
    tail.sampledFrom.value > 1 && `showing 1 of ${count(tail.sampledFrom.value)}, failures first`,
    tail.skipped.value > 0 && `${count(tail.skipped.value)} left out`,
  ]
  return (
    <span class="hint tail-state" role="status">
      {parts.filter((part) => part !== false).join(' · ')}
    </span>
  )
}

function stateOf({ isPaused, isStarted }: Tail, isConnected: boolean): string {
  if (!isConnected) return 'Reconnecting; nothing will be missed'
  if (isPaused.value) return 'Paused; nothing is lost'
  return isStarted.value ? 'Live' : 'Connecting'
}

function LiveFilters({ children }: { readonly children: preact.ComponentChildren }) {
  const { directory } = useSession()
  return (
    <search class="filters" aria-label="Filter activity">
      <Select label="Show" {...LIVE.field('kind')} options={LIVE_CHOICES} />
      <Select
        label="Level"
        {...LIVE.field('level')}
        options={[['', 'Any level'], ...LEVELS.map((name) => [name, `${name} or higher`] as const)]}
      />
      <Select label="Agent" {...LIVE.field('agent')} options={[['', 'Any agent'], ...directory.choices.value]} />
      <FilterField
        icon="filter"
        label="Event types"
        placeholder="Event types: llm.call, tool.*"
        {...LIVE.field('type')}
      />
      <FilterField icon="search" label="Text" placeholder="Text of ids, types and payloads" {...LIVE.field('q')} />
      {children}
    </search>
  )
}

interface LineProps {
  readonly line: TailLine
  readonly isOpen: boolean
  readonly toggle: (cursor: string) => void
}

/** A line, which opens in place. */
function Line({ line, isOpen, toggle }: LineProps) {
  const { directory } = useSession()
  if ('gap' in line) return <p class="tail-row hint">Some activity before this line was lost.</p>
  const { name, text } = shownOf(line)
  const kind = kindOf(line)
  return (
    <>
      <div class={`tail-row ${line.event?.level ?? ''} ${isOpen ? 'is-open' : ''}`}>
        <time class="clock" dateTime={line.received_at}>
          {timeOfDay(line.received_at)}
        </time>
        <span class={`tail-kind ${kind}`}>
          <Icon name={LINE_ICONS[kind]} />
          <span>{kind}</span>
        </span>
        {line.score !== undefined ? (
          <span class="level">{words(line.score.source)}</span>
        ) : line.event === undefined ? (
          <Status name={(line.task ?? line.run)?.status ?? ''} />
        ) : (
          <Level name={line.event.level} />
        )}
        <button type="button" class="event-type tail-open" aria-expanded={isOpen} onClick={() => toggle(line.cursor)}>
          {name}
        </button>
        {line.run_id === null ? (
          <span class="hint">no run</span>
        ) : (
          <a href={hrefOfRun(line.run_id)}>
            {line.agent_id !== null && directory.nameOf(line.agent_id)} <small>…{line.run_id.slice(-8)}</small>
          </a>
        )}
        <span class="preview">{text.slice(0, PREVIEW_LENGTH_MAX)}</span>
      </div>
      {isOpen && <LineDetail line={line} height={DETAIL_HEIGHT} />}
    </>
  )
}

function shownOf({ event, task, run, score }: Activity): { readonly name: string; readonly text: string } {
  if (score !== undefined) {
    const said = [valueText(score), score.text ?? '', score.comment ?? '']
    return { name: score.name, text: said.filter((each) => each !== '').join(' · ') }
  }
  if (event !== undefined) return { name: event.type, text: summaryOf(event) }
  const record = task ?? run
  return { name: task === undefined ? `run ${words(run?.status ?? '')}` : task.name, text: record?.error_message ?? '' }
}
