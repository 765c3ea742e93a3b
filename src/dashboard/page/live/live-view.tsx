import { useEffect, useState } from 'preact/hooks'
import { count, words } from '../../../base/format.ts'
import { address, hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Activity } from '../data/records.ts'
import { timeOfDay } from '../parts/clock.ts'
import { Select } from '../parts/field.tsx'
import { Icon } from '../parts/icons.tsx'
import { isNarrow } from '../parts/screen.ts'
import { FilterField } from '../parts/search-field.tsx'
import { Empty } from '../parts/states.tsx'
import { Level, Status } from '../parts/status.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { summaryOf } from '../run/payload.ts'
import { feedFilterOf, LIVE_CHOICES, liveFilterOf } from './live-filter.ts'
import { Tail, type TailLine } from './tail.ts'

const ROW_HEIGHT = 30
/** Of the two lines of a narrow screen. */
const NARROW_ROW_HEIGHT = 52
const PREVIEW_LENGTH_MAX = 240
const LEVELS = ['info', 'warn', 'error']

/** Activity of the workspace as it happens, newest at the end. */
export function LiveView() {
  const { feed } = useSession()
  const filter = liveFilterOf(address.value.query)
  const [tail] = useState(() => new Tail(feed, feedFilterOf(filter)))
  const [isFollowing, setFollowing] = useState(true)
  useEffect(() => () => tail.close(), [tail])
  useEffect(() => tail.select(feedFilterOf(filter)))
  const lines = tail.lines.value
  const isPaused = tail.isPaused.value
  return (
    <section class="view live" aria-label="Live">
      <div class="view-head">
        <h1>Live</h1>
        <TailState tail={tail} />
      </div>
      <LiveFilters>
        <button
          type="button"
          class="small"
          aria-pressed={isPaused}
          onClick={() => (isPaused ? tail.resume() : tail.pause())}
        >
          <Icon name={isPaused ? 'play' : 'pause'} />
          <span>{isPaused ? 'Resume' : 'Pause'}</span>
        </button>
        {!isFollowing && (
          <button type="button" class="small" onClick={() => setFollowing(true)}>
            <Icon name="end" />
            <span>Follow</span>
          </button>
        )}
      </LiveFilters>
      <div class="panel tail">
        {lines.length === 0 && (
          <Empty title={isPaused ? 'Paused.' : 'Waiting for activity…'} icon="live">
            <p>
              {isPaused
                ? 'Resume to see what happened in the meantime.'
                : 'Events and changes of runs appear as they happen.'}
            </p>
          </Empty>
        )}
        <VirtualList
          class="tail-rows"
          count={lines.length}
          rowHeight={isNarrow.value ? NARROW_ROW_HEIGHT : ROW_HEIGHT}
          label="Activity"
          isFollowing={isFollowing}
          onFollowing={setFollowing}
          row={(index) => {
            const line = lines[index] as TailLine
            return <Line key={line.cursor} line={line} />
          }}
        />
      </div>
    </section>
  )
}

function TailState({ tail }: { readonly tail: Tail }) {
  const { feed } = useSession()
  const parts = [
    stateOf(tail, feed.isConnected.value),
    `${count(tail.rate.value)} per second`,
    `${count(tail.seen.value)} since you opened this view`,
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
  const { kind, level, agent, type } = liveFilterOf(address.value.query)
  return (
    <div class="filters" role="search" aria-label="Filter activity">
      <Select label="Show" value={kind} options={LIVE_CHOICES} onChange={(to) => setQuery({ kind: to })} />
      <Select
        label="Level"
        value={level}
        options={[['', 'Any level'], ...LEVELS.map((name) => [name, `${name} or higher`] as const)]}
        onChange={(to) => setQuery({ level: to })}
      />
      <Select
        label="Agent"
        value={agent}
        options={[
          ['', 'Any agent'],
          ...directory.agents.value.map(({ agent_id: id }) => [id, directory.nameOf(id)] as const),
        ]}
        onChange={(to) => setQuery({ agent: to })}
      />
      <FilterField
        icon="filter"
        label="Event types"
        placeholder="Event types: llm.call, tool.*"
        value={type}
        onChange={(to) => setQuery({ type: to })}
      />
      {children}
    </div>
  )
}

function Line({ line }: { readonly line: TailLine }) {
  const { directory } = useSession()
  if ('gap' in line) return <p class="tail-row hint">Some activity before this line was lost.</p>
  const { name, text } = shownOf(line)
  return (
    <div class={`tail-row ${line.event?.level ?? ''}`}>
      <time class="clock" dateTime={line.received_at}>
        {timeOfDay(line.received_at)}
      </time>
      {line.event === undefined ? (
        <Status name={(line.task ?? line.run)?.status ?? ''} />
      ) : (
        <Level name={line.event.level} />
      )}
      <span class="event-type">{name}</span>
      <a href={hrefOfRun(line.run_id)}>
        {directory.nameOf(line.agent_id)} <small>…{line.run_id.slice(-8)}</small>
      </a>
      <span class="preview">{text.slice(0, PREVIEW_LENGTH_MAX)}</span>
    </div>
  )
}

function shownOf({ event, task, run }: Activity): { readonly name: string; readonly text: string } {
  if (event !== undefined) return { name: event.type, text: summaryOf(event) }
  const record = task ?? run
  return { name: task === undefined ? `run ${words(run?.status ?? '')}` : task.name, text: record?.error_message ?? '' }
}
