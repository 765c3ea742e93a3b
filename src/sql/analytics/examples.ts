import { LATENCY_MS, TOOL } from '../../base/conventions/names.ts'
import {
  PLAIN_USAGE_NAMES,
  REQUESTED_MODEL,
  USAGE_NAMES,
  type UsageNumber,
} from '../../base/conventions/usage-names.ts'
import type { RunQuery } from './schema.ts'

/** An example query. It runs unchanged on any workspace. */
export interface ExampleQuery {
  readonly title: string
  readonly description: string
  readonly query: string
  /** Values of its placeholders. */
  readonly params?: NonNullable<RunQuery['params']>
}

/** SQL text: a number of a model call, under its standard name or one of the plain names. */
function reported(field: UsageNumber): string {
  const names = [USAGE_NAMES[field][0], ...PLAIN_USAGE_NAMES[field]]
  return `coalesce(${names.map((name) => `payload.${name}`).join(', ')})`
}

/**
 * The examples of `GET /api/v1/query/schema`. They expect model and tool calls as hosted agents and SDKs with OpenTelemetry
 * conventions report them: events `llm.call` and `tool.call.finished` with `gen_ai.*` keys, `latency_ms` and `cost_usd`.
 * Queries over many events limit `received_at`, by which events are stored.
 */
export const EXAMPLES: readonly ExampleQuery[] = [
  {
    title: 'Error rate by agent',
    description: 'The share of ended runs that failed or timed out.',
    query: `SELECT agent_name,
  countIf(status IN ('completed', 'failed', 'timed_out')) AS ended,
  countIf(status IN ('failed', 'timed_out')) AS failed,
  round(failed / ended, 3) AS error_rate
FROM runs
WHERE created_at > now() - toIntervalDay({days:UInt16})
GROUP BY agent_name
HAVING ended > 0
ORDER BY error_rate DESC, ended DESC
LIMIT 50`,
    params: { days: 7 },
  },
  {
    title: 'Duration of runs by hour',
    description:
      'Median (p50_ms) and 95th percentile (p95_ms) of the duration of runs without waits for people, by the hour of their start.',
    query: `SELECT toStartOfHour(created_at) AS hour, count() AS runs,
  round(quantile(0.5)(active_ms)) AS p50_ms,
  round(quantile(0.95)(active_ms)) AS p95_ms
FROM runs
WHERE active_ms IS NOT NULL
GROUP BY hour
ORDER BY hour DESC
LIMIT 168`,
  },
  {
    title: 'Tokens and cost by model',
    description:
      'Totals of model calls, from the usual names in their payloads. Values that are not numbers are ignored.',
    query: `SELECT coalesce(nullIf(payload.${REQUESTED_MODEL}::String, ''), payload.model::String) AS model, count() AS calls,
  sum(${reported('inputTokens')}) AS input_tokens,
  sum(${reported('outputTokens')}) AS output_tokens,
  round(sum(${reported('costUsd')}), 4) AS cost_usd
FROM events
WHERE type = 'llm.call' AND received_at > now() - toIntervalDay({days:UInt16})
GROUP BY model
ORDER BY cost_usd DESC
LIMIT 50`,
    params: { days: 7 },
  },
  {
    title: 'Slowest tools',
    description: 'Tools by the 95th percentile of their latency.',
    query: `SELECT payload.${TOOL.name[0]}::String AS tool, count() AS calls,
  countIf(payload.error.type IS NOT NULL) AS failed,
  round(quantile(0.5)(payload.${LATENCY_MS[0]})) AS p50_ms,
  round(quantile(0.95)(payload.${LATENCY_MS[0]})) AS p95_ms
FROM events
WHERE type = 'tool.call.finished' AND received_at > now() - toIntervalDay({days:UInt16})
GROUP BY tool
ORDER BY p95_ms DESC
LIMIT 20`,
    params: { days: 7 },
  },
  {
    title: 'Mean score by agent and day',
    description: 'Scores with a value, by their name; true counts as 1 and false as 0.',
    query: `SELECT toDate(scores.created_at) AS day, agents.name AS agent, scores.name AS score, count() AS scores,
  round(avg(value), 3) AS mean
FROM scores
JOIN agents ON agents.agent_id = scores.agent_id
WHERE value IS NOT NULL AND scores.created_at > now() - toIntervalDay({days:UInt16})
GROUP BY day, agent, score
ORDER BY day DESC, agent, score
LIMIT 500`,
    params: { days: 30 },
  },
  {
    title: 'Precision and recall by label',
    description:
      'How well the labels of judges agree with those of people: runs that both have labelled, with scores of this name.',
    query: `WITH pairs AS (
  SELECT run_id, argMaxIf(label, seq, source = 'judge') AS predicted, argMaxIf(label, seq, source = 'person') AS actual
  FROM scores
  WHERE label IS NOT NULL AND name = {name:String}
  GROUP BY run_id
  HAVING countIf(source = 'judge') > 0 AND countIf(source = 'person') > 0
)
SELECT each AS label, countIf(predicted = each AND actual = each) AS hits,
  countIf(predicted = each) AS predicted_runs, countIf(actual = each) AS actual_runs,
  round(hits / nullIf(predicted_runs, 0), 3) AS precision, round(hits / nullIf(actual_runs, 0), 3) AS recall
FROM pairs
ARRAY JOIN arrayDistinct([predicted, actual]) AS each
GROUP BY each
ORDER BY actual_runs DESC, label
LIMIT 100`,
    params: { name: 'category' },
  },
  {
    title: 'Funnel of event types',
    description: 'How far runs get: each step counts the runs that reached it after the previous step, within a day.',
    query: `WITH reached AS (
  SELECT run_id, windowFunnel(86400000)(
    toUnixTimestamp64Milli(occurred_at)::UInt64,
    type = 'llm.call', type = 'tool.call.started', type = 'tool.call.finished'
  ) AS steps
  FROM events
  WHERE received_at > now() - toIntervalDay({days:UInt16})
  GROUP BY run_id
)
SELECT count() AS reported, countIf(steps >= 1) AS called_a_model,
  countIf(steps >= 2) AS called_a_tool, countIf(steps >= 3) AS had_its_result
FROM reached`,
    params: { days: 7 },
  },
  {
    title: 'Runs stuck waiting',
    description: 'Runs that should have ended by now, longest wait first, with the last event of each.',
    query: `WITH waiting AS (
  SELECT run_id, agent_name, status, created_at
  FROM runs
  WHERE status IN ('queued', 'running', 'awaiting_approval', 'awaiting_input')
    AND created_at < now() - toIntervalMinute({minutes:UInt32})
  ORDER BY created_at
  LIMIT 100
)
SELECT run_id, agent_name, status, dateDiff('minute', created_at, now()) AS minutes,
  last_event, last_heard_at
FROM waiting
LEFT JOIN (
  SELECT run_id, argMax(type, seq) AS last_event, max(received_at) AS last_heard_at
  FROM events
  WHERE run_id IN (SELECT run_id FROM waiting)
  GROUP BY run_id
) AS heard USING (run_id)
ORDER BY minutes DESC`,
    params: { minutes: 15 },
  },
  {
    title: 'Busiest hours of the day',
    description: 'Events by the hour (UTC) in which they arrived, with a bar to compare them.',
    query: `SELECT toHour(received_at) AS hour, count() AS events, uniqExact(run_id) AS runs,
  bar(events, 0, max(events) OVER (), 30) AS chart
FROM events
WHERE received_at > now() - toIntervalDay({days:UInt16})
GROUP BY hour
ORDER BY hour`,
    params: { days: 7 },
  },
  {
    title: 'Reasons of failure',
    description: 'Error messages of failed runs, with numbers masked so that the same reason is counted together.',
    query: `SELECT replaceRegexpAll(ifNull(error_message, ''), '[0-9]+', 'N') AS reason,
  count() AS runs, uniqExact(agent_id) AS agents,
  max(completed_at) AS last_seen, argMax(run_id, completed_at) AS latest_run
FROM runs
WHERE status IN ('failed', 'timed_out')
GROUP BY reason
ORDER BY runs DESC, last_seen DESC
LIMIT 50`,
  },
  {
    title: 'Work that took several runs',
    description: 'An external_run_id that was started more than once has been retried; outcome is the latest status.',
    query: `SELECT external_run_id, count() AS attempts, countIf(status = 'failed') AS failed,
  argMax(status, created_at) AS outcome,
  dateDiff('second', min(created_at), max(created_at)) AS seconds_between
FROM runs
WHERE external_run_id IS NOT NULL
GROUP BY external_run_id
HAVING attempts > 1
ORDER BY attempts DESC, seconds_between DESC
LIMIT 50`,
  },
  {
    title: 'Tasks by status',
    description: 'How the tasks of each name end, and how long a completed one takes.',
    query: `SELECT name, count() AS tasks,
  countIf(status = 'completed') AS completed, countIf(status = 'failed') AS failed,
  countIf(status = 'skipped') AS skipped, countIf(status IN ('pending', 'running')) AS open,
  round(avgOrNullIf(dateDiff('millisecond', started_at, completed_at), status = 'completed')) AS average_ms
FROM tasks
GROUP BY name
ORDER BY tasks DESC, name
LIMIT 50`,
  },
  {
    title: 'Longest silences of runs',
    description: 'The longest gaps between two events of a run, and the events on either side.',
    query: `SELECT run_id, event_before, type AS event_after, gap_ms, occurred_at
FROM (
  SELECT run_id, type, occurred_at, lagInFrame(type) OVER earlier AS event_before,
    dateDiff('millisecond', lagInFrame(occurred_at, 1, occurred_at) OVER earlier, occurred_at) AS gap_ms
  FROM events
  WHERE received_at > now() - toIntervalHour({hours:UInt16})
  WINDOW earlier AS (PARTITION BY run_id ORDER BY occurred_at, seq)
)
WHERE gap_ms > 0
ORDER BY gap_ms DESC
LIMIT 20`,
    params: { hours: 48 },
  },
  {
    title: 'Latest events of a run',
    description: 'Set run_id; null selects the run that was started last.',
    query: `SELECT seq, occurred_at, level, type, payload
FROM events
WHERE run_id = ifNull({run_id:Nullable(UUID)}, (SELECT argMax(run_id, created_at) FROM runs))
ORDER BY seq DESC
LIMIT 100`,
    params: { run_id: null },
  },
  {
    title: 'Cohorts by tag',
    description:
      'Compares the runs of one tag with those of another; a prefix such as tier: picks the tags to compare.',
    query: `SELECT arrayJoin(tags) AS tag, count() AS runs,
  round(countIf(status = 'completed') / runs, 3) AS completed,
  round(quantile(0.5)(active_ms)) AS p50_ms
FROM runs
WHERE startsWith(tag, {prefix:String})
GROUP BY tag
ORDER BY runs DESC, tag
LIMIT 100`,
    params: { prefix: '' },
  },
  {
    title: 'Most expensive runs',
    description: 'Runs by the cost of their model calls.',
    query: `SELECT run_id, agent_name, status, calls, tokens, cost_usd
FROM (
  SELECT run_id, count() AS calls,
    sum(${reported('inputTokens')}) + sum(${reported('outputTokens')}) AS tokens,
    round(sum(${reported('costUsd')}), 6) AS cost_usd
  FROM events
  WHERE type = 'llm.call' AND received_at > now() - toIntervalDay({days:UInt16})
  GROUP BY run_id
  ORDER BY cost_usd DESC
  LIMIT 20
) AS spent
JOIN runs USING (run_id)
ORDER BY cost_usd DESC`,
    params: { days: 7 },
  },
  {
    title: 'Concurrent runs',
    description: 'The maximum number of concurrent runs of each agent, and when it was reached.',
    query: `SELECT agent_name, count() AS runs,
  maxIntersections(begun_ms, ended_ms) AS most_at_once,
  fromUnixTimestamp64Milli(maxIntersectionsPosition(begun_ms, ended_ms), 'UTC') AS at
FROM (
  SELECT agent_name, toUnixTimestamp64Milli(assumeNotNull(started_at)) AS begun_ms,
    toUnixTimestamp64Milli(ifNull(completed_at, now64(3))) AS ended_ms
  FROM runs
  WHERE started_at IS NOT NULL
)
GROUP BY agent_name
ORDER BY most_at_once DESC, runs DESC
LIMIT 50`,
  },
  {
    title: 'Who delegates to whom',
    description: 'Child runs by calling agent and called agent.',
    query: `SELECT parent.agent_name AS asked_by, child.agent_name AS done_by, count() AS child_runs,
  countIf(child.status = 'failed') AS failed, round(avg(child.active_ms)) AS average_ms
FROM runs AS child
JOIN runs AS parent ON child.parent_run_id = parent.run_id
GROUP BY asked_by, done_by
ORDER BY child_runs DESC
LIMIT 50`,
  },
  {
    title: 'Decisions of people',
    description: 'What people decided about calls of tools, and how long runs waited for it.',
    query: `SELECT tool, status, count() AS calls, countIf(edited_input IS NOT NULL) AS edited,
  round(quantile(0.5)(waiting_ms) / 1000) AS p50_seconds, round(max(waiting_ms) / 1000) AS longest_seconds
FROM pauses
WHERE kind = 'approval' AND requested_at > now() - toIntervalDay({days:UInt16})
GROUP BY tool, status
ORDER BY calls DESC
LIMIT 50`,
    params: { days: 30 },
  },
  {
    title: 'Versions of agents',
    description: 'How the runs of each version ended and how long they took, beside what the version changed.',
    query: `SELECT agent_versions.name AS agent, version, changes, ended, error_rate, p50_ms
FROM agent_versions
JOIN (
  SELECT agent_id, agent_version, count() AS ended, round(countIf(status != 'completed') / ended, 3) AS error_rate,
    round(quantile(0.5)(active_ms)) AS p50_ms
  FROM runs
  WHERE status IN ('completed', 'failed', 'timed_out')
  GROUP BY agent_id, agent_version
) AS its ON its.agent_id = agent_versions.agent_id AND its.agent_version = version
ORDER BY agent, version DESC
LIMIT 100`,
  },
  {
    title: 'Warnings and errors',
    description: 'Events of these levels by type, each with the latest payload in full.',
    query: `SELECT type, level, count() AS events, uniqExact(run_id) AS runs,
  max(occurred_at) AS last_seen, argMax(toJSONString(payload), seq) AS latest_payload
FROM events
WHERE level IN ('warn', 'error') AND received_at > now() - toIntervalHour({hours:UInt16})
GROUP BY type, level
ORDER BY events DESC
LIMIT 50`,
    params: { hours: 48 },
  },
  {
    title: 'What is in the payloads',
    description: 'Event types with the paths that their payloads have, to be used as payload.<path>.',
    query: `SELECT type, count() AS events, distinctJSONPaths(assumeNotNull(payload)) AS paths
FROM events
WHERE received_at > now() - toIntervalHour({hours:UInt16}) AND payload IS NOT NULL
GROUP BY type
ORDER BY events DESC
LIMIT 100`,
    params: { hours: 48 },
  },
]
