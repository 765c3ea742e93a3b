import type { RefObject } from 'preact'
import { words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import { RUN_STATUSES } from '../data/records.ts'
import { Button, Menu } from '../parts/controls.tsx'
import { CheckField, FilterField, Select, SelectField, TextField, useDebounced } from '../parts/fields.tsx'
import { PRESETS } from '../parts/range.tsx'
import { Status } from '../parts/states.tsx'
import { chosenColumns, replaceColumn, toggleColumn } from './columns.ts'
import { isFiltered, problemOf, RUNS, type RunFilter, statusesOf } from './filters.ts'
import { COLUMNS } from './run-table.tsx'
import { ScoreMenu } from './score-columns.tsx'

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
  const { from } = RUNS.value
  const known = directory.agents.value.some(({ agent_id }) => agent_id === filter.agent) || filter.agent === ''
  return (
    <search class="filters" aria-label="Filter runs">
      <FilterField
        icon="search"
        field={search}
        label="Search runs"
        placeholder="Text, ids, tags, errors…"
        {...RUNS.field('q')}
      >
        <kbd>/</kbd>
      </FilterField>
      <StatusMenu status={filter.status} />
      <Select
        label="Agent"
        value={filter.agent}
        options={[
          ['', 'Any agent'],
          ...(known ? [] : [[filter.agent, directory.nameOf(filter.agent)] as const]),
          ...directory.choices.value,
        ]}
        set={(agent) => RUNS.set({ agent })}
      />
      <Select
        label="Started"
        value={RUNS.value.range}
        options={[['', 'Any time'], ...[...PRESETS].map(([name, { title }]) => [name, title] as const)]}
        set={(range) => RUNS.set({ range, from: '', to: '' })}
      />
      <MoreFilters trigger={filter.trigger} />
      {CHIPS.filter(([name]) => filter[name] !== '').map(([name, title]) => (
        <Chip key={name} text={`${title}: ${shortened(filter[name])}`} onRemove={() => RUNS.set({ [name]: '' })} />
      ))}
      {from !== '' && <Chip text="Chosen time" onRemove={() => RUNS.set({ from: '', to: '' })} />}
      {isFiltered(filter) && <Button class="quiet small" text="Clear" onClick={clearFilters} />}
      <ColumnMenu />
    </search>
  )
}

function clearFilters(): void {
  const { sort, cols } = RUNS.value
  RUNS.set({ ...RUNS.of({}), sort, cols })
}

/** Any number of statuses. */
function StatusMenu({ status }: { readonly status: string }) {
  const chosen = statusesOf(status)
  const label =
    chosen.length === 0 ? 'Any status' : chosen.length > 2 ? `${chosen.length} statuses` : chosen.map(words).join(', ')
  const toggle = (toggled: string) =>
    RUNS.set({ status: RUN_STATUSES.filter((name) => chosen.includes(name) !== (name === toggled)).join() })
  return (
    <div class={`statuses ${chosen.length === 0 ? '' : 'is-set'}`}>
      <Menu label={label} icon="fold" title="Statuses">
        {RUN_STATUSES.map((name) => (
          <CheckField key={name} name={name} value={chosen.includes(name)} set={() => toggle(name)}>
            <Status name={name} />
          </CheckField>
        ))}
      </Menu>
    </div>
  )
}

/** Filters for one exact value, which have a field each. */
const FIELDS = [
  ['user', 'User'],
  ['session', 'Session'],
  ['version', 'Agent version'],
  ['external', 'External id'],
  ['parent', 'Parent run'],
  ['tag', 'Tag'],
] as const
const CHIPS = [...FIELDS, ['trigger', 'Trigger']] as const

function MoreFilters({ trigger }: { readonly trigger: string }) {
  return (
    <Menu label="More filters" icon="filter" title="More filters">
      <SelectField
        label="Trigger"
        value={trigger}
        set={(to) => RUNS.set({ trigger: to })}
        options={[['', 'Any trigger'], ...TRIGGERS.map((name) => [name, name] as const)]}
      />
      {FIELDS.map(([name, title]) => (
        <ExactFilter key={name} name={name} title={title} />
      ))}
    </Menu>
  )
}

function ExactFilter({ name, title }: { readonly name: (typeof FIELDS)[number][0]; readonly title: string }) {
  const { value, set } = RUNS.field(name)
  const [text, setText] = useDebounced(value, set)
  return (
    <TextField
      label={title}
      problem={problemOf(name, value)}
      name={name}
      spellcheck={false}
      value={text}
      set={setText}
    />
  )
}

function shortened(value: string): string {
  return value.length > VALUE_LENGTH_MAX ? `…${value.slice(-8)}` : value
}

function Chip({ text, onRemove }: { readonly text: string; readonly onRemove: () => void }) {
  return (
    <span class="chip">
      {text}
      <Button icon="close" label={`Remove the filter ${text}`} onClick={onRemove} />
    </span>
  )
}

function ColumnMenu() {
  const chosen = chosenColumns()
  return (
    <Menu label="Columns" icon="columns" title="Columns">
      {COLUMNS.map(({ name, title }) => (
        <CheckField key={name} value={chosen.includes(name)} set={() => toggleColumn(name)}>
          {title}
        </CheckField>
      ))}
      <ScoreMenu chosen={chosen} replace={replaceColumn} />
    </Menu>
  )
}
