import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { compact, count, dollars, duration } from '../../../base/format.ts'
import { hrefOf, hrefOfRun, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { durationMs, isLive, type RunSummary } from '../data/records.ts'
import { Status } from '../parts/states.tsx'
import { Ago, useNow } from '../parts/time.tsx'
import { isSortable, type RunFilter } from './filters.ts'

interface Column {
  /** Those that the list can be sorted by have the name of that order. */
  readonly name: string
  readonly title: string
  readonly isNumber?: boolean
  readonly cell: (run: RunSummary) => ComponentChildren
}

/** All columns besides status and agent, which are always shown. */
export const COLUMNS: readonly Column[] = [
  { name: 'started', title: 'Started', cell: ({ created_at }) => <Ago at={created_at} /> },
  { name: 'duration', title: 'Duration', isNumber: true, cell: (run) => <Took run={run} /> },
  {
    name: 'events',
    title: 'Events',
    isNumber: true,
    cell: (run) => (run.event_count < 0 ? '' : count(run.event_count)),
  },
  {
    name: 'tokens',
    title: 'Tokens',
    isNumber: true,
    cell: ({ usage }) => usage.total_tokens > 0 && compact(usage.total_tokens),
  },
  { name: 'cost', title: 'Cost', isNumber: true, cell: ({ cost_usd }) => cost_usd > 0 && dollars(cost_usd) },
  { name: 'tags', title: 'Tags', cell: ({ tags }) => <Tags tags={tags} /> },
  { name: 'trigger', title: 'Trigger', cell: ({ trigger_type }) => trigger_type },
  { name: 'session', title: 'Session', cell: ({ session_id: id }) => id && <Session id={id} /> },
  { name: 'external', title: 'External id', cell: ({ external_run_id: id }) => id && <code>{id}</code> },
  { name: 'error', title: 'Error', cell: (run) => <span class="error-text">{run.error_message}</span> },
]

const DEFAULT = ['started', 'duration', 'events', 'tokens', 'cost', 'tags']
const STORED = 'run-columns'

export const shownColumns = signal(globalThis.localStorage?.getItem(STORED)?.split(',') ?? DEFAULT)

export function toggleColumn(toggled: string): void {
  const wasShown = new Set(shownColumns.value)
  const names = COLUMNS.map(({ name }) => name)
  shownColumns.value = names.filter((name) => wasShown.has(name) !== (name === toggled))
  localStorage.setItem(STORED, shownColumns.value.join())
}

interface RunTableProps {
  readonly runs: readonly RunSummary[]
  readonly filter: RunFilter
  readonly onOpen: (runId: string) => void
}

/** Runs as a table with the chosen columns. The name of a run's agent is the link to the run, and the row follows it. */
export function RunTable({ runs, filter, onOpen }: RunTableProps) {
  const columns = COLUMNS.filter(({ name }) => shownColumns.value.includes(name))
  return (
    <div class="table-scroll">
      <table class="run-list">
        <thead>
          <tr>
            <Head name="status" title="Status" filter={filter} />
            <Head name="agent" title="Agent" filter={filter} />
            {columns.map(({ name, title, isNumber }) => (
              <Head key={name} name={name} title={title} isNumber={isNumber} filter={filter} />
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow key={run.run_id} run={run} columns={columns} onOpen={onOpen} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface HeadProps extends Pick<Column, 'name' | 'title' | 'isNumber'> {
  readonly filter: RunFilter
}

function Head({ name, title, isNumber, filter }: HeadProps) {
  const className = `col-${name} ${isNumber ? 'number' : ''}`
  if (!isSortable(name)) {
    return (
      <th scope="col" class={className}>
        {title}
      </th>
    )
  }
  const isSorted = filter.sort === name
  const isDefault = name === 'started'
  // The first click sorts descending, the second ascending, the third restores the order of time.
  const choose = () => {
    const next = !isSorted ? name : filter.isAscending ? null : `${name}.asc`
    setQuery({ sort: isDefault && next === name ? null : next })
  }
  const direction = filter.isAscending ? 'ascending' : 'descending'
  return (
    <th scope="col" class={className} aria-sort={isSorted ? direction : undefined}>
      <button type="button" class="sort" onClick={choose}>
        {title}
        <span aria-hidden="true">{isSorted ? (filter.isAscending ? ' ↑' : ' ↓') : ''}</span>
      </button>
    </th>
  )
}

interface RunRowProps {
  readonly run: RunSummary
  readonly columns: readonly Column[]
  readonly onOpen: (runId: string) => void
}

function RunRow({ run, columns, onOpen }: RunRowProps) {
  const { directory } = useSession()
  return (
    <tr data-run={run.run_id}>
      <td class="col-status">
        <Status name={run.status} />
      </td>
      <td class="col-agent">
        <a class="row-link" href={hrefOfRun(run.run_id)} onClick={() => onOpen(run.run_id)}>
          {directory.nameOf(run.agent_id)}
        </a>
        <small>…{run.run_id.slice(-8)}</small>
      </td>
      {columns.map(({ name, isNumber, cell }) => (
        <td key={name} class={`col-${name} ${isNumber ? 'number' : ''}`}>
          {cell(run)}
        </td>
      ))}
    </tr>
  )
}

/** On one line, so that all rows are equally high. */
function Tags({ tags }: { readonly tags: readonly string[] }) {
  return (
    <div class="tag-line" title={tags.join(', ')}>
      {tags.map((tag) => (
        <Tag key={tag} tag={tag} />
      ))}
    </div>
  )
}

export function Tag({ tag }: { readonly tag: string }) {
  return (
    <a class="tag" href={hrefOf('runs', [], { tag })} title={`Runs with the tag ${tag}`}>
      {tag}
    </a>
  )
}

function Session({ id }: { readonly id: string }) {
  return (
    <a class="mono" href={hrefOf('sessions', [id])}>
      …{id.slice(-8)}
    </a>
  )
}

interface TookProps {
  readonly run: Pick<RunSummary, 'status' | 'duration_ms' | 'started_at' | 'completed_at'>
  /** Follows the duration of a run that has not ended. */
  readonly soFar?: string
}

/** How long a run took, or has taken so far. */
export function Took({ run, soFar = '' }: TookProps) {
  return isLive(run) ? <Running run={run} soFar={soFar} /> : duration(durationMs(run, 0))
}

function Running({ run, soFar }: TookProps) {
  const ms = durationMs(run, useNow())
  return duration(ms) + (ms === null ? '' : soFar)
}
