import { compact, count, dollars, duration, percent } from '../../../base/format.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { linkedRange } from '../parts/range.tsx'
import { Skeleton } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { AGENTS_SHOWN, type AgentFigures, type CallList, TIME } from './metrics.ts'

/** The busiest agents of the range. */
export function AgentTable({ agents }: { readonly agents: readonly AgentFigures[] }) {
  const { directory } = useSession()
  const range = linkedRange(TIME.value)
  return (
    <FigureTable
      title="Agents"
      rows={agents.slice(0, AGENTS_SHOWN)}
      none="No runs in this range."
      head="Agent"
      name={({ agentId }) => directory.nameOf(agentId)}
      href={({ agentId }) => hrefOf('runs', [], { agent: agentId, ...range })}
      size={({ runs }) => runs}
      figures={[
        { title: 'Runs', cell: ({ runs }) => count(runs) },
        { title: 'Failed', cell: ({ failed, ended }) => rate(failed, ended) },
        { title: 'p95', cell: ({ p95 }) => duration(p95) },
        { title: 'Cost', cell: ({ cost }) => (cost === 0 ? '–' : dollars(cost)) },
      ]}
    />
  )
}

/** Models by cost. */
export function ModelTable({ models }: { readonly models: CallList | undefined }) {
  return (
    <FigureTable
      title="Models"
      share={models?.share}
      rows={models?.calls}
      none="No model calls in this range."
      head="Model"
      name={({ name }) => name}
      size={({ cost, calls }) => cost || calls / 1e9}
      figures={[
        { title: 'Calls', cell: ({ calls }) => compact(calls) },
        { title: 'p95', cell: ({ p95 }) => duration(p95) },
        { title: 'Tokens', cell: ({ tokens }) => compact(tokens) },
        // Calls that report no tokens are not free.
        { title: 'Cost', cell: ({ tokens, cost }) => (tokens === 0 && cost === 0 ? 'unknown' : dollars(cost)) },
      ]}
    />
  )
}

/** Tools by latency. */
export function ToolTable({ tools }: { readonly tools: CallList | undefined }) {
  return (
    <FigureTable
      title="Slowest tools"
      share={tools?.share}
      rows={tools?.calls}
      none="No tool calls in this range."
      head="Tool"
      name={({ name }) => name}
      size={({ p95 }) => p95 ?? 0}
      figures={[
        { title: 'Calls', cell: ({ calls }) => compact(calls) },
        { title: 'Failed', cell: ({ failed, calls }) => rate(failed, calls) },
        { title: 'p50', cell: ({ p50 }) => duration(p50) },
        { title: 'p95', cell: ({ p95 }) => duration(p95) },
      ]}
    />
  )
}

interface FigureTableProps<Row> {
  readonly title: string
  /** The share of the data that the figures are estimated from. */
  readonly share?: number | undefined
  readonly rows: readonly Row[] | undefined
  readonly none: string
  /** The title of the first column. */
  readonly head: string
  /** The text of its cell, a link if `href` is given. Below it, a bar shows `size` relative to the largest. */
  readonly name: (row: Row) => string
  readonly href?: (row: Row) => string
  readonly size: (row: Row) => number
  /** The other columns. */
  readonly figures: readonly Column<Row>[]
}

function FigureTable<Row extends object>({
  title,
  share = 1,
  rows,
  none,
  head,
  name,
  href,
  size,
  figures,
}: FigureTableProps<Row>) {
  const largest = Math.max(1e-12, ...(rows ?? []).map(size))
  return (
    <section class="panel figures">
      <h2>
        {title} {share < 1 && <span class="hint">estimated from 1 in {count(Math.round(1 / share))} calls</span>}
      </h2>
      {rows === undefined && <Skeleton />}
      {rows?.length === 0 && <p class="hint quiet-note">{none}</p>}
      {rows !== undefined && rows.length > 0 && (
        <Table
          rows={rows}
          keyOf={(_, at) => at}
          columns={[
            { title: head, cell: (row) => <Share name={name(row)} href={href?.(row)} part={size(row) / largest} /> },
            ...figures.map((figure) => ({ ...figure, isNumber: true })),
          ]}
        />
      )}
    </section>
  )
}

interface ShareProps {
  readonly name: string
  readonly href: string | undefined
  readonly part: number
}

/** A name above a bar that shows its part of the largest. */
function Share({ name, href, part }: ShareProps) {
  const share = (
    <>
      <span class="share-name" title={name}>
        {name}
      </span>
      <i class="share-bar" style={{ width: `${Math.max(1, part * 100)}%` }} />
    </>
  )
  if (href === undefined) return <span class="share">{share}</span>
  return (
    <a class="share" href={href}>
      {share}
    </a>
  )
}

function rate(failed: number, of: number) {
  return <span class={failed > 0 ? 'bad-text' : 'hint'}>{of === 0 ? '–' : percent(failed / of)}</span>
}
