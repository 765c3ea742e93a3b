import { useState } from 'preact/hooks'
import { count, counted, dollars, percent } from '../../../base/format.ts'
import { addressState, oneOf } from '../context/address-state.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import type { Agent } from '../data/records.ts'
import { SearchField } from '../parts/fields.tsx'
import { noAgentsYet } from '../parts/hints.tsx'
import { useMovingRange } from '../parts/range.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { Problem, Status } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { type RunFigures, readRunFigures } from '../runs/run-figures.ts'
import { ArchivedAgents } from './archived-agents.tsx'

/** The range of the figures: long enough for agents that run once a day. */
const RANGE = '7d'
const IN_RANGE = 'last 7 days'
const REFRESH_MS = 60_000

interface Row {
  readonly agent: Agent
  /** Undefined if the agent has no runs in the range. */
  readonly figures: RunFigures | undefined
}

interface FigureColumn extends Column<Row> {
  readonly name: string
  /** Larger ones come first. */
  readonly order: (row: Row) => number
}

const COLUMNS: readonly FigureColumn[] = [
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

export const AGENT_LIST = addressState({ sort: oneOf(COLUMNS.map(({ name }) => name)) })

/** The agents of the workspace with their recent activity, the most recently active first. */
export function AgentList({ selected }: { readonly selected: string | null }) {
  const { directory, queries } = useSession()
  const [text, setText] = useState('')
  const range = useMovingRange({ range: RANGE })
  const figures = useLoad((signal) => readRunFigures(queries, 'agent', range, signal), [range.fromMs, range.toMs], {
    subject: RANGE,
    everyMs: REFRESH_MS,
  })
  const agents = directory.agents.value
  const byId = new Map(figures.data?.map((each) => [each.id, each]))
  if (agents.length === 0)
    return (
      <div class="list-pane">
        {noAgentsYet()}
        <ArchivedAgents />
      </div>
    )
  const { sort } = AGENT_LIST.value
  const sorted = COLUMNS.find(({ name }) => name === sort) ?? (COLUMNS[0] as FigureColumn)
  const wanted = text.trim().toLowerCase()
  const rows = agents
    .filter(({ name, agent_id, model }) =>
      [name, agent_id, model ?? ''].some((value) => value.toLowerCase().includes(wanted)),
    )
    .map((agent) => ({ agent, figures: byId.get(agent.agent_id) }))
    .sort((a, b) => sorted.order(b) - sorted.order(a))
  return (
    <div class="list-pane">
      <SearchField icon="search" label="Search agents" placeholder="Name, model, id" value={text} onType={setText} />
      {figures.problem !== null && <Problem problem={figures.problem} retry={figures.reload} />}
      <Table
        box="panel table-scroll resource-table agent-table"
        rows={rows}
        keyOf={({ agent }) => agent.agent_id}
        link={({ agent: { agent_id: id } }) => ({
          href: hrefOf('agents', [id], AGENT_LIST.write({ sort })),
          children: directory.nameOf(id),
        })}
        isSelected={({ agent }) => agent.agent_id === selected}
        columns={[
          { title: 'Agent', class: 'resource-name', cell: About },
          ...COLUMNS.map((column) => ({
            ...column,
            class: `col-${column.name}`,
            // Before the figures have been read, it is not known that there are none.
            cell: (row: Row) => figures.data !== undefined && column.cell(row),
            sort: {
              direction: column === sorted ? ('descending' as const) : undefined,
              choose: () => AGENT_LIST.set({ sort: column.name }),
            },
          })),
        ]}
      />
      <p class="hint">
        {counted(rows.length, 'agent')}; figures of the {IN_RANGE}
        {directory.isPartial.value && '; GET /api/v1/agents lists more'}
      </p>
      <ArchivedAgents />
    </div>
  )
}

function About({ agent: { runtime_type, model, status, version } }: Row) {
  return (
    <>
      {status === 'paused' && <Status name="paused" />}
      <p class="hint">
        {runtime_type === 'hosted' ? (model ?? 'hosted') : 'external'} · version {version}
      </p>
    </>
  )
}

function Activity({ figures: { runs, failed, counts, failures } }: { readonly figures: RunFigures }) {
  const label = `${counted(runs, 'run')} in the ${IN_RANGE}, ${count(failed)} failed`
  return (
    <span class="activity" title={label}>
      <Sparkline label={label} values={counts} bad={failures} /> {count(runs)}
    </span>
  )
}
