import type { Queries } from '../data/api.ts'
import { num, numbers } from '../data/json.ts'
import { bucketsOf, type TimeRange } from '../parts/range.tsx'

/** The runs of an agent or of a user in a time range, summed up. */
export interface RunFigures {
  /** The id of the agent or the user. */
  readonly id: string
  readonly runs: number
  readonly failed: number
  /** Completed, failed or timed out. */
  readonly ended: number
  /** Of a user; 0 for agents. */
  readonly sessions: number
  readonly tokens: number
  readonly cost: number
  /** The start of the newest run, in Unix milliseconds. */
  readonly lastMs: number
  /** Runs by bucket of the range, and those of them that have failed. */
  readonly counts: readonly number[]
  readonly failures: readonly number[]
}

/** Only this many users, the most recently active ones, are listed. */
export const USERS_MAX = 200

/** Whose runs are summed up, and which of them are read: the busiest agents, the most recently active users. */
const OWNERS = {
  agent: { column: 'agent_id', among: 'true', sessions: '0', first: 'runs', max: 2_000 },
  user: {
    column: 'external_user_id',
    among: 'external_user_id IS NOT NULL',
    sessions: 'uniqExact(session_id)',
    first: 'last_ms',
    max: USERS_MAX,
  },
} as const

/** The figures of all agents, or users, with runs in the range, by one query. @param id only of this one @throws ApiFailure */
export async function readRunFigures(
  queries: Pick<Queries, 'run'>,
  of: keyof typeof OWNERS,
  range: TimeRange,
  signal: AbortSignal,
  id?: string,
): Promise<readonly RunFigures[]> {
  const { column, among, sessions, first, max } = OWNERS[of]
  const { fromMs: from, toMs: to, bucketSeconds: step } = range
  const buckets = bucketsOf(range).length
  const query = `SELECT toString(${column}) AS id, count() AS runs, countIf(is_failed) AS failed,
  countIf(is_failed OR status = 'completed') AS ended, ${sessions} AS sessions,
  sum(input_tokens + output_tokens) AS tokens, sum(cost_usd) AS cost,
  toUnixTimestamp64Milli(max(created_at)) AS last_ms,
  countResample(0, ${buckets}, 1)(bucket) AS counts, countIfResample(0, ${buckets}, 1)(is_failed, bucket) AS failures
FROM (
  SELECT ${column}, session_id, status, input_tokens, output_tokens, cost_usd, created_at,
    status IN ('failed', 'timed_out') AS is_failed,
    toUInt32(intDiv(toUnixTimestamp64Milli(created_at) - {from:Int64}, 1000 * {step:UInt32})) AS bucket
  FROM runs
  WHERE created_at >= fromUnixTimestamp64Milli({from:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})
    AND ${id === undefined ? among : `${column} = {id:String}`}
)
GROUP BY ${column} ORDER BY ${first} DESC LIMIT ${max}`
  const { rows } = await queries.run(query, { from, to, step, ...(id !== undefined && { id }) }, signal)
  return rows.map((row) => ({
    id: String(row.id),
    runs: num(row.runs),
    failed: num(row.failed),
    ended: num(row.ended),
    sessions: num(row.sessions),
    tokens: num(row.tokens),
    cost: num(row.cost),
    lastMs: num(row.last_ms),
    counts: numbers(row.counts),
    failures: numbers(row.failures),
  }))
}
