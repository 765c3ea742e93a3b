import { isErased, RUN_ROW_COLUMNS } from '../../activity/runs/rows.ts'
import { ApiError, invalid, notFound } from '../../base/errors.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import { inTransaction, type Sql, type TransactionSql } from '../../stores/postgres/connect.ts'
import { budgetsOver } from '../run/plan.ts'
import type { HostedRun } from '../run/run.ts'
import type { HostedPhase } from '../run/state.ts'
import { executedBy, insertOutbox, phaseIs } from './fragments.ts'
import { OwnershipLost } from './progress.ts'

/** A run to be created. */
export interface PlannedRun extends HostedRun {
  readonly agentVersion: number
  readonly parentRunId: string | null
  readonly externalUserId: string | null
  readonly input: RawJson
  /** The session starts with this run. */
  readonly startsSession: boolean
}

/** A run to be created, with the process that creates it and the time. */
interface NewHostedRun extends PlannedRun {
  /** The process that executes it at once, unless it has to wait for its session; null if the run is only queued. */
  readonly owner: string | null
  /** The plan was made from an earlier reading of the agent, so the agent must still have this version. */
  readonly isAgentKnown: boolean
  /** How many runs may wait for its session. */
  readonly waitingMax: number
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * `executing`: by this process, from now on. `exists`: an earlier attempt of the same call has created it. `erased`: it was
 * deleted since. `changed`: not created, because the agent has changed since it was read.
 */
export type BeginResult = BegunPhase | NotBegunReason
type BegunPhase = Extract<HostedPhase, 'executing' | 'queued' | 'waiting'>
type NotBegunReason = 'exists' | 'erased' | 'changed'

/**
 * Creates the run of an invocation: its row, its first event, and its turn in the session.
 *
 * @param events stored if this process executes the run at once; otherwise the process that claims it writes them
 * @throws ApiError NOT_FOUND for a parent or session that does not exist in the workspace or for the agent,
 *   VALIDATION_ERROR for a session of another end user, RATE_LIMITED when too many runs wait for the session, CONFLICT
 *   for a run_id that is taken; OwnershipLost when its parent has ended or belongs to another process
 */
export async function beginRun(sql: Sql, run: NewHostedRun, events: readonly SystemEventRow[]): Promise<BeginResult> {
  if (run.sessionId === null) return insertRun(sql, run, run.owner === null ? 'queued' : 'executing', events)
  try {
    return await inTransaction(sql, async (tx) => {
      const hasTurn = run.startsSession ? await startSession(tx, run) : await takeSessionTurn(tx, run)
      const result = await insertRun(
        tx,
        run,
        !hasTurn ? 'waiting' : run.owner === null ? 'queued' : 'executing',
        events,
      )
      if (result === 'exists' || result === 'erased' || result === 'changed') throw new NotBegun(result)
      return result
    })
  } catch (error) {
    if (error instanceof NotBegun) return error.result
    throw error
  }
}

/** Rolls back the session turn that the call has taken. */
class NotBegun extends Error {
  constructor(readonly result: NotBegunReason) {
    super(result)
  }
}

async function startSession(tx: TransactionSql, run: NewHostedRun): Promise<boolean> {
  const at = new Date(run.at)
  await tx`
    insert into sessions (session_id, workspace_id, agent_id, external_user_id, turn_run_id, created_at, updated_at)
    values (${run.sessionId}, ${run.workspaceId}, ${run.agentId}, ${run.externalUserId}, ${run.runId}, ${at}, ${at})
    on conflict (session_id) do nothing`
  return true
}

/** Locks the session, so that its turn cannot pass to another run while this one joins the queue. */
async function takeSessionTurn(tx: TransactionSql, run: NewHostedRun): Promise<boolean> {
  const [session] = await tx<{ external_user_id: string | null; turn_run_id: string | null }[]>`
    select external_user_id, turn_run_id from sessions
    where workspace_id = ${run.workspaceId} and session_id = ${run.sessionId} and agent_id = ${run.agentId}
    for update`
  if (session === undefined) throw notFound('session', { param: 'session_id' })
  const { external_user_id: user, turn_run_id: turn } = session
  if (run.externalUserId !== null && user !== null && run.externalUserId !== user)
    throw invalid('external_user_id', 'the session belongs to another end user')
  if (turn === null || (run.externalUserId !== null && user === null)) {
    await tx`
      update sessions set turn_run_id = coalesce(turn_run_id, ${run.runId}::uuid),
        external_user_id = coalesce(external_user_id, ${run.externalUserId})
      where workspace_id = ${run.workspaceId} and session_id = ${run.sessionId}`
  }
  if (turn === null || turn === run.runId) return true
  await checkWaiting(tx, run)
  return false
}

/** @throws ApiError RATE_LIMITED */
async function checkWaiting(
  tx: TransactionSql,
  { runId, workspaceId, sessionId, waitingMax }: NewHostedRun,
): Promise<void> {
  const [{ others, isRepeat }] = await tx<[{ others: number; isRepeat: boolean }]>`
    select count(*)::int as others, coalesce(bool_or(run_id = ${runId}), false) as "isRepeat" from (
      select run_id from hosted_runs
      where workspace_id = ${workspaceId} and session_id = ${sessionId} and ${phaseIs(tx, 'waiting')}
      limit ${waitingMax}
    ) as line`
  if (others < waitingMax || isRepeat) return
  const message = `${waitingMax} runs are already waiting for this session`
  throw new ApiError('RATE_LIMITED', message, { reason: 'too_many_at_once', retryAfterSeconds: 5 })
}

interface BeginRow {
  readonly erased: boolean
  readonly agent_found: boolean
  readonly parent_found: boolean
  readonly inserted: boolean
  /** The runtime type of the run that already has this run_id. */
  readonly existing: 'external' | 'hosted' | null
}

async function insertRun(
  sql: Sql | TransactionSql,
  run: NewHostedRun,
  phase: BegunPhase,
  events: readonly SystemEventRow[],
): Promise<BeginResult> {
  const isExecuting = phase === 'executing'
  const at = new Date(run.at)
  const budgets = budgetsOver(run).map(({ runId }) => runId)
  const [outcome] = await sql<BeginRow[]>`
    with erased as (
      select ${sql.unsafe(isErased('i'))} as found
      from (select ${run.runId}::uuid as run_id, ${run.workspaceId}::uuid as workspace_id) i
    ), agent as (
      select ${!run.isAgentKnown} or exists (
        select from agents where agent_id = ${run.agentId} and workspace_id = ${run.workspaceId}
          and version = ${run.agentVersion} and status <> 'archived'
      ) as found
    ), parent as (
      select ${run.parentRunId}::uuid is null or exists (
        select from runs p where p.workspace_id = ${run.workspaceId} and p.run_id = ${run.parentRunId}
      ) as found
    ), above as (
      select from hosted_runs
      where ${executedBy(sql, { workspaceId: run.workspaceId, runId: run.parentRunId }, run.owner)}
      for share
    ), changed as (
      insert into runs as r (
        run_id, workspace_id, agent_id, agent_version, runtime_type, status, trigger_type, parent_run_id, session_id,
        external_user_id, metadata, input, created_at, started_at
      )
      select ${run.runId}::uuid, ${run.workspaceId}::uuid, ${run.agentId}::uuid, ${run.agentVersion}::int, 'hosted',
        ${isExecuting ? 'running' : 'queued'}, 'sdk', ${run.parentRunId}::uuid, ${run.sessionId}::text,
        ${run.externalUserId}, '{}'::json, ${run.input}::json, ${at}, ${isExecuting ? at : null}::timestamptz
      from parent join agent on agent.found join erased on not erased.found
      where parent.found and (${run.parentCallId}::uuid is null or exists (select from above))
      on conflict (workspace_id, run_id) do nothing
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), hosted as (
      insert into hosted_runs (
        run_id, workspace_id, agent_id, root_run_id, parent_call_id, session_id, plan, phase, owner, queued_at,
        budgeted_by
      )
      select run_id, workspace_id, agent_id, ${run.rootRunId}::uuid, ${run.parentCallId}::uuid, session_id::uuid,
        ${run.plan}::json, ${phase}, ${isExecuting ? run.owner : null}::uuid, ${at},
        ${budgets.length === 0 ? null : budgets}::uuid[]
      from changed
    ), logged as (
      ${insertOutbox(sql, isExecuting ? events : [], 'first', 'changed')}
    )
    select (select found from erased) as erased, (select found from agent) as agent_found, (select found from parent) as parent_found, exists (select from changed) as inserted,
      (
        select runtime_type from runs where workspace_id = ${run.workspaceId} and run_id = ${run.runId}
      ) as existing`
  if (outcome?.erased === true) return 'erased'
  if (outcome?.parent_found !== true) throw notFound('parent run', { param: 'parent_run_id' })
  if (outcome.inserted) return phase
  if (outcome.existing === null && !outcome.agent_found) return 'changed'
  if (outcome.existing === null && run.parentCallId !== null) throw new OwnershipLost()
  if (outcome.existing === 'external')
    throw new ApiError('CONFLICT', 'run_id is taken by another run', { reason: 'id_taken', param: 'run_id' })
  return 'exists'
}
