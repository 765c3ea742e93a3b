import { runRow } from '../../activity/runs/rows.ts'
import type { TokenCounts } from '../../base/conventions/usage.ts'
import { encodeJson, RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'
import type { Step } from '../run/run.ts'
import type { HostedPhase, PauseStatus } from '../run/state.ts'

/** SQL that several statements share. */

type AnySql = Sql | TransactionSql

/** A literal: the planner uses a partial index of `hosted_runs` only if the statement itself names the phase. */
export function phaseIs(sql: AnySql, phase: HostedPhase) {
  return sql.unsafe(`phase = '${phase}'`)
}

/** A literal, as in {@link phaseIs}, for the partial indexes of `pauses`. */
export function pauseIs(sql: AnySql, status: PauseStatus) {
  return sql.unsafe(`status = '${status}'`)
}

/** Finds the row of a run in `hosted_runs` if this process executes the run. */
export function executedBy(
  sql: AnySql,
  { workspaceId, runId }: { readonly workspaceId: string; readonly runId: string | null },
  owner: string | null,
) {
  return sql`workspace_id = ${workspaceId} and run_id = ${runId} and owner = ${owner} and ${phaseIs(sql, 'executing')}`
}

/**
 * Inserts the outbox rows of one change in the order in which feeds show them: the run as the CTE `changed` left it,
 * before or after the events.
 *
 * @param events of one workspace
 * @param run position of the run among the events; `none`: its state did not change
 * @param guard name of a CTE that has a row if the change applies; null: it applies
 */
export function insertOutbox(
  sql: AnySql,
  events: readonly SystemEventRow[],
  run: 'first' | 'last' | 'none',
  guard: string | null,
) {
  const position = run === 'first' ? 0 : events.length + 1
  const changed = sql`
    union all
    select r.workspace_id, 'run', ${sql.unsafe(runRow())}, ${position}::bigint
    from changed r join agents a on a.agent_id = r.agent_id`
  return sql`
    insert into outbox (workspace_id, kind, body)
    select x.workspace_id, x.kind, x.body from (
      select ${events[0]?.workspace_id ?? null}::uuid as workspace_id, 'event' as kind, e.body, e.n
      from unnest(${events.map((event) => new RawJson(encodeJson(event)))}::json[]) with ordinality as e (body, n)
      ${guard === null ? sql`` : sql`where exists (select from ${sql.unsafe(guard)})`}
      ${run === 'none' ? sql`` : changed}
    ) x order by x.n`
}

/** SQL assignments that add the tokens of a step, if there is one, to a run `r`. */
export function usageAdded(sql: AnySql, step: TokenCounts | null) {
  const {
    inputTokens = 0,
    outputTokens = 0,
    cacheReadTokens = 0,
    cacheWriteTokens = 0,
    reasoningTokens = 0,
  } = step ?? {}
  return sql`input_tokens = r.input_tokens + ${inputTokens}::bigint,
    output_tokens = r.output_tokens + ${outputTokens}::bigint,
    cache_read_tokens = r.cache_read_tokens + ${cacheReadTokens}::bigint,
    cache_write_tokens = r.cache_write_tokens + ${cacheWriteTokens}::bigint,
    reasoning_tokens = r.reasoning_tokens + ${reasoningTokens}::bigint`
}

/**
 * Stores a step of a run if the CTE `guard` has a row, and returns that row's workspace. Storing the same step
 * again changes nothing.
 */
export function insertStep(sql: AnySql, runId: string, step: Step | null, at: Date, guard: string) {
  if (step === null) return sql`select workspace_id from ${sql.unsafe(guard)} where false`
  const toolCalls = step.toolCalls.length === 0 ? null : RawJson.of(step.toolCalls)
  const extra = step.extra === undefined ? null : RawJson.of(step.extra)
  return sql`
    insert into run_steps (
      run_id, step, workspace_id, attempt, content, tool_calls, extra, remark, input_tokens, output_tokens, cache_read_tokens,
      created_at
    )
    select ${runId}::uuid, ${step.step}::int, workspace_id, ${step.attempt}, ${step.content}, ${toolCalls}::json,
      ${extra}::json, ${step.remark}, ${step.inputTokens}::bigint, ${step.outputTokens}::bigint, ${step.cacheReadTokens ?? 0}::bigint, ${at}::timestamptz
    from ${sql.unsafe(guard)}
    on conflict (workspace_id, run_id, step) do nothing returning workspace_id`
}
