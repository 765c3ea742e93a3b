import type { Queries } from '../data/api.ts'
import { num, numbers } from '../data/json.ts'
import { bucketsOf, type TimeRange } from '../parts/range.tsx'

/** The runs of an agent in a time range, summed up. */
export interface AgentFigures {
  readonly runs: number
  readonly failed: number
  /** Completed, failed or timed out. */
  readonly ended: number
  readonly cost: number
  /** The start of the newest run, in Unix milliseconds. */
  readonly lastMs: number
  /** Runs by bucket of the range, and those of them that have failed. */
  readonly counts: readonly number[]
  readonly failures: readonly number[]
}

/** Only this many agents, the busiest ones, have figures. */
const AGENTS_MAX = 2_000

/** The figures of all agents by one query. @throws ApiFailure */
export async function readAgentFigures(
  queries: Pick<Queries, 'run'>,
  range: TimeRange,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentFigures>> {
  const { fromMs: from, toMs: to, bucketSeconds: step } = range
  const { rows } = await queries.run(queryOf(bucketsOf(range).length), { from, to, step }, signal)
  return new Map(
    rows.map((row) => [
      String(row.agent),
      {
        runs: num(row.runs),
        failed: num(row.failed),
        ended: num(row.ended),
        cost: num(row.cost),
        lastMs: num(row.last),
        counts: numbers(row.counts),
        failures: numbers(row.failures),
      },
    ]),
  )
}

function queryOf(buckets: number): string {
  return `SELECT toString(agent_id) AS agent, count() AS runs, countIf(is_failed) AS failed,
  countIf(is_failed OR status = 'completed') AS ended, sum(cost_usd) AS cost,
  toUnixTimestamp64Milli(max(created_at)) AS last,
  countResample(0, ${buckets}, 1)(bucket) AS counts, countIfResample(0, ${buckets}, 1)(is_failed, bucket) AS failures
FROM (
  SELECT agent_id, status, cost_usd, created_at, status IN ('failed', 'timed_out') AS is_failed,
    toUInt32(intDiv(toUnixTimestamp64Milli(created_at) - {from:Int64}, 1000 * {step:UInt32})) AS bucket
  FROM runs
  WHERE created_at >= fromUnixTimestamp64Milli({from:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})
)
GROUP BY agent_id ORDER BY runs DESC LIMIT ${AGENTS_MAX}`
}
