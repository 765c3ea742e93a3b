import { useState } from 'preact/hooks'
import { address, setQuery } from '../context/router.ts'
import { dateAndTime, zone, zoneName } from './clock.ts'
import { DEFAULT_PRESET, PRESETS } from './range.ts'

/** The value of the choice for a range with a fixed start and end. */
const CUSTOM = 'custom'

/** Chooses the time range of the address: one that moves with the clock, or a fixed one. @param preset without a choice */
export function RangePicker({ preset = DEFAULT_PRESET }: { readonly preset?: string }) {
  const { query } = address.value
  const isCustom = query.from !== undefined && query.to !== undefined
  const [isEditing, setEditing] = useState(false)
  const choose = (value: string) => {
    setEditing(value === CUSTOM)
    if (value !== CUSTOM) setQuery({ range: value === preset ? null : value, from: null, to: null })
  }
  const chosen = isEditing || isCustom ? CUSTOM : (query.range ?? preset)
  return (
    <div class="range-picker">
      <select aria-label="Time range" value={chosen} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {[...PRESETS].map(([name, { title }]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
        <option value={CUSTOM}>
          {isCustom && !isEditing ? `${labelOf(query.from)} – ${labelOf(query.to)}` : 'Custom…'}
        </option>
      </select>
      {isCustom && !isEditing && (
        <button type="button" class="small" onClick={() => setQuery({ from: null, to: null })}>
          Reset to {PRESETS.get(query.range ?? preset)?.title.toLowerCase() ?? 'now'}
        </button>
      )}
      {isEditing && <CustomRange close={() => setEditing(false)} />}
    </div>
  )
}

function CustomRange({ close }: { readonly close: () => void }) {
  const { query } = address.value
  const [from, setFrom] = useState(fieldOf(query.from ?? new Date(Date.now() - 3_600_000).toISOString()))
  const [to, setTo] = useState(fieldOf(query.to ?? new Date().toISOString()))
  const isValid = readField(from) < readField(to)
  const apply = (event: Event) => {
    event.preventDefault()
    if (!isValid) return
    setQuery({ from: new Date(readField(from)).toISOString(), to: new Date(readField(to)).toISOString() })
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
      <button type="submit" class="primary small" disabled={!isValid}>
        Apply
      </button>
    </form>
  )
}

function labelOf(timestamp: string | undefined): string {
  return dateAndTime(timestamp ?? '').slice(5, 16)
}

function fieldOf(timestamp: string): string {
  return dateAndTime(timestamp).slice(0, 16).replace(' ', 'T')
}

/** Unix milliseconds; the field has no zone, so it is the one of the page. */
function readField(text: string): number {
  return Date.parse(zone.value === 'utc' ? `${text}Z` : text)
}
