import type { ComponentChildren } from 'preact'
import { compact, count, dollars, duration, percent } from '../../../base/format.ts'
import { address, hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { linkedRange } from '../parts/range.tsx'
import { Skeleton } from '../parts/states.tsx'
import { AGENTS_SHOWN, type AgentFigures, type CallList } from './metrics.ts'

/** The busiest agents of the range. */
export function AgentTable({ agents }: { readonly agents: readonly AgentFigures[] }) {
  const { directory } = useSession()
  const range = linkedRange(address.value.query)
  const most = Math.max(1, ...agents.map(({ runs }) => runs))
  const rows = agents.slice(0, AGENTS_SHOWN).map((each) => [
    <a key="name" class="share" href={hrefOf('runs', [], { agent: each.agentId, ...range })}>
      <Share name={directory.nameOf(each.agentId)} part={each.runs / most} />
    </a>,
    count(each.runs),
    <Rate key="rate" failed={each.failed} of={each.ended} />,
    each.p95 === null ? '–' : duration(each.p95),
    each.cost === 0 ? '–' : dollars(each.cost),
  ])
  return (
    <FigureTable
      title="Agents"
      heads={['Agent', 'Runs', 'Failed', 'p95', 'Cost']}
      rows={rows}
      none="No runs in this range."
    />
  )
}

/** Models by cost. */
export function ModelTable({ models }: { readonly models: CallList | undefined }) {
  const most = Math.max(1e-12, ...(models?.calls ?? []).map(({ cost, calls }) => cost || calls / 1e9))
  const rows = models?.calls.map((each) => [
    <span key="name" class="share">
      <Share name={each.name} part={(each.cost || each.calls / 1e9) / most} />
    </span>,
    compact(each.calls),
    each.p95 === null ? '–' : duration(each.p95),
    compact(each.tokens),
    dollars(each.cost),
  ])
  return (
    <FigureTable
      title="Models"
      share={models?.share}
      heads={['Model', 'Calls', 'p95', 'Tokens', 'Cost']}
      rows={rows}
      none="No model calls in this range."
    />
  )
}

/** Tools by latency. */
export function ToolTable({ tools }: { readonly tools: CallList | undefined }) {
  const most = Math.max(1, ...(tools?.calls ?? []).map(({ p95 }) => p95 ?? 0))
  const rows = tools?.calls.map((each) => [
    <span key="name" class="share">
      <Share name={each.name} part={(each.p95 ?? 0) / most} />
    </span>,
    compact(each.calls),
    <Rate key="rate" failed={each.failed} of={each.calls} />,
    each.p50 === null ? '–' : duration(each.p50),
    each.p95 === null ? '–' : duration(each.p95),
  ])
  return (
    <FigureTable
      title="Slowest tools"
      share={tools?.share}
      heads={['Tool', 'Calls', 'Failed', 'p50', 'p95']}
      rows={rows}
      none="No tool calls in this range."
    />
  )
}

interface FigureTableProps {
  readonly title: string
  /** The figures are estimated from this part of what there is. */
  readonly share?: number
  readonly heads: readonly string[]
  readonly rows: readonly (readonly ComponentChildren[])[] | undefined
  readonly none: string
}

function FigureTable({ title, share = 1, heads, rows, none }: FigureTableProps) {
  return (
    <section class="panel figures">
      <h2>
        {title} {share < 1 && <span class="hint">estimated from 1 in {count(Math.round(1 / share))} calls</span>}
      </h2>
      {rows === undefined && <Skeleton />}
      {rows?.length === 0 && <p class="hint quiet-note">{none}</p>}
      {rows !== undefined && rows.length > 0 && (
        <table>
          <thead>
            <tr>
              {heads.map((head, index) => (
                <th key={head} scope="col" class={index === 0 ? '' : 'number'}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((cells, row) => (
              <tr key={row}>
                {cells.map((cell, index) => (
                  <td key={index} class={index === 0 ? '' : 'number'}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** A name above a bar: its part of the largest. */
function Share({ name, part }: { readonly name: string; readonly part: number }) {
  return (
    <>
      <span class="share-name" title={name}>
        {name}
      </span>
      <i class="share-bar" style={{ width: `${Math.max(1, part * 100)}%` }} />
    </>
  )
}

function Rate({ failed, of }: { readonly failed: number; readonly of: number }) {
  return <span class={failed > 0 ? 'bad-text' : 'hint'}>{of === 0 ? '–' : percent(failed / of)}</span>
}
