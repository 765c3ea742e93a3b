import { RUN_ROW_COLUMNS, USAGE_COLUMNS, type UsageColumns, usageRecord, waitEnds } from '../../activity/runs/rows.ts'
import type { TerminalStatus } from '../../activity/runs/state.ts'
import type { Usage } from '../../activity/runs/usage-schema.ts'
import type { RunIdentity } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import type { HostedRunRef } from '../run/run.ts'
import {
  type HostedPhase,
  NEXT_PAUSE_STATUSES,
  NEXT_PHASES,
  nextPhase,
  type PauseStatus,
  statesBefore,
} from '../run/state.ts'
import { systemEvent, undecidedEvent } from './events.ts'
import { insertOutbox, insertStep, phaseIs, usageAdded } from './fragments.ts'
import { loadPauses } from './load.ts'
import { lockAncestors, wake } from './pausing.ts'
import type { PricedAnswer } from './progress.ts'

export interface RunEnd {
  readonly status: TerminalStatus
  readonly output?: RawJson | null
  readonly errorMessage: string | null
  readonly errorDetail?: RawJson | null
  /** The last answer of the model, if it is stored together with the end. */
  readonly last?: PricedAnswer | null
  readonly usedMs?: number
  /** What the session remembers of this run. */
  readonly remember?: { readonly user: string; readonly assistant: string } | null
  /** Unix milliseconds. */
  readonly at: number
  readonly events: readonly SystemEventRow[]
  /** Why the descendants end too; null: none of them is active. */
  readonly descendantsReason: string | null
  /** Whether the run may have pending pauses, which are then cancelled. False saves a query. */
  readonly mayHavePauses: boolean
}

interface EndedRun {
  readonly usage: Usage
  /** Descendants that ended with it. */
  readonly descendants: readonly RunIdentity[]
}

/**
 * Ends a hosted run: its state, its pauses, its descendants, its turn in the session, and the pause of a parent that
 * waits for it, all or nothing.
 *
 * @param owner ends the run only if this process executes it; null: in any state
 * @returns null when the run has already ended, or another process owns it
 */
export async function endRun(
  sql: Sql,
  run: HostedRunRef,
  owner: string | null,
  ending: RunEnd,
): Promise<EndedRun | null> {
  const isAlone =
    run.sessionId === null && run.parentCallId === null && ending.descendantsReason === null && !ending.mayHavePauses
  if (isAlone && owner !== null) {
    const ended = await updateRun(sql, run, owner, ending)
    return ended && { ...ended, descendants: [] }
  }
  return inTransaction(sql, async (tx) => {
    await lockToEnd(tx, run)
    return endLocked(tx, run, owner, ending)
  })
}

/**
 * Locks everything that ends with a run, in the order that all statements use: the session, then the ancestor chain
 * from the top down. What another process is storing for the run is committed by then, and visible to the statements
 * that follow.
 */
export async function lockToEnd(tx: TransactionSql, run: HostedRunRef): Promise<void> {
  const { workspaceId, sessionId } = run
  if (sessionId !== null)
    await tx`select from sessions where workspace_id = ${workspaceId} and session_id = ${sessionId} for update`
  await lockAncestors(tx, run)
}

/** As {@link endRun}, after {@link lockToEnd}. */
export async function endLocked(
  tx: TransactionSql,
  run: HostedRunRef,
  owner: string | null,
  ending: RunEnd,
): Promise<EndedRun | null> {
  const ended = await updateRun(tx, run, owner, await withCancelledPauses(tx, run, ending))
  if (ended === null) return null
  const descendants =
    ending.descendantsReason === null ? [] : await endDescendants(tx, run, ending.descendantsReason, ending.at)
  if (run.sessionId !== null) await endSessionTurn(tx, run, run.sessionId, ending)
  if (run.parentCallId !== null) await wakeParent(tx, run.workspaceId, run.parentCallId, ending.at)
  return { ...ended, descendants }
}

/** Ends the child runs of a run that has ended, and their descendants. @returns which */
async function endDescendants(
  tx: TransactionSql,
  { workspaceId, runId }: RunIdentity,
  reason: string,
  at: number,
): Promise<RunIdentity[]> {
  const children = await tx<ReportingRun[]>`
    select h.run_id as "runId", h.workspace_id as "workspaceId", h.agent_id as "agentId"
    from tool_calls c cross join lateral (
      select run_id, workspace_id, agent_id from hosted_runs
      where run_id = c.child_run_id and workspace_id = c.workspace_id
        and phase in ${tx(statesBefore(NEXT_PHASES, 'ended'))} for update
    ) h
    where c.workspace_id = ${workspaceId} and c.run_id = ${runId} order by c.step, c.position`
  const ended: RunIdentity[] = []
  for (const child of children) {
    const events = [systemEvent(child, at, 'run.cancelled', { error_message: reason }, 'warn')]
    const ending = {
      status: 'cancelled',
      errorMessage: reason,
      at,
      events,
      descendantsReason: null,
      mayHavePauses: true,
    } as const
    await updateRun(tx, child, null, await withCancelledPauses(tx, child, ending))
    ended.push(child, ...(await endDescendants(tx, child, reason, at)))
  }
  return ended
}

type ReportingRun = Pick<HostedRunRef, 'runId' | 'workspaceId' | 'agentId'>

/** Adds to an ending the events of the pauses that it cancels. Call with the run locked. */
async function withCancelledPauses(tx: TransactionSql, run: ReportingRun, ending: RunEnd): Promise<RunEnd> {
  if (!ending.mayHavePauses) return ending
  const pauses = await loadPauses(tx, run)
  return {
    ...ending,
    events: [...pauses.map((pause) => undecidedEvent(run, ending.at, pause, 'cancelled')), ...ending.events],
  }
}

/** A child has ended, so its parent, if paused, can continue. */
async function wakeParent(tx: TransactionSql, workspaceId: string, parentCallId: string, at: number): Promise<void> {
  const [call] = await tx<{ run_id: string }[]>`
    select run_id from tool_calls where workspace_id = ${workspaceId} and call_id = ${parentCallId}`
  if (call !== undefined) await wake(tx, await lockAncestors(tx, { workspaceId, runId: call.run_id }), at)
}

async function updateRun(
  sql: Sql | TransactionSql,
  { workspaceId, runId }: RunIdentity,
  owner: string | null,
  ending: RunEnd,
): Promise<Omit<EndedRun, 'descendants'> | null> {
  const { status, output = null, errorMessage, errorDetail = null, last, usedMs = 0 } = ending
  const at = new Date(ending.at)
  // The calls of a last answer are never made, so they are not part of the step; nor is what only its provider needs.
  const step = last ? { ...last.step, toolCalls: [], extra: undefined, remark: null } : null
  const { costUsd, spentUsd } = last?.cost ?? { costUsd: 0, spentUsd: 0 }
  const events = last ? [last.event, ...ending.events] : ending.events
  const [ended] = await sql<UsageColumns[]>`
    with ended as (
      update hosted_runs set phase = ${'ended' satisfies HostedPhase}, owner = null, used_ms = greatest(used_ms, ${usedMs}),
        spent_usd = spent_usd + ${spentUsd}::float8
      where workspace_id = ${workspaceId} and run_id = ${runId} and phase in ${sql(statesBefore(NEXT_PHASES, 'ended'))}
        and (${owner}::uuid is null or (owner = ${owner} and ${phaseIs(sql, 'executing')}))
      returning workspace_id
    ), stored as (
      ${insertStep(sql, runId, step, at, 'ended')}
    ), changed as (
      update runs r set status = ${status}, output = ${output}::json, error_message = ${errorMessage},
        error_detail = ${errorDetail}::json, pending = null, completed_at = greatest(${at}, r.started_at),
        ${waitEnds(sql, ending.at)},
        ${usageAdded(sql, step)},
        cost_usd = round((r.cost_usd + ${costUsd}::float8)::numeric, 10)::float8
      where r.workspace_id = ${workspaceId} and r.run_id = ${runId} and r.completed_at is null
        and exists (select from ended)
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), unasked as (
      update pauses set status = ${'cancelled' satisfies PauseStatus}, decided_at = ${at}
      where workspace_id = ${workspaceId} and run_id = ${runId}
        and status in ${sql(statesBefore(NEXT_PAUSE_STATUSES, 'cancelled'))} and exists (select from ended)
    ), logged as (
      ${insertOutbox(sql, events, 'last', 'changed')}
    )
    select ${sql.unsafe(USAGE_COLUMNS.join(', '))} from changed`
  return ended === undefined ? null : { usage: usageRecord(ended) }
}

/** Stores what the session remembers and passes its turn on. The session is locked; it may have been deleted. */
async function endSessionTurn(
  tx: TransactionSql,
  { workspaceId, runId }: RunIdentity,
  sessionId: string,
  ending: RunEnd,
): Promise<void> {
  const at = new Date(ending.at)
  if (ending.remember) {
    const { user, assistant } = ending.remember
    await tx`
      with remembered as (
        insert into session_messages (session_id, position, workspace_id, run_id, role, content, created_at)
        select s.session_id, s.message_count + i.n, s.workspace_id, ${runId}::uuid, i.role, i.content, ${at}
        from sessions s, (values (1, 'user', ${user}), (2, 'assistant', ${assistant})) as i (n, role, content)
        where s.workspace_id = ${workspaceId} and s.session_id = ${sessionId}
      )
      update sessions set message_count = message_count + 2, updated_at = ${at}
      where workspace_id = ${workspaceId} and session_id = ${sessionId}`
  }
  await tx`
    with next as (
      select workspace_id, run_id from hosted_runs
      where workspace_id = ${workspaceId} and session_id = ${sessionId} and ${phaseIs(tx, 'waiting')}
      order by queued_at, run_id limit 1
    ), given as (
      update sessions set turn_run_id = (select run_id from next)
      where workspace_id = ${workspaceId} and session_id = ${sessionId} and turn_run_id = ${runId}
      returning session_id
    )
    update hosted_runs h set phase = ${nextPhase('waiting', 'queued')} from next, given
    where h.workspace_id = next.workspace_id and h.run_id = next.run_id`
}
