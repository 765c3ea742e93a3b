import { ApiError } from '../http/errors.ts'
import type { RawJson } from '../http/raw-json.ts'
import { runKey } from '../ids.ts'
import { type Batcher, createBatcher } from '../postgres/batcher.ts'
import type { Sql } from '../postgres/connect.ts'
import { durationMs, RUN_ROW, RUN_ROW_COLUMNS } from './rows.ts'
import type { RunEnded } from './schema.ts'
import { RUN_TRANSITIONS, type RunStatus, type TerminalStatus } from './state.ts'

/** An ending that a caller reports or asks for. */
export interface RunMove {
  readonly runId: string
  readonly workspaceId: string
  readonly to: TerminalStatus
  readonly output: RawJson | null
  readonly errorMessage: string | null
  readonly errorDetail: RawJson | null
  /** Unix milliseconds. */
  readonly at: number
}

/**
 * Ends runs, many with one statement: the guarded updates, their outbox rows, one commit. A run that has ended the same
 * way before is answered as it stands (`already`); one that has ended otherwise is CONFLICT (contract section 4).
 */
export function createRunMoves(sql: Sql): Batcher<RunMove, RunEnded> {
  return createBatcher<RunMove, RunEnded>({
    run: async (moves) => {
      const outcomes = await update(sql, moves)
      const unmoved = moves.filter((_, index) => outcomes[index].completed_at === null)
      const standing = unmoved.length === 0 ? new Map<string, StandingRun>() : await findStanding(sql, unmoved)
      return moves.map((move, index) =>
        toResult(move, outcomes[index], standing.get(runKey(move.workspaceId, move.runId))),
      )
    },
    keyOf: ({ workspaceId, runId }) => runKey(workspaceId, runId),
    bytesOf: (move) => (move.output?.text.length ?? 0) + (move.errorDetail?.text.length ?? 0) + 500,
  })
}

/** Both null when the update did not apply. */
interface MoveOutcome {
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

/**
 * Rows are locked by workspace and run_id first, so that two statements that move the same ones never wait for each other
 * in a circle.
 * An ending never comes before the start, whatever the clocks say.
 */
async function update(sql: Sql, moves: readonly RunMove[]): Promise<readonly MoveOutcome[]> {
  return sql<MoveOutcome[]>`
    with item as (
      select * from unnest(
        ${moves.map((move) => move.runId)}::uuid[], ${moves.map((move) => move.workspaceId)}::uuid[],
        ${moves.map((move) => move.to)}::text[], ${moves.map((move) => move.output)}::json[],
        ${moves.map((move) => move.errorMessage)}::text[],
        ${moves.map((move) => move.errorDetail)}::json[],
        ${moves.map((move) => new Date(move.at).toISOString())}::timestamptz[]
      ) with ordinality as i (run_id, workspace_id, status, output, error_message, error_detail, at, n)
    ), locked as materialized (
      select i.* from runs r join item i on i.workspace_id = r.workspace_id and i.run_id = r.run_id
      order by r.workspace_id, r.run_id for no key update of r
    ), moved as (
      update runs r set
        status = i.status, output = i.output, error_message = i.error_message,
        error_detail = i.error_detail, completed_at = greatest(i.at, r.started_at)
      from locked i
      where r.workspace_id = i.workspace_id and r.run_id = i.run_id
        and r.status || '>' || i.status = any(${RUN_TRANSITIONS as string[]}::text[])
      returning ${sql.unsafe(RUN_ROW_COLUMNS)}
    ), logged as (
      insert into outbox (workspace_id, kind, body)
      select r.workspace_id, 'run', ${sql.unsafe(RUN_ROW)}
      from moved r join agents a on a.agent_id = r.agent_id
    )
    select r.started_at, r.completed_at 
    from item i left join moved r on r.workspace_id = i.workspace_id and r.run_id = i.run_id order by i.n`
}

interface StandingRun {
  readonly workspace_id: string
  readonly run_id: string
  readonly status: RunStatus
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

/** A second statement, because the first one's snapshot may be older than the ending that stood in its way. */
async function findStanding(sql: Sql, moves: readonly RunMove[]): Promise<Map<string, StandingRun>> {
  const rows = await sql<StandingRun[]>`
    select r.workspace_id, r.run_id, r.status, r.started_at, r.completed_at
    from runs r
    join unnest(
      ${moves.map((move) => move.runId)}::uuid[], ${moves.map((move) => move.workspaceId)}::uuid[]
    ) as i (run_id, workspace_id) on r.workspace_id = i.workspace_id and r.run_id = i.run_id`
  return new Map(rows.map((row) => [runKey(row.workspace_id, row.run_id), row]))
}

function toResult(move: RunMove, outcome: MoveOutcome, standing: StandingRun | undefined): RunEnded | ApiError {
  const { runId, to } = move
  if (outcome.completed_at !== null) return ended(runId, to, outcome.completed_at, outcome.started_at, false)
  if (standing === undefined) return new ApiError('NOT_FOUND', 'run does not exist')
  if (standing.status === to && standing.completed_at !== null) {
    return ended(runId, to, standing.completed_at, standing.started_at, true)
  }
  return new ApiError('CONFLICT', `run is ${standing.status} already; it cannot become ${to}`)
}

function ended(
  runId: string,
  status: TerminalStatus,
  completedAt: Date,
  startedAt: Date | null,
  already: boolean,
): RunEnded {
  return {
    run_id: runId,
    status,
    completed_at: completedAt.toISOString(),
    duration_ms: durationMs({ started_at: startedAt, completed_at: completedAt }),
    already,
  }
}
