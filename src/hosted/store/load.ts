import type { RunIdentity } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { ModelToolCall } from '../../model/model.ts'
import type { Sql, TransactionSql } from '../../postgres/connect.ts'
import type { HistoryMessage, RunPlan } from '../run/plan.ts'
import type { Call, HostedRun, HostedRunRef, Pause, RunProgress, Step } from '../run/run.ts'
import { executedBy, pauseIs } from './fragments.ts'

/** How many of the newest messages of a session go to the model; older ones are kept for people to read. */
const SESSION_MESSAGES_MAX = 400

interface HostedRunRow extends Omit<HostedRun, 'plan'> {
  readonly plan: RawJson
  readonly usedMs: number
  readonly costUsd: number
  readonly spentUsd: number
}

/** What never changes about the run, without its plan; null when it is not a hosted run. */
export async function findRun(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<HostedRunRef | null> {
  const [row] = await sql<HostedRunRef[]>`
    select run_id as "runId", workspace_id as "workspaceId", agent_id as "agentId", parent_call_id as "parentCallId",
      session_id as "sessionId"
    from hosted_runs where workspace_id = ${workspaceId} and run_id = ${runId}`
  return row ?? null
}

/** The run with everything it has done; null when it does not exist. */
export async function loadProgress(sql: Sql, identity: RunIdentity): Promise<RunProgress | null> {
  const { workspaceId, runId } = identity
  const [[row], steps, calls, pauses] = await Promise.all([
    sql<HostedRunRow[]>`
      select h.run_id as "runId", h.workspace_id as "workspaceId", h.agent_id as "agentId",
        h.root_run_id as "rootRunId", h.parent_call_id as "parentCallId", h.session_id as "sessionId", h.plan,
        h.used_ms as "usedMs", r.cost_usd as "costUsd", h.spent_usd as "spentUsd"
      from hosted_runs h join runs r on r.workspace_id = h.workspace_id and r.run_id = h.run_id
      where h.workspace_id = ${workspaceId} and h.run_id = ${runId}`,
    loadSteps(sql, identity),
    loadCalls(sql, identity),
    loadPauses(sql, identity),
  ])
  if (row === undefined) return null
  const { usedMs, costUsd, spentUsd, ...run } = row
  const history = run.sessionId === null ? [] : await loadHistory(sql, run.workspaceId, run.sessionId)
  const plan = run.plan.parse() as RunPlan
  return { run: { ...run, plan }, history, steps, calls, pauses, usedMs, costUsd, spentUsd }
}

/**
 * The progress of a run for the process that executes it; null when it has another owner or has ended. Ownership is checked
 * last: only the owner changes the rows, so what was read before is the present state.
 */
export async function loadOwned(sql: Sql, run: RunIdentity, owner: string): Promise<RunProgress | null> {
  const progress = await loadProgress(sql, run)
  const [row] = await sql`
    select from hosted_runs where ${executedBy(sql, run, owner)}`
  return row === undefined ? null : progress
}

/** The progress of a run that has just started: none of its own, but its session may have a history. */
export async function loadStarted(
  sql: Sql,
  run: HostedRun & { readonly startsSession: boolean },
): Promise<RunProgress> {
  const fresh = { run, history: [], steps: [], calls: [], pauses: [], usedMs: 0, costUsd: 0, spentUsd: 0 }
  if (run.sessionId === null || run.startsSession) return fresh
  return (await loadProgress(sql, run)) ?? fresh
}

async function loadSteps(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<Step[]> {
  const rows = await sql<(Omit<Step, 'toolCalls'> & { readonly toolCalls: RawJson | null })[]>`
    select step, attempt, content, tool_calls as "toolCalls", remark, input_tokens as "inputTokens",
      output_tokens as "outputTokens"
    from run_steps where workspace_id = ${workspaceId} and run_id = ${runId} order by step`
  return rows.map((row) => ({ ...row, toolCalls: (row.toolCalls?.parse() ?? []) as ModelToolCall[] }))
}

async function loadCalls(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<Call[]> {
  return sql<Call[]>`
    select call_id as "callId", step, position, tool_call_id as "toolCallId", tool, input, status,
      child_run_id as "childRunId", output, started_frame as "startedFrame", finished_frame as "finishedFrame",
      duration_ms as "durationMs"
    from tool_calls where workspace_id = ${workspaceId} and run_id = ${runId} order by step, position`
}

/** The pending pauses, in the order in which they were requested. */
export async function loadPauses(sql: Sql | TransactionSql, { workspaceId, runId }: RunIdentity): Promise<Pause[]> {
  const rows = await sql<(Omit<Pause, 'options'> & { readonly options: RawJson | null })[]>`
    select pause_id as "pauseId", call_id as "callId", type, tool, input, question, options,
      expires_at as "expiresAt", frame
    from pauses where workspace_id = ${workspaceId} and run_id = ${runId} and ${pauseIs(sql, 'pending')} order by frame`
  return rows.map((row) => ({ ...row, options: (row.options?.parse() ?? null) as string[] | null }))
}

/** The messages that a session remembers, oldest first. */
async function loadHistory(sql: Sql, workspaceId: string, sessionId: string): Promise<HistoryMessage[]> {
  const rows = await sql<HistoryMessage[]>`
    select role, content from session_messages where workspace_id = ${workspaceId} and session_id = ${sessionId}
    order by position desc limit ${SESSION_MESSAGES_MAX}`
  return [...rows].reverse()
}
