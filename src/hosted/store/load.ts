import { RUN_USAGE, type UsageColumns, usageRecord } from '../../activity/runs/rows.ts'
import { isTerminal, type RunStatus } from '../../activity/runs/state.ts'
import { type RunIdentity, runKey } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { ModelToolCall, ProviderMembers } from '../../outbound/model/model.ts'
import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'
import type { HistoryMessage, RunPlan } from '../run/plan.ts'
import {
  type Call,
  type Cost,
  type EndedOutcome,
  type HostedRun,
  type HostedRunRef,
  parsePending,
  type RunOutcome,
  type RunProgress,
  type Step,
  type StoredPause,
} from '../run/run.ts'
import type { HostedPhase } from '../run/state.ts'
import { executedBy, pauseIs, phaseIs } from './fragments.ts'

/** How many of the newest messages of a session go to the model; older ones are kept for people to read. */
const SESSION_MESSAGES_MAX = 400

type HostedRunRow = Omit<HostedRun, 'plan'> & { readonly plan: RawJson } & Pick<RunProgress, 'usedMs' | keyof Cost>

/** What never changes about the run, without its plan; null when it is not a hosted run. */
export async function findRun(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<HostedRunRef | null> {
  const [row] = await sql<HostedRunRef[]>`
    select run_id as "runId", workspace_id as "workspaceId", agent_id as "agentId", parent_call_id as "parentCallId",
      session_id as "sessionId"
    from hosted_runs where workspace_id = ${workspaceId} and run_id = ${runId}`
  return row ?? null
}

/**
 * The run with everything it has done; null when it does not exist.
 * @param owner if given, null also when it does not execute the run. Checked after the other reads: otherwise a run that
 *   another process takes over in between would be loaded half old
 */
export async function loadProgress(sql: Sql, identity: RunIdentity, owner?: string): Promise<RunProgress | null> {
  const { workspaceId, runId } = identity
  const [steps, calls, pauses] = await Promise.all([
    loadSteps(sql, identity),
    loadCalls(sql, identity),
    loadPauses(sql, identity),
  ])
  const found =
    owner === undefined ? sql`workspace_id = ${workspaceId} and run_id = ${runId}` : executedBy(sql, identity, owner)
  const [row] = await sql<HostedRunRow[]>`
    select h.run_id as "runId", h.workspace_id as "workspaceId", h.agent_id as "agentId",
      h.root_run_id as "rootRunId", h.parent_call_id as "parentCallId", h.session_id as "sessionId", h.plan,
      h.used_ms as "usedMs", r.cost_usd as "costUsd", h.spent_usd as "spentUsd"
    from (select * from hosted_runs where ${found}) h
      join runs r on r.workspace_id = h.workspace_id and r.run_id = h.run_id`
  if (row === undefined) return null
  const { usedMs, costUsd, spentUsd, ...run } = row
  const history = run.sessionId === null ? [] : await loadHistory(sql, run.workspaceId, run.sessionId)
  const plan = run.plan.parse() as RunPlan
  return { run: { ...run, plan }, history, steps, calls, pauses, usedMs, costUsd, spentUsd }
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
  const rows = await sql<StepRow[]>`
    select step, attempt, content, tool_calls as "toolCalls", extra, remark, input_tokens as "inputTokens",
      output_tokens as "outputTokens", cache_read_tokens as "cacheReadTokens"
    from run_steps where workspace_id = ${workspaceId} and run_id = ${runId} order by step`
  return rows.map((row) => ({
    ...row,
    toolCalls: (row.toolCalls?.parse() ?? []) as ModelToolCall[],
    extra: row.extra?.parse() as ProviderMembers | undefined,
  }))
}

type StepRow = Omit<Step, 'toolCalls' | 'extra'> & { readonly [K in 'toolCalls' | 'extra']: RawJson | null }

async function loadCalls(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<Call[]> {
  return sql<Call[]>`
    select call_id as "callId", step, position, tool_call_id as "toolCallId", tool, input, status,
      child_run_id as "childRunId", output, started_frame as "startedFrame", finished_frame as "finishedFrame",
      duration_ms as "durationMs"
    from tool_calls where workspace_id = ${workspaceId} and run_id = ${runId} order by step, position`
}

/** The pending pauses, in the order in which they were requested. */
export async function loadPauses(
  sql: Sql | TransactionSql,
  { workspaceId, runId }: RunIdentity,
): Promise<StoredPause[]> {
  const rows = await sql<(Omit<StoredPause, 'options'> & { readonly options: RawJson | null })[]>`
    select pause_id as "pauseId", call_id as "callId", type, tool, input, question, options,
      expires_at as "expiresAt", frame, created_at as "requestedAt"
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

interface OutcomeRow extends Omit<EndedOutcome, 'kind' | 'status' | 'usage'>, UsageColumns {
  readonly status: RunStatus
  readonly phase: HostedPhase
  readonly executor: string | null
  readonly pending: RawJson | null
}

/** The current state of a hosted run; null when it does not exist. */
export async function readOutcome(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<RunOutcome | null> {
  const [row] = await sql<OutcomeRow[]>`
    select r.status, h.phase, h.owner as executor, r.pending, r.output, r.error_message as "errorMessage",
      r.error_detail as "errorDetail", ${sql.unsafe(RUN_USAGE)}
    from runs r join hosted_runs h on h.workspace_id = r.workspace_id and h.run_id = r.run_id
    where r.workspace_id = ${workspaceId} and r.run_id = ${runId}`
  if (row === undefined) return null
  const { status, phase, executor, pending, output, errorMessage, errorDetail } = row
  if (isTerminal(status)) return { kind: 'ended', status, output, errorMessage, errorDetail, usage: usageRecord(row) }
  if (phase === 'paused' && pending !== null) return { kind: 'paused', pending: parsePending(pending) }
  return { kind: 'released', status, executor: phase === 'executing' ? executor : null }
}

/** The processes that execute these runs, by {@link runKey}. Runs that no process executes are left out. */
export async function readExecutors(sql: Sql, runs: readonly RunIdentity[]): Promise<Map<string, string>> {
  const rows = await sql<(RunIdentity & { readonly executor: string })[]>`
    select h.workspace_id as "workspaceId", h.run_id as "runId", h.owner as executor
    from unnest(
      ${runs.map(({ workspaceId }) => workspaceId)}::uuid[], ${runs.map(({ runId }) => runId)}::uuid[]
    ) as i (workspace_id, run_id)
    join hosted_runs h on h.workspace_id = i.workspace_id and h.run_id = i.run_id
    where ${phaseIs(sql, 'executing')} and h.owner is not null`
  return new Map(rows.map(({ workspaceId, runId, executor }) => [runKey(workspaceId, runId), executor]))
}
