import type { RefObject } from 'preact'
import { words } from '../../../base/format.ts'
import { address, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { isUuid, RUN_STATUSES } from '../data/records.ts'
import { Icon, Menu } from '../parts/controls.tsx'
import { Field, FilterField, Select, useDebounced } from '../parts/fields.tsx'
import { PRESETS } from '../parts/range.tsx'
import { COLUMNS, shownColumns, toggleColumn } from './columns.tsx'
import { isFiltered, type RunFilter } from './filters.ts'

const TRIGGERS = ['manual', 'scheduled', 'webhook', 'sdk']
/** A chip shows the end of a longer value. */
const VALUE_LENGTH_MAX = 24

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
      <FilterField
        icon="search"
        field={search}
        label="Search runs"
        placeholder="Id, external id, tag, error…"
        value={query.q ?? ''}
        onChange={(q) => setQuery({ q })}
      >
        <kbd>/</kbd>
      </FilterField>
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
        label="Started"
        value={query.range ?? ''}
        options={[['', 'Any time'], ...[...PRESETS].map(([name, { title }]) => [name, title] as const)]}
        onChange={(range) => setQuery({ range, from: null, to: null })}
      />
      <MoreFilters trigger={filter.trigger} />
      {EXACT_FIELDS.map(
        ({ name, title }) =>
          filter[name] !== '' && (
            <Chip
              key={name}
              text={`${title}: ${shortened(filter[name])}`}
              onRemove={() => setQuery({ [name]: null })}
            />
          ),
      )}
      {filter.trigger !== '' && (
        <Chip text={`Trigger: ${filter.trigger}`} onRemove={() => setQuery({ trigger: null })} />
      )}
      {query.from !== undefined && <Chip text="Chosen time" onRemove={() => setQuery({ from: null, to: null })} />}
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

interface ExactField {
  readonly name: 'tag' | 'external' | 'session' | 'parent'
  readonly title: string
  readonly isId?: boolean
}

/** Filters for one exact value. */
const EXACT_FIELDS: readonly ExactField[] = [
  { name: 'external', title: 'External id' },
  { name: 'session', title: 'Session', isId: true },
  { name: 'parent', title: 'Parent run', isId: true },
  { name: 'tag', title: 'Tag' },
]

function MoreFilters({ trigger }: { readonly trigger: string }) {
  return (
    <Menu label="More filters" icon="filter" title="More filters">
      <Field label="Trigger">
        <Select
          label="Trigger"
          value={trigger}
          options={[['', 'Any trigger'], ...TRIGGERS.map((name) => [name, name] as const)]}
          onChange={(to) => setQuery({ trigger: to })}
        />
      </Field>
      {EXACT_FIELDS.map((field) => (
        <ExactFilter key={field.name} {...field} />
      ))}
    </Menu>
  )
}

function ExactFilter({ name, title, isId = false }: ExactField) {
  const value = address.value.query[name] ?? ''
  const [text, setText] = useDebounced(value, (to) => setQuery({ [name]: to }))
  const isWrong = isId && value !== '' && !isUuid(value)
  return (
    <Field label={title} problem={isWrong ? 'Not an id: it has 32 hexadecimal digits.' : undefined}>
      <input
        name={name}
        value={text}
        aria-invalid={isWrong}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
    </Field>
  )
}

function shortened(value: string): string {
  return value.length > VALUE_LENGTH_MAX ? `…${value.slice(-8)}` : value
}

function Chip({ text, onRemove }: { readonly text: string; readonly onRemove: () => void }) {
  return (
    <span class="chip">
      {text}
      <button type="button" class="icon-only" aria-label={`Remove the filter ${text}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </span>
  )
}

function ColumnMenu() {
  return (
    <Menu label="Columns" icon="columns" title="Columns">
      {COLUMNS.map(({ name, title }) => (
        <label key={name} class="check">
          <input type="checkbox" checked={shownColumns.value.includes(name)} onChange={() => toggleColumn(name)} />
          {title}
        </label>
      ))}
    </Menu>
  )
}
