import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { count, counted, dollars, percent } from '../../../base/format.ts'
import { address, hrefOf, setQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import type { Agent } from '../data/records.ts'
import { SearchField } from '../parts/fields.tsx'
import { noAgentsYet } from '../parts/hints.tsx'
import { useMovingRange } from '../parts/range.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { Problem, Skeleton, Status } from '../parts/states.tsx'
import { Ago } from '../parts/time.tsx'
import { type AgentFigures, readAgentFigures } from './agent-figures.ts'
import { ArchivedAgents } from './archived-agents.tsx'

/** The range of the figures: long enough for agents that run once a day. */
const RANGE = '7d'
const IN_RANGE = 'last 7 days'
const REFRESH_MS = 60_000

interface Row {
  readonly agent: Agent
  /** Undefined if the agent has no runs in the range. */
  readonly figures: AgentFigures | undefined
}

interface Column {
  readonly name: string
  readonly title: string
  readonly isNumber?: boolean
  /** Larger ones come first. */
  readonly order: (row: Row) => number
  readonly cell: (row: Row) => ComponentChildren
}

const COLUMNS: readonly Column[] = [
  {
    name: 'last',
    title: 'Last run',
    order: ({ figures }) => figures?.lastMs ?? 0,
    cell: ({ figures }) =>
      figures === undefined ? <span class="hint">–</span> : <Ago at={new Date(figures.lastMs).toISOString()} />,
  },
  {
    name: 'runs',
    title: 'Runs',
    order: ({ figures }) => figures?.runs ?? 0,
    cell: ({ figures }) => (figures === undefined ? <span class="hint">none</span> : <Activity figures={figures} />),
  },
  {
    name: 'failed',
    title: 'Failure rate',
    isNumber: true,
    order: ({ figures }) => (figures === undefined || figures.ended === 0 ? -1 : figures.failed / figures.ended),
    cell: ({ figures }) => {
      if (figures === undefined || figures.ended === 0) return <span class="hint">–</span>
      return <span class={figures.failed > 0 ? 'bad-text' : ''}>{percent(figures.failed / figures.ended)}</span>
    },
  },
  {
    name: 'cost',
    title: 'Cost',
    isNumber: true,
    order: ({ figures }) => figures?.cost ?? 0,
    cell: ({ figures }) => (figures?.cost ? dollars(figures.cost) : <span class="hint">–</span>),
  },
]

/** The agents of the workspace with their recent activity, the most recently active first. */
export function AgentList({ selected }: { readonly selected: string | null }) {
  const { directory, queries } = useSession()
  const [text, setText] = useState('')
  const range = useMovingRange({ range: RANGE })
  const figures = useLoad((signal) => readAgentFigures(queries, range, signal), [range.fromMs, range.toMs], {
    subject: RANGE,
    everyMs: REFRESH_MS,
  })
  const agents = directory.agents.value
  if (!directory.isLoaded.value) return <Skeleton lines={6} />
  if (agents.length === 0)
    return (
      <div class="list-pane">
        {noAgentsYet()}
        <ArchivedAgents />
      </div>
    )
  const sorted = COLUMNS.find(({ name }) => name === address.value.query.sort) ?? (COLUMNS[0] as Column)
  const wanted = text.trim().toLowerCase()
  const rows = agents
    .filter(({ name, agent_id, model }) =>
      [name, agent_id, model ?? ''].some((value) => value.toLowerCase().includes(wanted)),
    )
    .map((agent) => ({ agent, figures: figures.data?.get(agent.agent_id) }))
    .sort((a, b) => sorted.order(b) - sorted.order(a))
  return (
    <div class="list-pane">
      <SearchField icon="search" label="Search agents" placeholder="Name, model, id" value={text} onType={setText} />
      {figures.problem !== undefined && <Problem problem={figures.problem} />}
      <div class="panel table-scroll agent-table">
        <table class="run-list">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              {COLUMNS.map((column) => (
                <Head key={column.name} column={column} isSorted={column === sorted} />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <AgentRow key={row.agent.agent_id} row={row} selected={selected} isKnown={figures.data !== undefined} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">
        {counted(rows.length, 'agent')}; figures of the {IN_RANGE}
        {directory.isPartial.value && '; GET /api/v1/agents lists more'}
      </p>
      <ArchivedAgents />
    </div>
  )
}

function Head({
  column: { name, title, isNumber },
  isSorted,
}: {
  readonly column: Column
  readonly isSorted: boolean
}) {
  const sort = () => setQuery({ sort: name === COLUMNS[0]?.name ? null : name })
  return (
    <th scope="col" class={`col-${name} ${isNumber ? 'number' : ''}`} aria-sort={isSorted ? 'descending' : undefined}>
      <button type="button" class="sort" onClick={sort}>
        {title}
        <span aria-hidden="true">{isSorted ? ' ↓' : ''}</span>
      </button>
    </th>
  )
}

interface RowProps {
  readonly row: Row
  readonly selected: string | null
  /** Whether the figures have been read. */
  readonly isKnown: boolean
}

function AgentRow({ row, selected, isKnown }: RowProps) {
  const { directory } = useSession()
  const { agent_id: id, runtime_type, model, status, version } = row.agent
  const { sort } = address.value.query
  return (
    <tr aria-current={id === selected ? 'true' : undefined}>
      <td class="agent-name">
        <a class="row-link" href={hrefOf('agents', [id], { sort })} aria-current={id === selected ? 'true' : undefined}>
          {directory.nameOf(id)}
        </a>
        {status === 'paused' && <Status name="paused" />}
        <p class="hint">
          {runtime_type === 'hosted' ? (model ?? 'hosted') : 'external'} · version {version}
        </p>
      </td>
      {COLUMNS.map(({ name, isNumber, cell }) => (
        <td key={name} class={`col-${name} ${isNumber ? 'number' : ''}`}>
          {isKnown && cell(row)}
        </td>
      ))}
    </tr>
  )
}

function Activity({ figures: { runs, failed, counts, failures } }: { readonly figures: AgentFigures }) {
  const label = `${counted(runs, 'run')} in the ${IN_RANGE}, ${count(failed)} failed`
  return (
    <span class="activity" title={label}>
      <Sparkline label={label} values={counts} bad={failures} /> {count(runs)}
    </span>
  )
}
