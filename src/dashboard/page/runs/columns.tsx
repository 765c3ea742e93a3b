import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { compact, count, dollars, duration } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import type { Directory } from '../data/directory.ts'
import { durationMs, isLive, type RunSummary } from '../data/records.ts'
import { Ago, useNow } from '../parts/time.tsx'
import type { SortColumn } from './filters.ts'

export interface ColumnDef {
  readonly name: string
  readonly title: string
  readonly sort?: SortColumn
  readonly isNumber?: boolean
  readonly cell: (run: RunSummary, directory: Directory) => ComponentChildren
}

/** All columns besides status and agent, which are always shown. */
export const COLUMNS: readonly ColumnDef[] = [
  { name: 'started', title: 'Started', sort: 'started', cell: ({ created_at }) => <Ago at={created_at} /> },
  { name: 'duration', title: 'Duration', sort: 'duration', isNumber: true, cell: (run) => <Took run={run} /> },
  {
    name: 'events',
    title: 'Events',
    sort: 'events',
    isNumber: true,
    cell: ({ event_count }) => (event_count < 0 ? '' : count(event_count)),
  },
  {
    name: 'tokens',
    title: 'Tokens',
    sort: 'tokens',
    isNumber: true,
    cell: ({ usage: { total_tokens: all } }) => (all === 0 ? '' : compact(all)),
  },
  {
    name: 'cost',
    title: 'Cost',
    sort: 'cost',
    isNumber: true,
    cell: ({ cost_usd }) => (cost_usd === 0 ? '' : dollars(cost_usd)),
  },
  { name: 'tags', title: 'Tags', cell: ({ tags }) => <Tags tags={tags} /> },
  { name: 'trigger', title: 'Trigger', cell: ({ trigger_type }) => trigger_type },
  { name: 'session', title: 'Session', cell: ({ session_id }) => session_id && <Session id={session_id} /> },
  {
    name: 'external',
    title: 'External id',
    cell: ({ external_run_id }) => external_run_id && <code>{external_run_id}</code>,
  },
  {
    name: 'error',
    title: 'Error',
    cell: ({ error_message }) => error_message && <span class="error-text">{error_message}</span>,
  },
]

const DEFAULT = ['started', 'duration', 'events', 'tokens', 'cost', 'tags']
const STORED = 'run-columns'

export const shownColumns = signal<readonly string[]>(stored())

export function toggleColumn(name: string): void {
  const isShown = shownColumns.value.includes(name)
  const wanted = isShown ? shownColumns.value.filter((each) => each !== name) : [...shownColumns.value, name]
  shownColumns.value = COLUMNS.map((column) => column.name).filter((each) => wanted.includes(each))
  localStorage.setItem(STORED, shownColumns.value.join())
}

function stored(): readonly string[] {
  const text = globalThis.localStorage?.getItem(STORED)
  return text === null || text === undefined ? DEFAULT : text.split(',').filter((name) => name !== '')
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

function Took({ run }: { readonly run: RunSummary }) {
  return isLive(run) ? <Running run={run} /> : shown(durationMs(run, 0))
}

function Running({ run }: { readonly run: RunSummary }) {
  return shown(durationMs(run, useNow()))
}

function shown(ms: number | null): string {
  return ms === null ? '–' : duration(ms)
}
