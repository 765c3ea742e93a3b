import { type RunIdentity, runKey } from '../../base/ids.ts'
import type { RawJson } from '../../base/raw-json.ts'
import type { Sql } from '../../postgres/connect.ts'
import { isTerminal, type RunStatus } from '../../runs/state.ts'
import type { HostedPhase } from '../state.ts'
import { parsePending, type RunOutcome } from './rows.ts'

interface OutcomeRow {
  readonly status: RunStatus
  readonly phase: HostedPhase
  readonly executor: string | null
  readonly output: RawJson | null
  readonly error_message: string | null
  readonly error_detail: RawJson | null
  readonly pending: RawJson | null
  readonly input_tokens: number
  readonly output_tokens: number
}

/** The current state of a hosted run; null when it does not exist. */
export async function readOutcome(sql: Sql, { workspaceId, runId }: RunIdentity): Promise<RunOutcome | null> {
  const [row] = await sql<OutcomeRow[]>`
    select r.status, h.phase, h.owner as executor, r.output, r.error_message, r.error_detail, r.pending, r.input_tokens, r.output_tokens
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
  return { kind: 'released', status, executor: row.phase === 'executing' ? row.executor : null }
}

/** The processes that execute these runs, by {@link runKey}. Runs that nobody executes are left out. */
export async function readExecutors(sql: Sql, runs: readonly RunIdentity[]): Promise<Map<string, string>> {
  const rows = await sql<(RunIdentity & { readonly executor: string })[]>`
    select h.workspace_id as "workspaceId", h.run_id as "runId", h.owner as executor
    from unnest(
      ${runs.map(({ workspaceId }) => workspaceId)}::uuid[], ${runs.map(({ runId }) => runId)}::uuid[]
    ) as i (workspace_id, run_id)
    join hosted_runs h on h.workspace_id = i.workspace_id and h.run_id = i.run_id
    where h.phase = 'executing' and h.owner is not null`
  return new Map(rows.map(({ workspaceId, runId, executor }) => [runKey(workspaceId, runId), executor]))
}
