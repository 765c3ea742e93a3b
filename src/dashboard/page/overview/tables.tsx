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
  return (
    <FigureTable
      title="Agents"
      rows={agents.slice(0, AGENTS_SHOWN)}
      none="No runs in this range."
      heads={['Agent', 'Runs', 'Failed', 'p95', 'Cost']}
      name={({ agentId }) => directory.nameOf(agentId)}
      href={({ agentId }) => hrefOf('runs', [], { agent: agentId, ...range })}
      size={({ runs }) => runs}
      cells={(each) => [
        count(each.runs),
        rate(each.failed, each.ended),
        duration(each.p95),
        each.cost === 0 ? '–' : dollars(each.cost),
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
      heads={['Model', 'Calls', 'p95', 'Tokens', 'Cost']}
      name={({ name }) => name}
      size={({ cost, calls }) => cost || calls / 1e9}
      cells={(each) => [
        ...[compact(each.calls), duration(each.p95), compact(each.tokens)],
        // Calls that report no tokens are not free.
        each.tokens === 0 && each.cost === 0 ? 'unknown' : dollars(each.cost),
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
      heads={['Tool', 'Calls', 'Failed', 'p50', 'p95']}
      name={({ name }) => name}
      size={({ p95 }) => p95 ?? 0}
      cells={(each) => [compact(each.calls), rate(each.failed, each.calls), duration(each.p50), duration(each.p95)]}
    />
  )
}

interface FigureTableProps<Row> {
  readonly title: string
  /** The share of the data that the figures are estimated from. */
  readonly share?: number | undefined
  readonly rows: readonly Row[] | undefined
  readonly none: string
  readonly heads: readonly string[]
  /** The text of the first cell, a link if `href` is given. Below it, a bar shows `size` relative to the largest. */
  readonly name: (row: Row) => string
  readonly href?: (row: Row) => string
  readonly size: (row: Row) => number
  /** The other cells. */
  readonly cells: (row: Row) => readonly ComponentChildren[]
}

function FigureTable<Row>({ title, share = 1, rows, none, heads, name, href, size, cells }: FigureTableProps<Row>) {
  const largest = Math.max(1e-12, ...(rows ?? []).map(size))
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
            {rows.map((row, at) => (
              <tr key={at}>
                <td>
                  <Share name={name(row)} href={href?.(row)} part={size(row) / largest} />
                </td>
                {cells(row).map((cell, index) => (
                  <td key={index} class="number">
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
