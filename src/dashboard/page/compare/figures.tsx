import type { ComponentChildren } from 'preact'
import { compact, count, dollars, duration } from '../../../base/format.ts'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { activeMs, type Run } from '../data/records.ts'
import { SessionLink, UserLink } from '../parts/links.tsx'
import { Status } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Moment, useNow } from '../parts/time.tsx'
import type { Bar } from '../run/bars.ts'
import { Tag } from '../runs/run-table.tsx'
import { changeText } from './change.ts'

interface CompareFiguresProps {
  readonly a: Run
  readonly b: Run
  readonly rows: readonly [a: readonly Bar[], b: readonly Bar[]]
}

type Row = readonly [name: string, a: ComponentChildren, b: ComponentChildren, change?: ComponentChildren]

/** The heads of two runs beside each other, and how their figures differ. */
export function CompareFigures({ a, b, rows: [rowsA, rowsB] }: CompareFiguresProps) {
  const now = useNow()
  const amount = (name: string, of: (run: Run) => number | null, format: (value: number) => string): Row => {
    const [x, y] = [of(a), of(b)]
    return [name, x === null ? '–' : format(x), y === null ? '–' : format(y), changeText(x, y, format)]
  }
  const calls = (name: string, kind: Bar['kind']): Row[] => {
    const [x, y] = [rowsA, rowsB].map((rows) => rows.filter((row) => row.kind === kind).length) as [number, number]
    return x + y === 0 ? [] : [[name, count(x), count(y), changeText(x, y, count)]]
  }
  const text = (name: string, of: (run: Run) => ComponentChildren): Row[] =>
    of(a) || of(b) ? [[name, of(a), of(b)]] : []
  const rows: Row[] = [
    ['Status', <Status key="a" name={a.status} />, <Status key="b" name={b.status} />],
    [
      'Agent version',
      <Version key="a" run={a} />,
      <Version key="b" run={b} />,
      <VersionChange key="change" a={a} b={b} />,
    ],
    ['Created', <Moment key="a" at={a.created_at} />, <Moment key="b" at={b.created_at} />],
    amount('Duration', (run) => activeMs(run, now), duration),
    amount('Input tokens', ({ usage }) => usage.input_tokens, compact),
    amount('Output tokens', ({ usage }) => usage.output_tokens, compact),
    amount('Cost', ({ cost_usd }) => cost_usd, dollars),
    ...calls('Model calls', 'model'),
    ...calls('Tool calls', 'tool'),
    amount('Events', ({ event_count }) => event_count, count),
    ...text('Session', ({ session_id: id }) => id && <SessionLink id={id} />),
    ...text('User', ({ external_user_id: id }) => id && <UserLink id={id} />),
    ...text('Tags', ({ tags }) => tags.length > 0 && tags.map((tag) => <Tag key={tag} tag={tag} />)),
  ]
  return (
    <section class="panel" aria-label="Figures">
      <Table
        class="compare-figures"
        rows={rows}
        keyOf={([name]) => name}
        columns={[
          { title: <span class="unseen">Figure</span>, isHead: true, class: 'figure-name', cell: ([name]) => name },
          { title: <RunName letter="A" run={a} />, cell: ([, ofA]) => ofA },
          { title: <RunName letter="B" run={b} />, cell: ([, , ofB]) => ofB },
          { title: 'Change', class: 'change', cell: ([, , , change]) => change },
        ]}
      />
    </section>
  )
}

function RunName({ letter, run }: { readonly letter: string; readonly run: Run }) {
  const { directory } = useSession()
  return (
    <>
      <span class="letter">{letter}</span>
      <a href={hrefOfRun(run.run_id)}>
        {directory.nameOf(run.agent_id)} <small>…{run.run_id.slice(-8)}</small>
      </a>
    </>
  )
}

function Version({ run: { agent_id, agent_version } }: { readonly run: Run }) {
  return <a href={hrefOf('agents', [agent_id], { tab: 'versions', version: String(agent_version) })}>{agent_version}</a>
}

/** A link to what has changed, where both are versions of the same agent. */
function VersionChange({ a, b }: { readonly a: Run; readonly b: Run }) {
  if (a.agent_id !== b.agent_id) return <>another agent</>
  if (a.agent_version === b.agent_version) return <>same</>
  const [older, newer] = [a.agent_version, b.agent_version].sort((x, y) => x - y) as [number, number]
  const query = { tab: 'versions', version: String(newer), with: String(older) }
  return <a href={hrefOf('agents', [a.agent_id], query)}>what changed</a>
}
