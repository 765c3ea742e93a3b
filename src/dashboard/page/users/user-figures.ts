import type { Queries } from '../data/api.ts'
import { num, numbers } from '../data/json.ts'
import { bucketsOf, type TimeRange } from '../parts/range.tsx'

/** The runs of a user in a time range, summed up. */
export interface UserFigures {
  readonly user: string
  readonly runs: number
  readonly sessions: number
  readonly failed: number
  /** Completed, failed or timed out. */
  readonly ended: number
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

/** Users with runs in the range, the most recently active first. @param user only this one @throws ApiFailure */
export async function readUserFigures(
  queries: Pick<Queries, 'run'>,
  range: TimeRange,
  signal: AbortSignal,
  user?: string,
): Promise<readonly UserFigures[]> {
  const { fromMs: from, toMs: to, bucketSeconds: step } = range
  const params = { from, to, step, ...(user !== undefined && { user }) }
  const { rows } = await queries.run(queryOf(bucketsOf(range).length, user !== undefined), params, signal)
  return rows.map((row) => ({
    user: String(row.user),
    runs: num(row.runs),
    sessions: num(row.sessions),
    failed: num(row.failed),
    ended: num(row.ended),
    tokens: num(row.tokens),
    cost: num(row.cost),
    lastMs: num(row.last),
    counts: numbers(row.counts),
    failures: numbers(row.failures),
  }))
}

function queryOf(buckets: number, isOfOne: boolean): string {
  return `SELECT external_user_id AS user, count() AS runs, uniqExact(session_id) AS sessions,
  countIf(is_failed) AS failed, countIf(is_failed OR status = 'completed') AS ended,
  sum(input_tokens + output_tokens) AS tokens, sum(cost_usd) AS cost,
  toUnixTimestamp64Milli(max(created_at)) AS last,
  countResample(0, ${buckets}, 1)(bucket) AS counts, countIfResample(0, ${buckets}, 1)(is_failed, bucket) AS failures
FROM (
  SELECT external_user_id, session_id, status, input_tokens, output_tokens, cost_usd, created_at,
    status IN ('failed', 'timed_out') AS is_failed,
    toUInt32(intDiv(toUnixTimestamp64Milli(created_at) - {from:Int64}, 1000 * {step:UInt32})) AS bucket
  FROM runs
  WHERE created_at >= fromUnixTimestamp64Milli({from:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})
    AND ${isOfOne ? 'external_user_id = {user:String}' : 'external_user_id IS NOT NULL'}
)
GROUP BY external_user_id ORDER BY last DESC LIMIT ${USERS_MAX}`
}
