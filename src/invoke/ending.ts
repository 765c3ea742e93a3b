import type { RawJson } from '../http/raw-json.ts'
import type { OwnEventRow } from '../journal/rows.ts'
import type { Sql, TransactionSql } from '../postgres/connect.ts'
import { RUN_ROW_COLUMNS } from '../runs/rows.ts'
import type { RunEnding } from '../runs/state.ts'
import { type HostedRun, logged, type Step } from './rows.ts'
import { wakeParent } from './waking.ts'

export interface Ending {
  readonly status: RunEnding
  readonly output: RawJson | null
  readonly errorMessage: string | null
  readonly errorDetail: RawJson | null
  /** The last answer of the model, where it is stored together with the end. */
  readonly step: Step | null
  readonly costUsd: number
  readonly usedMs: number
  /** What the session is to remember of the turn. */
  readonly remember: { readonly user: string; readonly assistant: string } | null
  /** Unix milliseconds. */
  readonly at: number
  readonly events: readonly OwnEventRow[]
}

export interface Ended {
  readonly inputTokens: number
  readonly outputTokens: number
}

/**
 * Ends a hosted run for good: its state, what it was waiting for, its turn in the session, and a parent that waits for
 * it, all or nothing.
 *
 * @param owner only if this process drives it; null: whoever does
 * @returns null when the run is over already, or driven by another process
 */
export async function endRun(sql: Sql, run: HostedRun, owner: string | null, ending: Ending): Promise<Ended | null> {
  if (run.sessionId === null && run.parentCallId === null) return updateRun(sql, run, owner, ending)
  return (await sql.begin(async (transaction) => {
    const tx = transaction as unknown as TransactionSql
    // In this order everywhere: the session, the parent, the run.
    if (run.sessionId !== null) await tx`select from sessions where session_id = ${run.sessionId} for update`
    if (run.parentCallId !== null) await wakeParent(tx, run.parentCallId)
    const ended = await updateRun(tx, run, owner, ending)
    if (ended !== null && run.sessionId !== null) await endTurn(tx, run, run.sessionId, ending)
    return ended
  })) as Ended | null
}

async function updateRun(
  sql: Sql | TransactionSql,
  run: HostedRun,
  owner: string | null,
  ending: Ending,
): Promise<Ended | null> {
  const { step, status } = ending
  const at = new Date(ending.at)
  const [ended] = await sql<Ended[]>`
    with over as (
      update hosted_runs set phase = 'over', owner = null, used_ms = greatest(used_ms, ${ending.usedMs})
      where run_id = ${run.runId} and phase <> 'over'
        and (${owner}::uuid is null or (owner = ${owner} and phase = 'driven'))
      returning workspace_id
    ), stored as (
      insert into run_steps (
        run_id, step, workspace_id, attempt, content, tool_calls, remark, input_tokens, output_tokens, created_at
      )
      select ${run.runId}::uuid, ${step?.step ?? 0}::int, workspace_id, ${step?.attempt ?? ''}, ${step?.content ?? null},
        null, null, ${step?.inputTokens ?? 0}::bigint, ${step?.outputTokens ?? 0}::bigint, ${at}
      from over where ${step !== null}
      on conflict (run_id, step) do nothing
    ), moved as (
      update runs r set status = ${status}, output = ${ending.output}::json, error_message = ${ending.errorMessage},
        error_detail = ${ending.errorDetail}::json, pending = null, completed_at = greatest(${at}, r.started_at),
        input_tokens = r.input_tokens + ${step?.inputTokens ?? 0}::bigint,
        output_tokens = r.output_tokens + ${step?.outputTokens ?? 0}::bigint,
        cost_usd = r.cost_usd + ${ending.costUsd}::float8
      where r.run_id = ${run.runId} and r.completed_at is null and exists (select from over)
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), unasked as (
      update pauses set status = 'cancelled', decided_at = ${at}
      where run_id = ${run.runId} and status = 'pending' and exists (select from over)
    ), logged as (
      ${logged(sql, ending.events, 'last', 'moved')}
    )
    select input_tokens as "inputTokens", output_tokens as "outputTokens" from moved`
  return ended ?? null
}

/** Remembers the turn and gives it on. The session is locked; it may have been deleted. */
async function endTurn(tx: TransactionSql, run: HostedRun, sessionId: string, ending: Ending): Promise<void> {
  const at = new Date(ending.at)
  if (ending.remember !== null) {
    const { user, assistant } = ending.remember
    await tx`
      with told as (
        insert into session_messages (session_id, position, workspace_id, run_id, role, content, created_at)
        select s.session_id, s.message_count + i.n, s.workspace_id, ${run.runId}::uuid, i.role, i.content, ${at}
        from sessions s, (values (1, 'user', ${user}), (2, 'assistant', ${assistant})) as i (n, role, content)
        where s.session_id = ${sessionId}
      )
      update sessions set message_count = message_count + 2, updated_at = ${at} where session_id = ${sessionId}`
  }
  await tx`
    with next as (
      select run_id from hosted_runs where session_id = ${sessionId} and phase = 'waiting'
      order by queued_at, run_id limit 1
    ), given as (
      update sessions set turn_run_id = (select run_id from next)
      where session_id = ${sessionId} and turn_run_id = ${run.runId} returning session_id
    )
    update hosted_runs h set phase = 'queued' from next, given where h.run_id = next.run_id`
}
