import type { RawJson } from '../../http/raw-json.ts'
import type { RunIdentity } from '../../ids.ts'
import type { Sql } from '../../postgres/connect.ts'
import { isTerminal, type RunStatus } from '../../runs/state.ts'
import type { RunResponse } from '../invoke/schema.ts'
import type { HostedPhase } from '../state.ts'
import { type PendingPause, parsePending, type RunOutcome } from './rows.ts'

interface OutcomeRow {
  readonly status: RunStatus
  readonly phase: HostedPhase
  readonly output: RawJson | null
  readonly error_message: string | null
  readonly error_detail: RawJson | null
  readonly pending: RawJson | null
  readonly input_tokens: number
  readonly output_tokens: number
}

/** How a hosted run stands; null when it does not exist. */
export async function readOutcome(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<RunOutcome | null> {
  const [row] = await sql<OutcomeRow[]>`
    select r.status, h.phase, r.output, r.error_message, r.error_detail, r.pending, r.input_tokens, r.output_tokens
    from runs r join hosted_runs h on h.workspace_id = r.workspace_id and h.run_id = r.run_id
    where r.workspace_id = ${workspaceId} and r.run_id = ${runId}`
  if (row === undefined) return null
  const { status, output } = row
  if (isTerminal(status)) {
    return {
      kind: 'ended',
      status,
      output,
      errorMessage: row.error_message,
      errorDetail: row.error_detail,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
    }
  }
  if (row.phase === 'paused' && row.pending !== null) return { kind: 'paused', pending: parsePending(row.pending) }
  return { kind: 'released', status }
}

/** The response for a caller (docs/specification.md#outcomes), and its HTTP status. */
export function answerOf(
  { runId, sessionId }: { readonly runId: string; readonly sessionId: string | null },
  outcome: RunOutcome,
): { readonly status: 200 | 202; readonly data: RunResponse } {
  const base = { run_id: runId, session_id: sessionId }
  if (outcome.kind === 'released') return { status: 202, data: { ...base, status: outcome.status, output: null } }
  if (outcome.kind === 'paused') return { status: 202, data: { ...base, ...waiting(outcome.pending), output: null } }
  const { status, output, inputTokens, outputTokens } = outcome
  const usage = { input_tokens: inputTokens, output_tokens: outputTokens, total_tokens: inputTokens + outputTokens }
  if (status === 'completed') return { status: 200, data: { ...base, status, output: output!, usage } }
  const { errorMessage: error_message, errorDetail: error_detail } = outcome
  return { status: 200, data: { ...base, status, output: null, error_message, error_detail, usage } }
}

function waiting(pending: PendingPause) {
  if (pending.type === 'approval') {
    const { id: approval_id, tool, input, expires_at } = pending
    return { status: 'awaiting_approval' as const, awaiting_approval: { approval_id, tool, input, expires_at } }
  }
  const { id: request_id, question, options, expires_at } = pending
  const asked = { request_id, question, ...(options !== undefined && { options: [...options] }), expires_at }
  return { status: 'awaiting_input' as const, awaiting_input: asked }
}
