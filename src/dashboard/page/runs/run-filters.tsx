import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { RUN_STATUSES } from '../../../runs/state.ts'
import { address, setQuery } from '../app/router.ts'
import { useSession } from '../app/session.ts'
import { Select } from '../parts/field.tsx'
import { words } from '../parts/format.ts'
import { Icon } from '../parts/icons.tsx'
import { PRESETS } from '../parts/range.ts'
import { SearchField } from '../parts/search-field.tsx'
import { COLUMNS, shownColumns, toggleColumn } from './columns.tsx'
import { isFiltered, type RunFilter } from './filters.ts'

const TRIGGERS = ['manual', 'scheduled', 'webhook', 'sdk']
const TYPING_PAUSE_MS = 300
/** Filters that have no control of their own: they come from links. */
const LINKED = ['tag', 'external', 'session', 'parent', 'from'] as const

interface RunFiltersProps {
  readonly filter: RunFilter
  readonly search: RefObject<HTMLInputElement | null>
}

/** The filters of the list of runs, as the address has them. */
export function RunFilters({ filter, search }: RunFiltersProps) {
  const { directory } = useSession()
  const { query } = address.value
  const agents = directory.agents.value
  const known = agents.some(({ agent_id }) => agent_id === filter.agent) || filter.agent === ''
  return (
    <div class="filters" role="search" aria-label="Filter runs">
      <RunSearch field={search} />
      <Select
        label="Status"
        value={filter.status}
        options={[['', 'Any status'], ...RUN_STATUSES.map((name) => [name, words(name)] as const)]}
        onChange={(status) => setQuery({ status })}
      />
      <Select
        label="Agent"
        value={filter.agent}
        options={[
          ['', 'Any agent'],
          ...(known ? [] : [[filter.agent, directory.nameOf(filter.agent)] as const]),
          ...agents.map(({ agent_id }) => [agent_id, directory.nameOf(agent_id)] as const),
        ]}
        onChange={(agent) => setQuery({ agent })}
      />
      <Select
        label="Trigger"
        value={filter.trigger}
        options={[['', 'Any trigger'], ...TRIGGERS.map((name) => [name, name] as const)]}
        onChange={(trigger) => setQuery({ trigger })}
      />
      <Select
        label="Started"
        value={query.range ?? ''}
        options={[['', 'Any time'], ...Object.entries(PRESETS).map(([name, { title }]) => [name, title] as const)]}
        onChange={(range) => setQuery({ range, from: null, to: null })}
      />
      {LINKED.map((name) => query[name] !== undefined && <Chip key={name} name={name} value={query[name]} />)}
      {isFiltered(filter) && (
        <button type="button" class="quiet small" onClick={clearFilters}>
          Clear
        </button>
      )}
      <ColumnMenu />
    </div>
  )
}

function clearFilters(): void {
  const { sort } = address.value.query
  setQuery({ ...Object.fromEntries(Object.keys(address.value.query).map((name) => [name, null])), sort: sort ?? null })
}

/** Free text over ids, external ids, tags, errors and agents. */
function RunSearch({ field }: { readonly field: RefObject<HTMLInputElement | null> }) {
  const given = address.value.query.q ?? ''
  const [text, setText] = useState(given)
  useEffect(() => setText(given), [given])
  useEffect(() => {
    if (text === given) return
    const timer = setTimeout(() => setQuery({ q: text.trim() }), TYPING_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text, given])
  return (
    <SearchField
      icon="search"
      field={field}
      label="Search runs"
      placeholder="Id, external id, tag, error…"
      value={text}
      onType={setText}
      spellcheck={false}
      autocomplete="off"
    >
      <kbd>/</kbd>
    </SearchField>
  )
}

function Chip({ name, value }: { readonly name: string; readonly value: string }) {
  const remove = () => setQuery(name === 'from' ? { from: null, to: null } : { [name]: null })
  return (
    <span class="chip">
      {name === 'from' ? 'chosen time' : `${name}: ${value.length > 24 ? `…${value.slice(-8)}` : value}`}
      <button type="button" class="icon-only" aria-label={`Remove the filter ${name}`} onClick={remove}>
        <Icon name="close" />
      </button>
    </span>
  )
}

function ColumnMenu() {
  return (
    <details class="menu">
      <summary class="button small" aria-label="Columns">
        <Icon name="columns" />
        <span>Columns</span>
      </summary>
      <fieldset class="menu-body">
        <legend>Columns</legend>
        {COLUMNS.map(({ name, title }) => (
          <label key={name} class="check">
            <input type="checkbox" checked={shownColumns.value.includes(name)} onChange={() => toggleColumn(name)} />
            {title}
          </label>
        ))}
      </fieldset>
    </details>
  )
}
