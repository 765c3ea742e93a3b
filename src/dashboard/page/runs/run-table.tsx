import { useComputed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { count, duration } from '../../../base/format.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { activeMs, isLive, type RunSummary, waitedMs } from '../data/records.ts'
import { SessionLink, UserLink } from '../parts/links.tsx'
import { Status } from '../parts/states.tsx'
import { Table, USAGE } from '../parts/table.tsx'
import { Ago, useNow } from '../parts/time.tsx'
import type { RunDetails, RunTexts } from './details.ts'
import { isSortable, RUNS, type RunFilter } from './filters.ts'
import type { RunChoice } from './run-choice.ts'
import { FoundRow } from './search-found.tsx'
import type { Places } from './search-places.ts'

/** Details that are read in addition to the list. */
interface Details {
  readonly texts: RunDetails<RunTexts>
  readonly models: RunDetails<string>
}

export interface Column {
  /** Those that the list can be sorted by have the name of that order. */
  readonly name: string
  readonly title: string
  readonly isNumber?: boolean
  readonly cell: (run: RunSummary, details: Details) => ComponentChildren
}

/** Those that can be chosen; the status and the agent are always shown. */
export const COLUMNS: readonly Column[] = [
  { name: 'started', title: 'Started', cell: ({ created_at }) => <Ago at={created_at} /> },
  { name: 'duration', title: 'Duration', isNumber: true, cell: (run) => <Took run={run} /> },
  { name: 'error', title: 'Error', cell: (run) => <Line class="error-text" text={run.error_message} /> },
  { name: 'input', title: 'Input', cell: ({ run_id }, { texts }) => <Detail read={() => texts.of(run_id)?.input} /> },
  {
    name: 'output',
    title: 'Output',
    cell: ({ run_id }, { texts }) => <Detail read={() => texts.of(run_id)?.output} />,
  },
  { name: 'model', title: 'Model', cell: ({ run_id }, { models }) => <Detail read={() => models.of(run_id)} /> },
  {
    name: 'events',
    title: 'Events',
    isNumber: true,
    cell: (run) => (run.event_count < 0 ? '' : count(run.event_count)),
  },
  { name: 'tokens', ...USAGE[0] },
  { name: 'cost', ...USAGE[1] },
  { name: 'user', title: 'User', cell: ({ external_user_id: id }) => id && <UserLink id={id} /> },
  { name: 'session', title: 'Session', cell: ({ session_id: id }) => id && <SessionLink id={id} /> },
  { name: 'tags', title: 'Tags', cell: ({ tags }) => <Tags tags={tags} /> },
  { name: 'trigger', title: 'Trigger', cell: ({ trigger_type }) => trigger_type },
  { name: 'version', title: 'Version', isNumber: true, cell: (run) => <Version run={run} /> },
  { name: 'external', title: 'External id', cell: ({ external_run_id: id }) => id && <code>{id}</code> },
]

/** Shorter waits are not shown. */
const WAIT_SHOWN_MS = 1_000

interface RunTableProps {
  readonly runs: readonly RunSummary[]
  readonly columns: readonly Column[]
  readonly filter: RunFilter
  readonly details: Details
  readonly choice: RunChoice
  readonly places: Places
  readonly onOpen: (runId: string) => void
}

/** Runs as a table with the chosen columns. The name of a run's agent is the link to the run, and the row follows it. */
export function RunTable({ runs, columns, filter, details, choice, places, onOpen }: RunTableProps) {
  const headOf = (name: string) => ({ class: `col-${name}`, ...sortOf(name, filter) })
  return (
    <Table
      box="table-scroll"
      class="run-list"
      rows={runs}
      keyOf={({ run_id }) => run_id}
      keptFor={[columns.map(({ name }) => name).join(), details]}
      attributes={({ run_id }) => ({ 'data-run': run_id })}
      link={({ run_id, agent_id }) => ({
        href: hrefOfRun(run_id),
        onClick: () => onOpen(run_id),
        children: <AgentName id={agent_id} />,
      })}
      below={({ run_id }, width) => {
        const place = places.byRun.value.get(run_id)
        return (
          place && <FoundRow key={`${run_id} found`} runId={run_id} place={place} columns={width} onOpen={onOpen} />
        )
      }}
      columns={[
        {
          title: <ChooseAll runs={runs} choice={choice} />,
          class: 'col-choose',
          cell: ({ run_id }) => <Choose runId={run_id} choice={choice} />,
        },
        { title: 'Status', ...headOf('status'), cell: ({ status }) => <Status name={status} /> },
        {
          title: 'Agent',
          ...headOf('agent'),
          hasLink: true,
          cell: ({ run_id }) => <small>…{run_id.slice(-8)}</small>,
        },
        ...columns.map(({ name, title, isNumber, cell }) => ({
          ...{ title, isNumber, ...headOf(name) },
          cell: (run: RunSummary) => cell(run, details),
        })),
      ]}
    />
  )
}

/** It alone is drawn again when the agents are known. */
function AgentName({ id }: { readonly id: string }) {
  return <>{useSession().directory.nameOf(id)}</>
}

function ChooseAll({ runs, choice }: Pick<RunTableProps, 'runs' | 'choice'>) {
  const isAll = runs.every(({ run_id }) => choice.has(run_id))
  return (
    <label class="choose">
      <input
        type="checkbox"
        aria-label="Choose all runs that are listed"
        checked={isAll}
        onChange={() => (isAll ? choice.clear() : choice.set(runs.map(({ run_id }) => run_id)))}
      />
    </label>
  )
}

function Choose({ runId, choice }: { readonly runId: string; readonly choice: RunChoice }) {
  const isChosen = useComputed(() => choice.has(runId))
  return (
    <label class="choose">
      <input
        type="checkbox"
        aria-label={`Choose run …${runId.slice(-8)}`}
        checked={isChosen.value}
        onChange={() => choice.toggle(runId)}
      />
    </label>
  )
}

/** The first click sorts descending, the second ascending, the third restores the order of time. */
function sortOf(name: string, { sort, isAscending, text }: RunFilter) {
  if (!isSortable(name) || text !== '') return {}
  const isSorted = sort === name
  const choose = () => {
    const next = !isSorted ? name : isAscending ? '' : `${name}.asc`
    const isDefault = name === 'started' && next === name
    RUNS.set({ sort: isDefault ? '' : next })
  }
  const direction = isAscending ? ('ascending' as const) : ('descending' as const)
  return { sort: { choose, direction: isSorted ? direction : undefined } }
}

/** On one line, so that all rows are equally high. */
function Line({ text, class: className = '' }: { readonly text: string | null | undefined; readonly class?: string }) {
  return (
    text && (
      <div class={`line ${className}`} title={text}>
        {text}
      </div>
    )
  )
}

/** A cell with a detail; it alone is drawn again when the detail arrives. */
function Detail({ read }: { readonly read: () => string | undefined }) {
  return <Line text={useComputed(read).value} />
}

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

function Version({ run: { agent_id, agent_version } }: { readonly run: RunSummary }) {
  return <a href={hrefOf('agents', [agent_id], { tab: 'versions', version: String(agent_version) })}>{agent_version}</a>
}

interface TookProps {
  readonly run: Pick<
    RunSummary,
    'status' | 'active_ms' | 'waiting_ms' | 'waiting_since' | 'started_at' | 'completed_at'
  >
  /** Follows the duration of a run that has not ended. */
  readonly soFar?: string | undefined
}

/** How long a run worked, or has worked so far, and how long it waited for people. */
export function Took({ run, soFar = '' }: TookProps) {
  return isLive(run) ? <Running run={run} soFar={soFar} /> : <Times run={run} now={0} />
}

function Running({ run, soFar }: TookProps) {
  return <Times run={run} now={useNow()} soFar={soFar} />
}

function Times({ run, now, soFar = '' }: TookProps & { readonly now: number }) {
  const ms = activeMs(run, now)
  const waited = waitedMs(run, now)
  return (
    <>
      {duration(ms) + (ms === null ? '' : soFar)}
      {waited >= WAIT_SHOWN_MS && (
        <span class="hint" title="Time in which the run waited for people">
          {' '}
          + {duration(waited)} waiting
        </span>
      )}
    </>
  )
}
