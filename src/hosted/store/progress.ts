import { RUN_ROW_COLUMNS } from '../../activity/runs/rows.ts'
import { encodeJson, RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import { jsonArray, type Sql } from '../../stores/postgres/connect.ts'
import {
  type Call,
  type Cost,
  type HostedRun,
  type Pause,
  type PendingPause,
  pausedStatus,
  type Step,
} from '../run/run.ts'
import { NEXT_CALL_STATUSES, nextPhase, type PauseStatus, statesBefore } from '../run/state.ts'
import { executedBy, insertOutbox, insertStep, usageAdded } from './fragments.ts'

/**
 * What an executor stores as it proceeds. Every statement applies only while this process executes the run: a process
 * that was presumed dead, and whose run another one has claimed, changes nothing and gets {@link OwnershipLost}.
 */

/** Another process owns the run now, or it has ended. */
export class OwnershipLost extends Error {}

/** An answer of the model that is stored together with what follows from it. */
export interface PricedAnswer {
  readonly step: Step
  readonly cost: Cost
  /** Its `llm.call`. */
  readonly event: SystemEventRow
}

export interface StoredAnswer extends PricedAnswer {
  /** The new calls of this step. */
  readonly calls: readonly Call[]
  readonly pauses: readonly Pause[]
  /** What the run waits for, if it pauses with this answer: each of its calls waits for a person, or has a result. */
  readonly pending: PendingPause | null
  readonly usedMs: number
  /** Unix milliseconds. */
  readonly at: number
  /** Of the calls and pauses, and `run.paused` if the run pauses. */
  readonly events: readonly SystemEventRow[]
}

/**
 * Stores an answer of the model and the calls it requests, before any of them is made, and pauses the run if it has to
 * wait for people. Storing the same answer again changes nothing while the run continues.
 * @throws OwnershipLost, also when another answer is already stored for this step: only the calls of that one are made;
 *   and when an earlier attempt has paused the run
 */
export async function storeAnswer(sql: Sql, run: HostedRun, owner: string, answer: StoredAnswer): Promise<void> {
  const { step, cost, calls, pauses, pending } = answer
  const at = new Date(answer.at)
  // Storing may be tried again after it has succeeded, and the run may have continued since.
  const isNew = sql`
    not exists (
      select from run_steps where workspace_id = ${run.workspaceId} and run_id = ${run.runId} and step = ${step.step}
    )`
  const pausing = pending === null ? sql`` : sql`, phase = ${nextPhase('executing', 'paused')}, owner = null`
  const [outcome] = await sql<{ owned: boolean; inserted: boolean; existing: string | null }[]>`
    with owned as (
      update hosted_runs set used_ms = ${answer.usedMs}, reserved_usd = 0,
        spent_usd = spent_usd + case when ${isNew} then ${cost.spentUsd}::float8 else 0 end${pausing}
      where ${executedBy(sql, run, owner)} ${pending === null ? sql`` : sql`and ${isNew}`}
      returning workspace_id
    ), stored as (
      ${insertStep(sql, run.runId, step, at, 'owned')}
    ), called as (
      insert into tool_calls (
        call_id, run_id, workspace_id, step, position, tool_call_id, tool, input, status, child_run_id, output,
        started_at, finished_at, started_frame, finished_frame
      )
      select i.call_id, ${run.runId}::uuid, s.workspace_id, ${step.step}::int, i.position, i.tool_call_id, i.tool,
        i.input, i.status, i.child_run_id, i.output, case when i.started_frame is not null then ${at}::timestamptz end,
        case when i.finished_frame is not null then ${at}::timestamptz end, i.started_frame, i.finished_frame
      from stored s, unnest(
        ${calls.map((call) => call.callId)}::uuid[], ${calls.map((call) => call.position)}::int[],
        ${calls.map((call) => call.toolCallId)}::text[], ${calls.map((call) => call.tool)}::text[],
        ${jsonArray(sql, calls, 'input')}, ${calls.map((call) => call.status)}::text[],
        ${calls.map((call) => call.childRunId)}::uuid[], ${jsonArray(sql, calls, 'output')},
        ${calls.map((call) => call.startedFrame)}::int[], ${calls.map((call) => call.finishedFrame)}::int[]
      ) as i (call_id, position, tool_call_id, tool, input, status, child_run_id, output, started_frame, finished_frame)
    ), paused as (
      insert into pauses (
        pause_id, workspace_id, agent_id, run_id, call_id, type, status, tool, input, question, options, created_at,
        expires_at, frame
      )
      select i.pause_id, s.workspace_id, ${run.agentId}::uuid, ${run.runId}::uuid, i.call_id, i.type, ${'pending' satisfies PauseStatus}, i.tool,
        i.input, i.question, i.options, ${at}, i.expires_at, i.frame
      from stored s, unnest(
        ${pauses.map((pause) => pause.pauseId)}::uuid[], ${pauses.map((pause) => pause.callId)}::uuid[],
        ${pauses.map((pause) => pause.type)}::text[], ${pauses.map((pause) => pause.tool)}::text[],
        ${pauses.map((pause) => pause.input)}::json[], ${pauses.map((pause) => pause.question)}::text[],
        ${pauses.map((pause) => (pause.options === null ? null : RawJson.of(pause.options)))}::json[],
        ${pauses.map((pause) => pause.expiresAt?.toISOString() ?? null)}::timestamptz[],
        ${pauses.map((pause) => pause.frame)}::int[]
      ) as i (pause_id, call_id, type, tool, input, question, options, expires_at, frame)
    ), changed as (
      update runs r set ${usageAdded(sql, step)}, cost_usd = round((r.cost_usd + ${cost.costUsd}::float8)::numeric, 10)::float8
        ${pending === null ? sql`` : sql`, status = ${pausedStatus(pending)}, pending = ${new RawJson(encodeJson(pending))}::json, waiting_since = ${at}`}
      where r.workspace_id = ${run.workspaceId} and r.run_id = ${run.runId} and exists (select from stored)
      ${pending === null ? sql`` : sql`returning ${sql.unsafe(RUN_ROW_COLUMNS)}`}
    ), logged as (
      ${insertOutbox(sql, [answer.event, ...answer.events], pending === null ? 'none' : 'last', 'stored')}
    )
    select exists (select from owned) as owned, exists (select from stored) as inserted, (
      select attempt from run_steps
      where workspace_id = ${run.workspaceId} and run_id = ${run.runId} and step = ${step.step}
    ) as existing`
  if (!outcome!.owned) throw new OwnershipLost()
  if (!outcome!.inserted && outcome!.existing !== step.attempt) throw new OwnershipLost()
}

/** Stores that a call has started, or its result; a call with a result is never made again. @throws OwnershipLost */
export async function storeCall(
  sql: Sql,
  run: HostedRun,
  owner: string,
  call: Call,
  change: { readonly usedMs: number; readonly at: number; readonly events: readonly SystemEventRow[] },
): Promise<void> {
  const { status, output, durationMs: duration_ms, startedFrame, finishedFrame: finished_frame } = call
  const at = new Date(change.at)
  const update =
    status === 'started'
      ? { status, started_at: at, started_frame: startedFrame }
      : { status, output, finished_at: at, duration_ms, finished_frame }
  const [outcome] = await sql<{ owned: boolean }[]>`
    with owned as (
      update hosted_runs set used_ms = ${change.usedMs}
      where ${executedBy(sql, run, owner)}
      returning run_id
    ), changed as (
      update tool_calls set ${sql(update)}
      where workspace_id = ${run.workspaceId} and call_id = ${call.callId}
        and status in ${sql(statesBefore(NEXT_CALL_STATUSES, status))} and exists (select from owned)
      returning call_id
    ), logged as (
      ${insertOutbox(sql, change.events, 'none', 'changed')}
    )
    select exists (select from owned) as owned`
  if (!outcome!.owned) throw new OwnershipLost()
}
