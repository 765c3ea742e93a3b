import { useEffect, useState } from 'preact/hooks'
import { lookup } from '../../../base/lookup.ts'
import { addressState, oneOf, text, texts } from '../context/address-state.ts'
import { Button } from './controls.tsx'
import { dateAndTime, fieldOf, timeOfField, zoneName } from './time.tsx'

/** Time ranges of the page, as they are in its address. */

export interface TimeRange {
  readonly fromMs: number
  readonly toMs: number
  /** Width of the points of a chart. */
  readonly bucketSeconds: number
  /** It ends now, and moves on. */
  readonly isMoving: boolean
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** The time range of a view in its address. @param preset unless the address names another */
export function timeState(preset = DEFAULT_PRESET) {
  return addressState({ range: text(preset), ...texts('from', 'to'), live: oneOf(['on', 'off']) })
}

type TimeState = ReturnType<typeof timeState>

/** Ranges up to now, by their name in the address. */
export const PRESETS = lookup<{ readonly title: string; readonly seconds: number }>({
  '15m': { title: 'Last 15 minutes', seconds: 15 * MINUTE },
  '1h': { title: 'Last hour', seconds: HOUR },
  '6h': { title: 'Last 6 hours', seconds: 6 * HOUR },
  '24h': { title: 'Last 24 hours', seconds: DAY },
  '7d': { title: 'Last 7 days', seconds: 7 * DAY },
  '30d': { title: 'Last 30 days', seconds: 30 * DAY },
})
const DEFAULT_PRESET = '1h'

const BUCKETS = [5, 15, 30, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY]
const POINTS_MAX = 100

const REFRESH_MS_MIN = 15_000
/** Figures of a long range change slowly, and cost more. */
const REFRESH_PER_BUCKET = 0.25
const REFRESH_MS_MAX = 900_000

/**
 * The range that an address names: `range`, or `from` and `to`. It starts and ends at the edge of a bucket, so that all
 * tabs ask for the same.
 *
 * @param nowMs Unix milliseconds
 */
export function rangeOf(query: Readonly<Record<string, string>>, nowMs: number): TimeRange {
  const from = Date.parse(query.from ?? '')
  const to = Date.parse(query.to ?? '')
  if (from < to) return aligned(from, to, false)
  const preset = PRESETS.get(query.range ?? '') ?? PRESETS.get(DEFAULT_PRESET)
  return aligned(nowMs - (preset?.seconds ?? HOUR) * 1_000, nowMs, true)
}

/** The members of an address that select the same range in another view. */
export function linkedRange({ range, from, to }: Readonly<Record<string, string>>): Record<string, string> {
  return from && to ? { from, to } : { range: range || DEFAULT_PRESET }
}

/** The members of an address that select a part of its range, which `range` still names for the way back. */
export function zoomOf(fromMs: number, toMs: number): { readonly from: string; readonly to: string } {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
}

function aligned(from: number, to: number, isMoving: boolean): TimeRange {
  const bucketSeconds = BUCKETS.find((size) => (to - from) / 1_000 / size <= POINTS_MAX) ?? 30 * DAY
  const bucketMs = bucketSeconds * 1_000
  return {
    fromMs: Math.floor(from / bucketMs) * bucketMs,
    toMs: Math.ceil(to / bucketMs) * bucketMs,
    bucketSeconds,
    isMoving,
  }
}

/** How often figures of a range up to now are read again. */
function refreshMsOf({ bucketSeconds }: TimeRange): number {
  return Math.min(REFRESH_MS_MAX, Math.max(REFRESH_MS_MIN, bucketSeconds * 1_000 * REFRESH_PER_BUCKET))
}

/** How many of the buckets are over; values of the others still change. */
export function completeBuckets({ fromMs, toMs, bucketSeconds }: TimeRange, nowMs: number): number {
  return Math.max(0, Math.floor((Math.min(toMs, nowMs) - fromMs) / 1_000 / bucketSeconds))
}

/** The start of each bucket, in Unix seconds. */
export function bucketsOf({ fromMs, toMs, bucketSeconds }: TimeRange): number[] {
  const first = fromMs / 1_000
  return Array.from(
    { length: Math.max(1, (toMs - fromMs) / 1_000 / bucketSeconds) },
    (_, at) => first + at * bucketSeconds,
  )
}

interface MovingRange extends TimeRange {
  /** Figures are read again when it changes. */
  readonly movedAtMs: number
}

/** The range that an address names; one up to now moves on by itself while the page is visible, less often the longer it is. */
export function useMovingRange(query: Readonly<Record<string, string>>, isStopped = false): MovingRange {
  const [now, setNow] = useState(Date.now())
  const range = rangeOf(query, now)
  const everyMs = refreshMsOf(range)
  useEffect(() => {
    if (!range.isMoving || isStopped) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const move = () => {
      clearTimeout(timer)
      if (document.hidden) return
      const waitMs = now + everyMs - Date.now()
      if (waitMs <= 0) setNow(Date.now())
      else timer = setTimeout(move, waitMs)
    }
    move()
    document.addEventListener('visibilitychange', move)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', move)
    }
  }, [now, range.isMoving, isStopped, everyMs])
  return { ...range, movedAtMs: now }
}

/** The value of the choice for a range with a fixed start and end. */
const CUSTOM = 'custom'

/** Whether a moving range follows the time; kept in the address. */
export function LiveToggle({ time }: { readonly time: TimeState }) {
  const isStopped = time.value.live === 'off'
  return (
    <Button
      class={`small live-toggle ${isStopped ? '' : 'is-live'}`}
      icon={isStopped ? 'play' : 'live'}
      text="Live"
      aria-pressed={!isStopped}
      onClick={() => time.set({ live: isStopped ? 'on' : 'off' })}
    />
  )
}

/** Chooses the time range of the address: one that moves with the clock, or a fixed one. */
export function RangePicker({ time }: { readonly time: TimeState }) {
  const { range, from, to } = time.value
  const isCustom = from !== '' && to !== ''
  const [isEditing, setEditing] = useState(false)
  const choose = (value: string) => {
    setEditing(value === CUSTOM)
    if (value !== CUSTOM) time.set({ range: value, from: '', to: '' })
  }
  const chosen = isEditing || isCustom ? CUSTOM : range
  return (
    <div class="range-picker">
      <select aria-label="Time range" value={chosen} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {[...PRESETS].map(([name, { title }]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
        <option value={CUSTOM}>{isCustom && !isEditing ? `${labelOf(from)} – ${labelOf(to)}` : 'Custom…'}</option>
      </select>
      {isCustom && !isEditing && (
        <button type="button" class="small" onClick={() => time.set({ from: '', to: '' })}>
          Reset to {PRESETS.get(range)?.title.toLowerCase() ?? 'now'}
        </button>
      )}
      {isEditing && <CustomRange time={time} close={() => setEditing(false)} />}
    </div>
  )
}

function CustomRange({ time, close }: { readonly time: TimeState; readonly close: () => void }) {
  const [from, setFrom] = useState(fieldOf(time.value.from || new Date(Date.now() - 3_600_000).toISOString()))
  const [to, setTo] = useState(fieldOf(time.value.to || new Date().toISOString()))
  const isValid = timeOfField(from) < timeOfField(to)
  const apply = (event: Event) => {
    event.preventDefault()
    if (!isValid) return
    time.set({ from: new Date(timeOfField(from)).toISOString(), to: new Date(timeOfField(to)).toISOString() })
    close()
  }
  return (
    <form class="range-custom" onSubmit={apply}>
      <label>
        From
        <input type="datetime-local" value={from} onInput={({ currentTarget }) => setFrom(currentTarget.value)} />
      </label>
      <label>
        To
        <input type="datetime-local" value={to} onInput={({ currentTarget }) => setTo(currentTarget.value)} />
      </label>
      <span class="hint">{zoneName()}</span>
      <Button type="submit" class="primary small" disabled={!isValid} text="Apply" />
    </form>
  )
}

function labelOf(timestamp: string): string {
  return dateAndTime(timestamp).slice(5, 16)
}
