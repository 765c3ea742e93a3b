import type { ComponentChildren } from 'preact'
import { shortId, words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import type { PauseLine } from '../data/waiting.ts'
import { Button } from '../parts/controls.tsx'
import { Select } from '../parts/fields.tsx'
import { isFiltered, OUTCOMES, PAUSES } from './filters.ts'

interface PauseFiltersProps {
  /** The pauses whose agents, tools, users and sessions can be chosen. */
  readonly lines: readonly PauseLine[]
  readonly isDecided: boolean
  readonly children?: ComponentChildren
}

/** The filters of the lists of pauses, as the address has them. */
export function PauseFilters({ lines, isDecided, children }: PauseFiltersProps) {
  const { directory } = useSession()
  const filter = PAUSES.value
  const choices = (of: (line: PauseLine) => string | null, chosen: string) =>
    [...new Set([...lines.flatMap((line) => of(line) ?? []), ...(chosen === '' ? [] : [chosen])])].sort()
  const select = (name: 'agent' | 'tool' | 'user' | 'session', of: (line: PauseLine) => string | null) => {
    const options = choices(of, filter[name])
    // A filter with nothing to choose from would only take space.
    if (options.length === 0) return null
    const titleOf = (value: string) => {
      if (name === 'agent') return directory.nameOf(value)
      return name === 'session' ? `session ${shortId(value)}` : value
    }
    return (
      <Select
        label={name.charAt(0).toUpperCase() + name.slice(1)}
        {...PAUSES.field(name)}
        options={[['', `Any ${name}`], ...options.map((value) => [value, titleOf(value)] as const)]}
      />
    )
  }
  return (
    <search class="filters" aria-label="Filter requests">
      {isDecided && (
        <Select
          label="Outcome"
          {...PAUSES.field('outcome')}
          options={[['', 'Decided by people'], ...OUTCOMES.map((name) => [name, words(name)] as const)]}
        />
      )}
      <Select
        label="Kind"
        {...PAUSES.field('kind')}
        options={[
          ['', 'Any kind'],
          ['approval', 'approvals'],
          ['input', 'questions'],
        ]}
      />
      {select('agent', ({ agent_id }) => agent_id)}
      {select('tool', ({ tool }) => tool)}
      {select('user', ({ external_user_id }) => external_user_id)}
      {select('session', ({ session_id }) => session_id)}
      <Select
        label="Order"
        {...PAUSES.field('sort')}
        options={[
          ['newest', 'Newest first'],
          ['oldest', 'Oldest first'],
        ]}
      />
      {isFiltered(filter) && (
        <Button class="quiet small" text="Clear" onClick={() => PAUSES.set({ ...PAUSES.of({}), sort: filter.sort })} />
      )}
      {children}
    </search>
  )
}
