import { findRuns, RUN_USAGE, type UsageColumns, usageRecord } from '../../activity/runs/rows.ts'
import { encodeJson, type RawJson } from '../../base/raw-json.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import { FREE_FORM_BYTES_MAX, type RunDetails } from './message.ts'

interface CountedRun extends UsageColumns {
  readonly run_id: string
  readonly input: RawJson | null
  readonly output: RawJson | null
  readonly has_output: boolean
  readonly cost_usd: number
  readonly event_count: number
  readonly last_event_at: Date | null
}

/** Long texts stay in the database. */
const COUNTED_RUN = `
  ${unlessLong('r.input')} as input, ${unlessLong('r.output')} as output, r.output is not null as has_output,
  ${RUN_USAGE}, r.cost_usd, r.event_count, r.last_event_at`

/**
 * What messages about the ends of these runs show beyond the activity, by run_id. Final once the run statistics have
 * counted up to the ends. A run that has been erased is missing.
 */
export async function detailsOf(
  sql: Sql,
  workspaceId: string,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, RunDetails>> {
  const runs = runIds.map((runId) => ({ workspaceId, runId }))
  const found = await findRuns<CountedRun>(sql, runs, COUNTED_RUN)
  return new Map(Array.from(found.values(), (run) => [run.run_id, toDetails(run)]))
}

function toDetails(run: CountedRun): RunDetails {
  const { input, output, has_output } = run
  return {
    input: input === null ? null : input.text,
    output: has_output ? (output === null ? null : output.text) : 'null',
    usage: encodeJson(usageRecord(run)),
    cost_usd: encodeJson(run.cost_usd),
    event_count: encodeJson(run.event_count),
    last_event_at: encodeJson(run.last_event_at),
  }
}

function unlessLong(column: string): string {
  return `case when octet_length(${column}::text) <= ${FREE_FORM_BYTES_MAX} then ${column} end`
}
