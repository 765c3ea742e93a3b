import { useEffect, useMemo, useState } from 'preact/hooks'
import { count, counted } from '../../../base/format.ts'
import { textOf } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import { isLive, type Run } from '../data/records.ts'
import { Json } from '../parts/code.tsx'
import { Button } from '../parts/controls.tsx'
import { FilterField, Select } from '../parts/fields.tsx'
import { Empty, Level, Problem, Skeleton } from '../parts/states.tsx'
import { timeOfDay } from '../parts/time.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import type { EventLog, LoggedEvent } from './event-log.ts'
import type { RunModel } from './run-model.ts'
import { LEVELS, RUN, selectStep, stepOfEvent } from './step-address.ts'
import { summaryOf } from './summary.ts'

const ROW_HEIGHT = 30
const PREVIEW_LENGTH_MAX = 200

/** The events of a run in their order: filtered by level, searched by type and payload, and one of them in full. */
export function EventsPanel({ model, run }: { readonly model: RunModel; readonly run: Run }) {
  const { find, level: lowest, event: named } = RUN.value
  const { log } = model
  const all = log.events.value
  const { matching, problem, reload } = useSearch(log, find)
  const level = lowest === '' ? 0 : LEVELS.indexOf(lowest)
  const shown = useMemo(() => {
    if (level === 0 && matching === null) return all
    return all.filter((event) => LEVELS.indexOf(event.level) >= level && (matching === null || matching(event)))
  }, [all, level, matching])
  const [isFollowing, setFollowing] = useState(false)
  const selected = named === '' ? -1 : shown.findIndex(({ seq, id }) => String(seq) === named || id === named)
  // Renders again when payloads have been read.
  log.payloadVersion.value
  return (
    <section class="events" aria-label="Events">
      <EventFilters>
        <span class="hint" role="status">
          {shown.length === all.length
            ? counted(all.length, 'event')
            : `${count(shown.length)} of ${counted(all.length, 'event')}`}
        </span>
        <Button
          class="small"
          icon="end"
          text={isLive(run) ? 'Follow' : 'End'}
          aria-pressed={isFollowing}
          onClick={() => setFollowing(!isFollowing)}
        />
      </EventFilters>
      {problem !== null && <Problem problem={problem} retry={reload} />}
      {!log.events.isLoaded.value && all.length === 0 && <Skeleton lines={6} />}
      {log.events.isLoaded.value && shown.length === 0 && (
        <Empty title={all.length === 0 ? 'No events yet.' : 'No event matches.'} />
      )}
      <div class={`events-body ${selected === -1 ? '' : 'with-event'}`}>
        {shown.length > 0 && (
          <VirtualList
            class="event-rows"
            count={shown.length}
            rowHeight={ROW_HEIGHT}
            label="Events"
            isFollowing={isFollowing}
            onFollowing={setFollowing}
            reveal={selected}
            // Filtered rows may be far apart.
            onRange={(first, last) => {
              const missing = shown.slice(first, last).find((event) => log.payloadOf(event) === undefined)
              if (missing !== undefined) void log.readPayload(missing)
            }}
            row={(index) => {
              const event = shown[index] as LoggedEvent
              const payload = log.payloadOf(event)
              const isSelected = index === selected
              const open = () => RUN.set({ tab: 'events', event: isSelected ? '' : String(event.seq) })
              return <EventRow key={event.seq} event={event} payload={payload} isSelected={isSelected} onOpen={open} />
            }}
          />
        )}
        {selected !== -1 && <EventDetail model={model} event={shown[selected] as LoggedEvent} />}
      </div>
    </section>
  )
}

function EventFilters({ children }: { readonly children: preact.ComponentChildren }) {
  const { level, find } = RUN.value
  return (
    <search class="filters" aria-label="Filter events">
      <FilterField
        icon="search"
        class="run-search"
        label="Search events"
        placeholder="Search events"
        value={find}
        set={(to) => RUN.set({ find: to, event: '' })}
      />
      <Select
        label="Level"
        value={level}
        options={[['', 'Any level'], ...LEVELS.slice(1).map((name) => [name, `${name} or higher`] as const)]}
        set={(to) => RUN.set({ level: to, event: '' })}
      />
      {children}
    </search>
  )
}

/** Matches types and known payloads at once, the others by SQL. */
function useSearch(log: EventLog, text: string) {
  const { data: found, problem, reload } = useLoad(async () => (text === '' ? undefined : log.search(text)), [text])
  const matching = useMemo(() => {
    if (text === '') return null
    const wanted = text.toLowerCase()
    return (event: LoggedEvent) => {
      if (found?.has(event.seq) || event.type.toLowerCase().includes(wanted)) return true
      const payload = log.payloadOf(event)
      return payload !== undefined && textOf(payload).toLowerCase().includes(wanted)
    }
  }, [log, text, found])
  return { matching, problem, reload }
}

interface EventRowProps {
  readonly event: LoggedEvent
  readonly payload: unknown
  readonly isSelected?: boolean
  readonly onOpen: () => void
}

export function EventRow({ event, payload, isSelected = false, onOpen }: EventRowProps) {
  const preview = payload === undefined ? '' : summaryOf({ type: event.type, payload }).slice(0, PREVIEW_LENGTH_MAX)
  return (
    <button type="button" class={`event-row ${event.level}`} aria-pressed={isSelected} onClick={onOpen}>
      <span class="clock">{timeOfDay(event.occurred_at)}</span>
      <Level name={event.level} />
      <span class="event-type" title={event.type}>
        {event.type}
      </span>
      <span class="preview">{preview}</span>
    </button>
  )
}

function EventDetail({ model, event }: { readonly model: RunModel; readonly event: LoggedEvent }) {
  const { log } = model
  const step = stepOfEvent(model.rows.value, event.id)?.id ?? event.task_id
  useEffect(() => {
    void log.readPayload(event)
  }, [log, event])
  const payload = log.payloadOf(event)
  return (
    <div class="event-detail">
      <div class="detail-head">
        <h3>{event.type}</h3>
        <Level name={event.level} />
        {step && <Button class="small" text="Show its step" onClick={() => selectStep(step)} />}
        <Button icon="close" label="Close the event" onClick={() => RUN.set({ event: '' })} />
      </div>
      <p class="hint">
        {timeOfDay(event.occurred_at)} · event <code>{event.id}</code> · position {count(event.seq)}
      </p>
      {payload === undefined ? <Skeleton /> : <Json title="Payload" value={payload} />}
    </div>
  )
}
