import { ApiError, notFound } from '../../base/errors.ts'
import { runKey } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { type Batcher, createBatcher } from '../../stores/postgres/batcher.ts'
import { jsonArray, type Sql } from '../../stores/postgres/connect.ts'
import { durationMs, findRuns, RUN_ROW_COLUMNS, runsToOutbox } from './rows.ts'
import type { RunEnded } from './schema.ts'
import { NEXT, RUN_TRANSITIONS, type RunStatus, type TerminalStatus } from './state.ts'
import type { ReportedUsage } from './usage-schema.ts'

/** A transition to a terminal status that a caller reports or asks for. */
export interface RunTransition {
  readonly runId: string
  readonly workspaceId: string
  readonly to: TerminalStatus
  readonly output: RawJson | null
  readonly errorMessage: string | null
  readonly errorDetail: RawJson | null
  /** Replaces what was counted. Null: what was counted stays, and what is counted later is added. */
  readonly usage: ReportedUsage | null
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * Ends runs in batches: one statement does the guarded updates and writes their outbox rows. A run that already has the
 * requested status is returned unchanged (`already`); one that ended with another status is a CONFLICT
 * (docs/runs.md#run-states).
 */
export function createRunTransitions(sql: Sql): Batcher<RunTransition, RunEnded> {
  return createBatcher<RunTransition, RunEnded>({
    run: (transitions) => endRuns(sql, transitions),
    keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
    ownerOf: ({ workspaceId }) => workspaceId,
    bytesOf: (transition) => (transition.output?.text.length ?? 0) + (transition.errorDetail?.text.length ?? 0) + 500,
  })
}

async function endRuns(sql: Sql, transitions: readonly RunTransition[]): Promise<(RunEnded | ApiError)[]> {
  const outcomes = await update(sql, transitions)
  const refused = transitions.filter((_, index) => outcomes[index].completed_at === null)
  // A second statement, because the snapshot of the first may be older than the transition that it conflicted with.
  const found = await findRuns<CurrentRun>(sql, refused, 'r.status, r.started_at, r.completed_at')
  const currentOf = ({ workspaceId, runId }: RunTransition) => found.get(runKey(workspaceId, runId))
  // These runs started between the two statements, so now they can end.
  const late = refused.filter((transition) => canEnd(currentOf(transition), transition))
  const ended = new Map(
    late.length === 0 ? [] : (await endRuns(sql, late)).map((result, index) => [late[index], result]),
  )
  return transitions.map(
    (transition, index) => ended.get(transition) ?? toResult(transition, outcomes[index], currentOf(transition)),
  )
}

function canEnd(current: CurrentRun | undefined, { to }: RunTransition): boolean {
  return current !== undefined && NEXT[current.status].includes(to)
}

/** Both null when the update did not apply. */
interface TransitionOutcome {
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

/**
 * Locks the rows in order of workspace and run_id first, so that two statements on the same runs cannot deadlock.
 * `completed_at` is never before `started_at`, even if the clocks disagree.
 */
async function update(sql: Sql, transitions: readonly RunTransition[]): Promise<readonly TransitionOutcome[]> {
  return sql<TransitionOutcome[]>`
    with item as (
      select * from unnest(
        ${transitions.map((transition) => transition.runId)}::uuid[], ${transitions.map((transition) => transition.workspaceId)}::uuid[],
        ${transitions.map((transition) => transition.to)}::text[], ${jsonArray(sql, transitions, 'output')},
        ${transitions.map((transition) => transition.errorMessage)}::text[],
        ${jsonArray(sql, transitions, 'errorDetail')},
        ${transitions.map((transition) => new Date(transition.at).toISOString())}::timestamptz[],
        ${transitions.map(({ usage }) => usage?.input_tokens ?? null)}::bigint[],
        ${transitions.map(({ usage }) => usage?.output_tokens ?? null)}::bigint[],
        ${transitions.map(({ usage }) => usage?.cache_read_tokens ?? 0)}::bigint[],
        ${transitions.map(({ usage }) => usage?.cache_write_tokens ?? 0)}::bigint[],
        ${transitions.map(({ usage }) => usage?.reasoning_tokens ?? 0)}::bigint[],
        ${transitions.map(({ usage }) => usage?.cost_usd ?? null)}::double precision[]
      ) with ordinality as i (run_id, workspace_id, status, output, error_message, error_detail, at, input_tokens,
                              output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd, n)
    ), locked as materialized (
      select i.* from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      order by r.workspace_id, r.run_id for no key update of r
    ), updated as (
      update runs r set
        status = i.status, output = i.output, error_message = i.error_message,
        error_detail = i.error_detail, completed_at = greatest(i.at, r.started_at),
        input_tokens = coalesce(i.input_tokens, r.input_tokens), is_usage_reported = i.input_tokens is not null,
        output_tokens = coalesce(i.output_tokens, r.output_tokens),
        cache_read_tokens = case when i.input_tokens is null then r.cache_read_tokens else i.cache_read_tokens end,
        cache_write_tokens = case when i.input_tokens is null then r.cache_write_tokens else i.cache_write_tokens end,
        reasoning_tokens = case when i.input_tokens is null then r.reasoning_tokens else i.reasoning_tokens end,
        cost_usd = coalesce(i.cost_usd, r.cost_usd), is_cost_reported = i.cost_usd is not null
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id
        and r.status || '>' || i.status = any(${RUN_TRANSITIONS as string[]}::text[])
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), logged as (${sql.unsafe(runsToOutbox('updated r'))}), written as (
      delete from run_usage_changes c using updated r where c.workspace_id = r.workspace_id and c.run_id = r.run_id
    )
    select r.started_at, r.completed_at
    from item i left join updated r on r.workspace_id = i.workspace_id and r.run_id = i.run_id order by i.n`
}

interface CurrentRun extends TransitionOutcome {
  readonly status: RunStatus
}

function toResult(
  { runId, to }: RunTransition,
  outcome: TransitionOutcome,
  current: CurrentRun | undefined,
): RunEnded | ApiError {
  const already = outcome.completed_at === null
  if (already && current === undefined) return notFound('run')
  const { status, started_at, completed_at } = already ? current! : { ...outcome, status: to }
  if (status !== to || completed_at === null)
    return new ApiError('CONFLICT', `run is already ${status}; it cannot become ${to}`, { reason: 'run_ended' })
  return {
    run_id: runId,
    status,
    completed_at: completed_at.toISOString(),
    duration_ms: durationMs({ started_at, completed_at }),
    already,
  }
}
