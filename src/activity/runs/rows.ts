import { type RunIdentity, runKey } from '../../base/ids.ts'
import { type RowOf, withIsoTimes } from '../../base/timestamp.ts'
import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'
import type { RunRecord } from './schema.ts'
import type { Usage } from './usage-schema.ts'

/** The columns of usage, of a row of `runs` or of sums over several. */
export type UsageColumns = Readonly<Record<(typeof USAGE_COLUMNS)[number], number>>

export const USAGE_COLUMNS = [
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
] as const

/** SQL text: the columns of usage of a row `r` of `runs`. */
export const RUN_USAGE = USAGE_COLUMNS.map((name) => `r.${name}`).join(', ')

/** Usage as clients see it. Rows of earlier versions lack the parts. */
export function usageRecord({ input_tokens, output_tokens, ...parts }: UsageColumns): Usage {
  const { cache_read_tokens = 0, cache_write_tokens = 0, reasoning_tokens = 0 } = parts
  const total_tokens = input_tokens + output_tokens
  return { input_tokens, output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens }
}

/** A row of `runs` as the store selects it. */
export type StoredRun = RowOf<Omit<RunRecord, 'duration_ms' | 'active_ms' | 'usage'>> & UsageColumns

/** SQL text: the columns of {@link StoredRun} of a row `r` of `runs`. */
export const STORED_RUN = storedRun('r.input', 'r.output')

/** The same with other expressions for input and output. */
export function storedRun(input: string, output: string): string {
  return `
  r.run_id, r.agent_id, r.agent_version, r.status, r.trigger_type, r.external_run_id, r.parent_run_id, r.session_id,
  r.external_user_id, r.tags, r.metadata, ${input}, ${output}, r.error_message, r.error_detail, ${RUN_USAGE},
  r.cost_usd, r.event_count, r.last_event_at, r.pending, r.created_at, r.started_at,
  r.completed_at, r.waiting_ms, r.waiting_since, r.version`
}

/** Content that is larger than this as stored has no preview; of smaller content, the first characters are enough. */
const PREVIEWED_BYTES_MAX = 65_536
const PREVIEWED_CHARACTERS_MAX = 8_192

/** SQL text: the first characters of free-form JSON, for a preview; null if it is too large to be decompressed for that. */
export function previewText(column: string): string {
  return `case when pg_column_size(${column}) <= ${PREVIEWED_BYTES_MAX} then left(${column}::text, ${PREVIEWED_CHARACTERS_MAX}) end`
}

/** SQL text: the columns of a row `r` of `runs` that {@link runRow} reads. */
export const RUN_ROW_COLUMNS = `
  r.workspace_id, r.agent_id, r.run_id, r.agent_version, r.runtime_type, r.status, r.trigger_type, r.external_run_id,
  r.parent_run_id, r.session_id, r.external_user_id, r.tags, r.metadata, r.input, r.output, r.error_message,
  r.error_detail, r.created_at, r.started_at, r.completed_at, r.waiting_ms, r.waiting_since, ${RUN_USAGE},
  r.cost_usd, r.event_count, r.last_event_at, r.pending`

/**
 * SQL text: the journal's `RunRow` of a row `r` of `runs` and its agent's name `a.name`, as stored in the outbox.
 *
 * Free-form members are JSON *strings* with the caller's text. As objects, Postgres could not extract them again
 * (it refuses to look into JSON with `\u0000` or a lone surrogate in it) and JSON.parse would round their numbers.
 *
 * @param isRecount whether an earlier row of the outbox has the same state, so that only counts, tags and metadata may differ
 */
export function runRow(isRecount = false): string {
  return `
  (select row_to_json(x) from (select
    r.workspace_id, r.agent_id, r.run_id, a.name as agent_name, r.agent_version, r.runtime_type, r.status,
    r.trigger_type, r.external_run_id, r.parent_run_id, r.session_id, r.external_user_id, r.tags,
    r.metadata::text as metadata, r.input::text as input, r.output::text as output, r.error_message,
    r.error_detail::text as error_detail, ${unixMs('r.created_at')} as created_at,
    ${unixMs('r.started_at')} as started_at, ${unixMs('r.completed_at')} as completed_at,
    ${unixMs('r.completed_at')} - ${unixMs('r.started_at')} as duration_ms,
    r.waiting_ms, ${unixMs('r.waiting_since')} as waiting_since,
    ${RUN_USAGE}, r.cost_usd, r.event_count, ${unixMs('r.last_event_at')} as last_event_at,
    r.pending::text as pending, ${isRecount} as is_recount
  ) x)`
}

/**
 * SQL text: writes runs to the outbox.
 * @param changed a CTE with their {@link RUN_ROW_COLUMNS}, named `r`
 * @param isRecount see {@link runRow}
 */
export function runsToOutbox(changed: string, isRecount = false): string {
  return `
    insert into outbox (workspace_id, kind, body)
    select r.workspace_id, 'run', ${runRow(isRecount)}
    from ${changed} join agents a on a.agent_id = r.agent_id`
}

/**
 * SQL text: whether a run has been deleted.
 * @param row the name of a row with its `run_id`
 * @param workspace that of a row with its `workspace_id`
 */
export function isErased(row: string, workspace = row): string {
  return `exists (select from ${erasuresOf(row, workspace)} and e.score_id is null)`
}

/** SQL text: whether the run, or the score, of a row `row` has been deleted. @param workspace as for {@link isErased} */
export function isErasedOrScore(row: string, workspace: string): string {
  return `exists (select from ${erasuresOf(row, workspace)} and (e.score_id is null or e.score_id = ${row}.score_id))`
}

/** SQL text: the ids of scores of a row `r` of `runs` that have been deleted; null if none were. */
export const DELETED_SCORES = `(select array_agg(e.score_id) from ${erasuresOf('r', 'r')} and e.score_id is not null)`

function erasuresOf(row: string, workspace: string): string {
  return `run_erasures e where e.run_id = ${row}.run_id and e.workspace_id = ${workspace}.workspace_id`
}

/**
 * SQL text: a sum of costs without the digits that adding binary fractions makes up (10.680000000000376). Ten decimals
 * hold a token at a hundredth of a cent per million tokens.
 */
export function roundedUsd(sum: string): string {
  return `round((${sum})::numeric, 10)::double precision`
}

/** SQL text: a sum of tokens, as far as JavaScript's integers reach. Without a bound the sum of a run could end as an error. */
export function boundedTokens(sum: string): string {
  return `least(${sum}, ${Number.MAX_SAFE_INTEGER})::bigint`
}

/**
 * SQL text: Unix milliseconds of a timestamp, as the journal's rows have them. Exact, because the cast rounds away the
 * error of binary fractions. `extract` computes in decimals, which takes three times as long.
 */
export function unixMs(timestamp: string): string {
  return `(date_part('epoch', ${timestamp}) * 1000)::bigint`
}

/** The record a client sees (docs/runs.md), its members in the order of {@link STORED_RUN}. */
export function toRunRecord(run: StoredRun): RunRecord {
  const {
    waiting_ms,
    waiting_since,
    input_tokens,
    output_tokens,
    cache_read_tokens,
    cache_write_tokens,
    reasoning_tokens,
    cost_usd,
    event_count,
    last_event_at,
    pending,
    ...same
  } = run
  const duration_ms = durationMs(run)
  return {
    ...withIsoTimes(same),
    duration_ms,
    active_ms: activeMs(duration_ms, waiting_ms),
    ...withIsoTimes({ waiting_ms, waiting_since }),
    usage: usageRecord(run),
    ...withIsoTimes({ cost_usd, event_count, last_event_at, pending }),
  }
}

/** Milliseconds from start to end; null while a run has not ended, or when it ended before it started. */
export function durationMs({
  started_at,
  completed_at,
}: Pick<StoredRun, 'started_at' | 'completed_at'>): number | null {
  return started_at === null || completed_at === null ? null : completed_at.getTime() - started_at.getTime()
}

/** Milliseconds of a duration without the waits for people. Not negative, although clocks of several machines may disagree. */
export function activeMs(durationMs: number | null, waitingMs: number): number | null {
  return durationMs === null ? null : Math.max(0, durationMs - waitingMs)
}

/** SQL assignments that end the wait of a run `r` for people, if it waits. @param at Unix milliseconds; clocks may disagree */
export function waitEnds(sql: Sql | TransactionSql, at: number) {
  const waited = sql`${at}::bigint - ${sql.unsafe(unixMs('r.waiting_since'))}`
  return sql`waiting_ms = r.waiting_ms + greatest(0, coalesce(${waited}, 0)), waiting_since = null`
}

/** These columns of the runs of the list that exist, by {@link runKey}. */
export async function findRuns<Row>(
  sql: Sql,
  runs: readonly RunIdentity[],
  columns: string,
): Promise<Map<string, Row>> {
  if (runs.length === 0) return new Map()
  const rows = await sql<(Row & { workspace_id: string; run_id: string })[]>`
    select r.workspace_id, r.run_id, ${sql.unsafe(columns)}
    from unnest(
      ${runs.map((run) => run.workspaceId)}::uuid[], ${runs.map((run) => run.runId)}::uuid[]
    ) as i (workspace_id, run_id)
    join runs r on r.workspace_id = i.workspace_id and r.run_id = i.run_id`
  return new Map(rows.map((row) => [runKey(row.workspace_id, row.run_id), row]))
}

/** A Postgres array literal: `unnest` would flatten an array of arrays. */
export function arrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`
}
