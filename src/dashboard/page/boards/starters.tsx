import { hrefOf } from '../context/router.ts'
import { Empty } from '../parts/states.tsx'
import { SCORES_OVER_TIME } from '../scores/over-time.ts'
import { type ChartChoice, lookOf } from '../sql/chart-plan.ts'
import { SQL } from '../sql/sql-address.ts'

interface Starter {
  readonly title: string
  readonly query: string
  readonly chart: ChartChoice
}

const WITHIN = 'created_at >= {from:DateTime64(3)} AND created_at < {to:DateTime64(3)}'
const BUCKET = 'toStartOfInterval(created_at, toIntervalSecond({step:UInt32})) AS time'

/** Queries that follow the range of a board. */
const STARTERS: readonly Starter[] = [
  {
    title: 'Runs by status',
    query: `SELECT ${BUCKET}, status, count() AS runs\nFROM runs\nWHERE ${WITHIN}\nGROUP BY time, status\nORDER BY time`,
    chart: { kind: 'bar' },
  },
  {
    title: 'Latency and cost',
    query: `SELECT ${BUCKET},\n  quantile(0.95)(active_ms) AS p95_ms, sum(cost_usd) AS cost_usd\nFROM runs\nWHERE ${WITHIN}\nGROUP BY time\nORDER BY time`,
    chart: { kind: 'line', y: ['p95_ms'], right: ['cost_usd'] },
  },
  {
    title: 'Tokens by agent',
    query: `SELECT ${BUCKET}, agent_name,\n  sum(input_tokens + output_tokens) AS tokens\nFROM runs\nWHERE ${WITHIN}\nGROUP BY time, agent_name\nORDER BY time`,
    chart: { kind: 'area' },
  },
  { title: 'Scores', query: SCORES_OVER_TIME, chart: { kind: 'line' } },
  {
    title: 'Runs, failures and cost',
    query: `SELECT count() AS runs, countIf(status IN ('failed', 'timed_out')) AS failed, sum(cost_usd) AS cost_usd\nFROM runs\nWHERE ${WITHIN}`,
    chart: { kind: 'number' },
  },
]

/** What to do where there is no board yet. */
export function NoBoards() {
  return (
    <Empty title="No boards yet" icon="boards">
      <p>A board is a page of charts with one time range, for everyone in the workspace.</p>
      <p>Save a query in the SQL view and pin it, or make a board here and add saved queries to it.</p>
      <Starters />
    </Empty>
  )
}

export function EmptyBoard() {
  return (
    <Empty title="No charts on this board yet" icon="boards">
      <p>Add a saved query, or begin with one of these: run it, save it, pin it.</p>
      <Starters />
    </Empty>
  )
}

function Starters() {
  return (
    <>
      <ul class="starters">
        {STARTERS.map(({ title, query, chart }) => (
          <li key={title}>
            <a class="button small" href={hrefOf('sql', [], SQL.write({ q: query, ...lookOf(chart) }))}>
              {title}
            </a>
          </li>
        ))}
      </ul>
      <p class="hint">
        The placeholders <code>{'{from:DateTime64(3)}'}</code>, <code>{'{to:DateTime64(3)}'}</code> and{' '}
        <code>{'{step:UInt32}'}</code> follow the time range.
      </p>
    </>
  )
}
