import { address, setQuery } from '../app/router.ts'
import { useSession } from '../app/session.ts'
import { useLoad } from '../data/use-load.ts'
import { TimeChart } from '../parts/chart.tsx'
import { Facts } from '../parts/facts.tsx'
import { compact, count, dollars, duration, percent } from '../parts/format.ts'
import { useMovingRange } from '../parts/moving-range.ts'
import { bucketsOf, completeBuckets } from '../parts/range.ts'
import { RangePicker } from '../parts/range-picker.tsx'
import { Empty, Problem, Skeleton } from '../parts/states.tsx'

const PRESET = '24h'
const QUERY = `SELECT bucket, count() AS runs, countIf(status IN ('failed', 'timed_out')) AS failed,
  countIf(status IN ('completed', 'failed', 'timed_out')) AS ended, quantile(0.5)(duration_ms) AS p50,
  quantile(0.95)(duration_ms) AS p95, sum(cost_usd) AS cost
FROM (
  SELECT toUnixTimestamp(toStartOfInterval(created_at, toIntervalSecond({step:UInt32}))) AS bucket,
    status, duration_ms, cost_usd
  FROM runs
  WHERE agent_id = {agent:UUID} AND created_at >= fromUnixTimestamp64Milli({from:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})
)
GROUP BY GROUPING SETS ((bucket), ())`

/** How the runs of an agent went: in all, and over time. */
export function AgentMetrics({ agentId }: { readonly agentId: string }) {
  const { queries } = useSession()
  const { query } = address.value
  const range = useMovingRange({ range: PRESET, ...query })
  const params = { agent: agentId, from: range.fromMs, to: range.toMs, step: range.bucketSeconds }
  const { data, problem } = useLoad((signal) => queries.run(QUERY, params, signal), [params, range.movedAtMs], {
    subject: `${agentId} ${query.range} ${query.from} ${query.to}`,
  })
  if (problem !== undefined) return <Problem problem={problem} />
  if (data === undefined) return <Skeleton lines={5} />
  const rows = data.rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)])),
  )
  const byBucket = new Map(rows.filter(({ bucket }) => bucket !== 0).map((row) => [row.bucket, row]))
  const total = rows.find(({ bucket }) => bucket === 0)
  const zoom = (fromMs: number, toMs: number) =>
    setQuery({ range: null, from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() })
  const common = { times: bucketsOf(range), complete: completeBuckets(range, Date.now()), onZoom: zoom }
  const series = (name: string) => common.times.map((time) => byBucket.get(time)?.[name] ?? null)
  return (
    <div class="agent-metrics">
      <RangePicker preset={PRESET} />
      {total === undefined || total.runs === 0 ? (
        <Empty title="No runs in this range." />
      ) : (
        <>
          <Facts
            facts={[
              ['Runs', count(total.runs ?? 0)],
              ['Failure rate', percent((total.failed ?? 0) / (total.ended || 1))],
              ['p50', duration(total.p50 ?? 0)],
              ['p95', duration(total.p95 ?? 0)],
              ['Cost', dollars(total.cost ?? 0)],
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
      )}
    </div>
  )
}
