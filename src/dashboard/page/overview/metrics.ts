import { LATENCY_MS, TOOL } from '../../../base/conventions/names.ts'
import { createPrices, type PriceTable } from '../../../base/conventions/prices.ts'
import { USAGE_NAMES } from '../../../base/conventions/usage-names.ts'
import type { Queries, Result } from '../data/api.ts'
import { num, numOrNull } from '../data/json.ts'
import { bucketsOf, completeBuckets, type TimeRange, timeState } from '../parts/range.tsx'
import { type EventCounts, sampleOf, totalOf } from './call-sample.ts'

/** The figures of the overview, by a few SQL queries of the public API. */

export const TIME = timeState()

export interface RunFigures {
  readonly runs: number
  readonly failed: number
  /** Completed, failed or timed out. */
  readonly ended: number
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly tokens: number
  readonly cost: number
}

export interface AgentFigures extends RunFigures {
  readonly agentId: string
}

export interface RunMetrics {
  readonly total: RunFigures
  readonly previous: RunFigures
  /** In Unix seconds. */
  readonly times: readonly number[]
  /** How many of the times are over, and in how many of these nearly all runs have ended. */
  readonly complete: number
  readonly settled: number
  readonly series: readonly RunFigures[]
  readonly agents: readonly AgentFigures[]
}

interface CallFigures {
  readonly name: string
  readonly calls: number
  readonly failed: number
  readonly p50: number | null
  readonly p95: number | null
  readonly tokens: number
  readonly cost: number
}

/** Calls of a kind by name. */
export interface CallList {
  readonly calls: readonly CallFigures[]
  /** The part of all calls that was read; the figures are estimated from it. */
  readonly share: number
}

export const AGENTS_SHOWN = 8
const CALLS_SHOWN = 8
const MODEL_CALL = 'llm.call'
const SETTLED_SHARE = 0.9
const UNSETTLED_MAX = 4

/** Figures of runs, for {@link figuresOf}. Quantiles of nothing are 0, so `timed` says of how many runs they are. */
export const FIGURES = `count() AS runs, countIf(status IN ('failed', 'timed_out')) AS failed,
  countIf(status IN ('completed', 'failed', 'timed_out')) AS ended,
  count(active_ms) AS timed, quantiles(0.5, 0.95, 0.99)(active_ms) AS quantiles,
  sum(input_tokens + output_tokens) AS tokens, sum(cost_usd) AS cost`

/** Reads the runs once for all figures: by bucket, by agent, in total, and those of the period before the range. */
const RUNS_QUERY = `SELECT multiIf(grouping(bucket) = 0, 'bucket', grouping(agent) = 0, 'agent', is_now, 'total', 'previous') AS part,
  bucket, agent, ${FIGURES}
FROM (
  SELECT toUnixTimestamp(toStartOfInterval(created_at, toIntervalSecond({step:UInt32}))) AS bucket,
    toString(agent_id) AS agent, created_at >= fromUnixTimestamp64Milli({from:Int64}) AS is_now,
    status, active_ms, input_tokens, output_tokens, cost_usd
  FROM runs
  WHERE created_at >= fromUnixTimestamp64Milli({before:Int64}) AND created_at < fromUnixTimestamp64Milli({to:Int64})
)
GROUP BY GROUPING SETS ((is_now, bucket), (is_now, agent), (is_now))
HAVING is_now OR part = 'previous'`

const EVENTS_QUERY = `SELECT toUnixTimestamp(toStartOfInterval(received_at, toIntervalSecond({step:UInt32}))) AS bucket, count() AS events,
  countIf(type = 'llm.call') AS model_calls, countIf(type = 'tool.call.finished') AS tool_calls
FROM events
WHERE received_at >= fromUnixTimestamp64Milli({from:Int64}) AND received_at < fromUnixTimestamp64Milli({to:Int64})
GROUP BY bucket`

/** The value of the first of these members that is a number. */
function firstNumber(names: readonly string[]): string {
  return `coalesce(${names.map((name) => `toFloat64OrNull(payload.${name}::String)`).join(', ')})`
}

/** The usual names of what a cache saved: each name costs the query a look into every payload. */
const CACHE_READ = [
  USAGE_NAMES.cacheReadTokens[0],
  'llm.token_count.prompt_details.cache_read',
  'ai.usage.cachedInputTokens',
  'usage.prompt_tokens_details.cached_tokens',
  'usage.input_tokens_details.cached_tokens',
  'usage.cache_read_input_tokens',
] satisfies readonly (typeof USAGE_NAMES.cacheReadTokens)[number][]
const CACHE_WRITE = [
  USAGE_NAMES.cacheWriteTokens[0],
  'llm.token_count.prompt_details.cache_write',
  'usage.cache_creation_input_tokens',
] satisfies readonly (typeof USAGE_NAMES.cacheWriteTokens)[number][]

/**
 * Calls by type and name, with the cost and tokens that they report under any of the names that count for runs; and the
 * tokens of those without a cost also by the names of their models, one of which may have a price.
 */
function callsQuery(days: readonly string[] | null): string {
  const models = USAGE_NAMES.model.map((name) => `payload.${name}::String`).join(', ')
  return `SELECT type, name, models, grouping(models) AS of_models, count() AS calls, sum(is_failed) AS failed,
  quantile(0.5)(latency) AS p50, quantile(0.95)(latency) AS p95,
  sum(input_tokens) AS input, sum(ifNull(tokens_out, 0)) AS output, sum(ifNull(usd, 0)) AS cost,
  sumIf(input_tokens, usd IS NULL) AS unpriced_input, sumIf(ifNull(tokens_out, 0), usd IS NULL) AS unpriced_output,
  sumIf(cache_read, usd IS NULL) AS unpriced_read, sumIf(cache_write, usd IS NULL) AS unpriced_written
FROM (
  SELECT type, if(type = 'llm.call', arrayFilter(x -> x != '', [${models}]), []) AS models,
    if(type = 'llm.call', models[1], payload.${TOOL.name[0]}::String) AS name,
    level = 'error' OR payload.error.type IS NOT NULL OR payload.status::String = 'failed' AS is_failed,
    toFloat64OrNull(payload.${LATENCY_MS[0]}::String) AS latency,
    ${firstNumber(USAGE_NAMES.inputTokens)} AS tokens_in,
    ifNull(${firstNumber(CACHE_READ)}, 0) AS cache_read,
    ifNull(${firstNumber(CACHE_WRITE)}, 0) AS cache_write,
    ifNull(tokens_in, 0) + if(cache_read + cache_write > ifNull(tokens_in, 0), cache_read + cache_write, 0) AS input_tokens,
    ${firstNumber(USAGE_NAMES.outputTokens)} AS tokens_out,
    ${firstNumber(USAGE_NAMES.costUsd)} AS usd
  FROM events
  WHERE type IN ('llm.call', 'tool.call.finished')
    AND received_at >= fromUnixTimestamp64Milli({from:Int64}) AND received_at < fromUnixTimestamp64Milli({to:Int64})
    AND cityHash64(seq) % {every:UInt32} = 0
    ${days === null ? '' : `AND toDate(received_at) IN (${days.map((day) => `'${day}'`).join()})`}
)
GROUP BY GROUPING SETS ((type, name), (type, name, models))`
}

const STATES_QUERY = `SELECT status, count() AS runs FROM runs
WHERE status IN ('queued', 'running', 'awaiting_approval', 'awaiting_input') GROUP BY status`

/** @throws ApiFailure */
export async function readRuns(queries: Queries, range: TimeRange, signal: AbortSignal): Promise<RunMetrics> {
  const before = range.fromMs - (range.toMs - range.fromMs)
  const { rows } = await queries.run(RUNS_QUERY, { ...paramsOf(range), before }, signal)
  const parts = Map.groupBy(rows, ({ part }) => part)
  const rowsOf = (part: string) => parts.get(part) ?? []
  const byBucket = new Map(rowsOf('bucket').map((row) => [num(row.bucket), row]))
  const times = bucketsOf(range)
  const series = times.map((time) => figuresOf(byBucket.get(time)))
  const complete = completeBuckets(range, Date.now())
  return {
    total: figuresOf(rowsOf('total')[0]),
    previous: figuresOf(rowsOf('previous')[0]),
    times,
    complete,
    settled: settledOf(series, complete),
    series,
    agents: rowsOf('agent')
      .map((row) => ({ ...figuresOf(row), agentId: String(row.agent) }))
      .sort((a, b) => b.runs - a.runs),
  }
}

/**
 * How many buckets are settled: failures, latencies and costs of runs are known when they end, so of the newest runs only
 * the quick ones count.
 */
export function settledOf(series: readonly Pick<RunFigures, 'runs' | 'ended'>[], complete: number): number {
  const newest = series.slice(0, complete).slice(-UNSETTLED_MAX)
  const settled = newest.findLastIndex(({ runs, ended }) => ended >= runs * SETTLED_SHARE)
  // A range with only waiting or cancelled runs still shows the charts.
  return settled === -1 ? complete : complete - newest.length + settled + 1
}

/** Events by bucket. @throws ApiFailure */
export async function readEventCounts(
  queries: Queries,
  range: TimeRange,
  signal: AbortSignal,
): Promise<readonly EventCounts[]> {
  const { rows } = await queries.run(EVENTS_QUERY, paramsOf(range), signal)
  const byBucket = new Map(rows.map((row) => [num(row.bucket), row]))
  return bucketsOf(range).map((time) => {
    const { events, model_calls, tool_calls } = byBucket.get(time) ?? {}
    return { time, events: num(events), modelCalls: num(model_calls), toolCalls: num(tool_calls) }
  })
}

/** How often {@link readCalls} is asked for at most: it costs more than the others. */
export const CALLS_REFRESH_MS_MIN = 60_000

/** Model calls by model, and tool calls by tool, estimated from a part of them if there are many. @throws ApiFailure */
export async function readCalls(
  queries: Queries,
  prices: PriceTable,
  range: TimeRange,
  counts: readonly EventCounts[],
  signal: AbortSignal,
): Promise<{ readonly models: CallList; readonly tools: CallList }> {
  const { from, to } = paramsOf(range)
  const { every, days } = sampleOf(counts)
  const { rows } = await queries.run(callsQuery(days), { from, to, every }, signal)
  const computed = await computedCosts(rows, prices, range.toMs)
  const listOf = (type: string, all: number, order: (a: CallFigures, b: CallFigures) => number): CallList => {
    const found = rows.filter((row) => row.type === type && num(row.of_models) === 1)
    const read = found.reduce((sum, row) => sum + num(row.calls), 0)
    const isWhole = (every === 1 && days === null) || read === 0
    // New events may have arrived between the two queries.
    const scale = isWhole ? 1 : Math.max(1, all / read)
    const calls = found.filter(({ name }) => name !== '').map((row) => callOf(row, computed, scale))
    return { share: 1 / scale, calls: calls.sort(order).slice(0, CALLS_SHOWN) }
  }
  const { modelCalls, toolCalls } = totalOf(counts)
  return {
    models: listOf(MODEL_CALL, modelCalls, (a, b) => b.cost - a.cost || b.calls - a.calls),
    tools: listOf('tool.call.finished', toolCalls, (a, b) => (b.p95 ?? 0) - (a.p95 ?? 0)),
  }
}

/** How often {@link readStates} is asked for. */
export const STATES_REFRESH_MS = 15_000

/** Runs that can still change, by status. @throws ApiFailure */
export async function readStates(queries: Queries, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const { rows } = await queries.run(STATES_QUERY, {}, signal)
  return new Map(rows.map((row) => [String(row.status), num(row.runs)]))
}

function paramsOf({ fromMs, toMs, bucketSeconds }: TimeRange) {
  return { from: fromMs, to: toMs, step: bucketSeconds }
}

type Row = Result['rows'][number]

/** @param row without one, there are no runs */
export function figuresOf(row: Row = {}): RunFigures {
  const quantiles = num(row.timed) > 0 && Array.isArray(row.quantiles) ? row.quantiles : []
  const [p50 = null, p95 = null, p99 = null] = quantiles.map(numOrNull)
  return {
    runs: num(row.runs),
    failed: num(row.failed),
    ended: num(row.ended),
    p50,
    p95,
    p99,
    tokens: num(row.tokens),
    cost: num(row.cost),
  }
}

/**
 * The cost of the calls that report none, by the name of the call, by the prices at the end of the range. The service
 * computes that of runs by those at each call.
 */
async function computedCosts(rows: readonly Row[], own: PriceTable, at: number): Promise<ReadonlyMap<string, number>> {
  const costs = new Map<string, number>()
  const unpriced = rows.filter(
    (row) => num(row.of_models) === 0 && num(row.unpriced_input) + num(row.unpriced_output) > 0,
  )
  // The list of prices is large.
  if (unpriced.length === 0) return costs
  const prices = await createPrices(own).loaded()
  for (const row of unpriced) {
    const usage = {
      inputTokens: num(row.unpriced_input),
      outputTokens: num(row.unpriced_output),
      cacheReadTokens: num(row.unpriced_read),
      cacheWriteTokens: num(row.unpriced_written),
    }
    const models = Array.isArray(row.models) ? row.models : []
    const cost = models.map((model) => prices.costUsd(String(model), usage, at)).find((usd) => usd !== null) ?? 0
    costs.set(String(row.name), (costs.get(String(row.name)) ?? 0) + cost)
  }
  return costs
}

function callOf(row: Row, computed: ReadonlyMap<string, number>, scale: number): CallFigures {
  const name = String(row.name)
  return {
    name,
    calls: Math.round(num(row.calls) * scale),
    failed: num(row.failed) * scale,
    p50: numOrNull(row.p50),
    p95: numOrNull(row.p95),
    tokens: (num(row.input) + num(row.output)) * scale,
    cost: (num(row.cost) + (row.type === MODEL_CALL ? (computed.get(name) ?? 0) : 0)) * scale,
  }
}
