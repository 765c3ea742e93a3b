import { compact, count, dollars, duration, percent } from '../../../base/format.ts'
import { pushQuery } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Result } from '../data/api.ts'
import { num } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import { FIGURES, figuresOf, type RunFigures } from '../overview/metrics.ts'
import { TimeChart } from '../parts/chart.tsx'
import {
  bucketsOf,
  completeBuckets,
  RangePicker,
  type TimeRange,
  timeState,
  useMovingRange,
  zoomOf,
} from '../parts/range.tsx'
import { Empty, Facts, Loaded } from '../parts/states.tsx'

const TIME = timeState('24h')
const QUERY = `SELECT bucket, ${FIGURES}
FROM (
  SELECT toUnixTimestamp(toStartOfInterval(created_at, toIntervalSecond({step:UInt32}))) AS bucket,
    status, active_ms, input_tokens, output_tokens, cost_usd
  FROM runs
  WHERE agent_id = {agent:UUID} AND created_at >= fromUnixTimestamp64Milli({from:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})
)
GROUP BY GROUPING SETS ((bucket), ())`

/** How the runs of an agent went: in all, and over time. */
export function AgentMetrics({ agentId }: { readonly agentId: string }) {
  const { queries } = useSession()
  const query = TIME.value
  const range = useMovingRange(query)
  const params = { agent: agentId, from: range.fromMs, to: range.toMs, step: range.bucketSeconds }
  const read = useLoad((signal) => queries.run(QUERY, params, signal), [params, range.movedAtMs], {
    subject: `${agentId} ${query.range} ${query.from} ${query.to}`,
  })
  return (
    <div class="agent-metrics">
      <RangePicker time={TIME} />
      <Loaded read={read} lines={5}>
        {({ rows }) => <Figures rows={rows} range={range} />}
      </Loaded>
    </div>
  )
}

function Figures({ rows, range }: Pick<Result, 'rows'> & { readonly range: TimeRange }) {
  // The row of all buckets has none.
  const byBucket = new Map(rows.map((row) => [num(row.bucket), figuresOf(row)]))
  const total = byBucket.get(0)
  if (total === undefined || total.runs === 0) return <Empty title="No runs in this range." />
  const zoom = (fromMs: number, toMs: number) => pushQuery({ ...zoomOf(fromMs, toMs) })
  const common = { times: bucketsOf(range), complete: completeBuckets(range, Date.now()), onZoom: zoom }
  const series = (name: keyof RunFigures) => common.times.map((time) => byBucket.get(time)?.[name] ?? null)
  return (
    <>
      <Facts
        facts={[
          ['Runs', count(total.runs)],
          ['Failure rate', percent(total.failed / total.ended)],
          ['p50', total.p50 === null ? '–' : duration(total.p50)],
          ['p95', total.p95 === null ? '–' : duration(total.p95)],
          ['Cost', dollars(total.cost)],
        ]}
      />
      <TimeChart
        {...common}
        title="Runs of the agent over time"
        format={compact}
        series={[
          { label: 'runs', colour: 'chart-1', kind: 'bars', values: series('runs') },
          { label: 'failed', colour: 'bad', kind: 'bars', values: series('failed') },
        ]}
      />
      <TimeChart
        {...common}
        title="Latency of the agent over time"
        format={duration}
        series={[
          { label: 'p50', colour: 'chart-2', values: series('p50') },
          { label: 'p95', colour: 'chart-1', values: series('p95') },
        ]}
      />
    </>
  )
}
