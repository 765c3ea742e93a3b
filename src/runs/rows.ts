import type { RawJson } from '../base/raw-json.ts'
import type { RunRecord } from './schema.ts'
import type { RunStatus } from './state.ts'

/** A row of `runs` as the store selects it. */
export interface StoredRun {
  readonly run_id: string
  readonly agent_id: string
  readonly agent_version: number
  readonly status: RunStatus
  readonly trigger_type: RunRecord['trigger_type']
  readonly external_run_id: string | null
  readonly parent_run_id: string | null
  readonly session_id: string | null
  readonly external_user_id: string | null
  readonly tags: string[]
  readonly metadata: RawJson
  readonly input: RawJson
  readonly output: RawJson | null
  readonly error_message: string | null
  readonly error_detail: RawJson | null
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly event_count: number
  readonly last_event_at: Date | null
  readonly pending: RawJson | null
  readonly created_at: Date
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

/** SQL text: the columns of {@link StoredRun} of a row `r` of `runs`. */
export const STORED_RUN = `
  r.run_id, r.agent_id, r.agent_version, r.status, r.trigger_type, r.external_run_id, r.parent_run_id, r.session_id,
  r.external_user_id, r.tags, r.metadata, r.input, r.output, r.error_message, r.error_detail, r.input_tokens,
  r.output_tokens, r.cost_usd, r.event_count, r.last_event_at, r.pending, r.created_at, r.started_at,
  r.completed_at`

/** SQL text: the columns of a row `r` of `runs` that {@link RUN_ROW} reads. */
export const RUN_ROW_COLUMNS = `
  r.workspace_id, r.agent_id, r.run_id, r.agent_version, r.runtime_type, r.status, r.trigger_type, r.external_run_id,
  r.parent_run_id, r.session_id, r.external_user_id, r.tags, r.metadata, r.input, r.output, r.error_message,
  r.error_detail, r.created_at, r.started_at, r.completed_at, r.input_tokens, r.output_tokens, r.cost_usd,
  r.event_count, r.last_event_at, r.pending`

/**
 * SQL text: the journal's `RunRow` of a row `r` of `runs` and its agent's name `a.name`, as stored in the outbox.
 *
 * Free-form members are JSON *strings* with the caller's text. As objects, Postgres could not extract them again
 * (it refuses to look into JSON with `\u0000` or a lone surrogate in it) and JSON.parse would round their numbers.
 */
export const RUN_ROW = `
  (select row_to_json(x) from (select
    r.workspace_id, r.agent_id, r.run_id, a.name as agent_name, r.agent_version, r.runtime_type, r.status,
    r.trigger_type, r.external_run_id, r.parent_run_id, r.session_id, r.external_user_id, r.tags,
    r.metadata::text as metadata, r.input::text as input, r.output::text as output, r.error_message,
    r.error_detail::text as error_detail, ${unixMs('r.created_at')} as created_at,
    ${unixMs('r.started_at')} as started_at, ${unixMs('r.completed_at')} as completed_at,
    ${unixMs('r.completed_at')} - ${unixMs('r.started_at')} as duration_ms,
    r.input_tokens, r.output_tokens, r.cost_usd, r.event_count, ${unixMs('r.last_event_at')} as last_event_at,
    r.pending::text as pending
  ) x)`

/**
 * SQL text: a sum of costs without the digits that adding binary fractions makes up (10.680000000000376). Ten decimals
 * hold a token at a hundredth of a cent per million tokens.
 */
export function roundedUsd(sum: string): string {
  return `round((${sum})::numeric, 10)::double precision`
}

/** SQL text: Unix milliseconds of a timestamp, as the journal's rows have them. */
export function unixMs(timestamp: string): string {
  return `(extract(epoch from ${timestamp}) * 1000)::bigint`
}

/** The record a client sees (docs/specification.md#runs). */
export function toRunRecord(run: StoredRun): RunRecord {
  const { input_tokens, output_tokens } = run
  return {
    run_id: run.run_id,
    agent_id: run.agent_id,
    agent_version: run.agent_version,
    status: run.status,
    trigger_type: run.trigger_type,
    external_run_id: run.external_run_id,
    parent_run_id: run.parent_run_id,
    session_id: run.session_id,
    external_user_id: run.external_user_id,
    tags: run.tags,
    metadata: run.metadata,
    input: run.input,
    output: run.output,
    error_message: run.error_message,
    error_detail: run.error_detail,
    created_at: run.created_at.toISOString(),
    started_at: isoOrNull(run.started_at),
    completed_at: isoOrNull(run.completed_at),
    duration_ms: durationMs(run),
    usage: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
    cost_usd: run.cost_usd,
    event_count: run.event_count,
    last_event_at: isoOrNull(run.last_event_at),
    pending: run.pending,
  }
}

/** Milliseconds from start to end; null while a run has not ended, or when it ended before it started. */
export function durationMs(run: {
  readonly started_at: Date | null
  readonly completed_at: Date | null
}): number | null {
  if (run.started_at === null || run.completed_at === null) return null
  return run.completed_at.getTime() - run.started_at.getTime()
}

export function isoOrNull(time: Date | null): string | null {
  return time === null ? null : time.toISOString()
}

/** A Postgres array literal: `unnest` would flatten an array of arrays. */
export function arrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`
}
