import { mint, type RunIdentity } from '../../base/ids.ts'
import { encodeJson } from '../../base/raw-json.ts'
import { type LEVELS, levelNumber } from '../../journal/levels.ts'
import type { SystemEventRow } from '../../journal/rows.ts'

/**
 * The events that hosted runs report about themselves (docs/specification.md#system-events). `gen_ai.*` keys follow
 * OpenTelemetry's conventions.
 */

interface EventOwner extends RunIdentity {
  readonly agentId: string
}

type SystemEventType =
  | 'run.started'
  | 'run.paused'
  | 'run.completed'
  | 'run.failed'
  | 'run.cancelled'
  | 'run.timed_out'
  | 'llm.call'
  | 'tool.call.started'
  | 'tool.call.finished'
  | 'approval.requested'
  | 'approval.decided'
  | 'input.requested'
  | 'input.answered'

/** A system event of a run. @param at Unix milliseconds */
export function systemEvent(
  run: EventOwner,
  at: number,
  type: SystemEventType,
  payload: Readonly<Record<string, unknown>>,
  level: (typeof LEVELS)[number] = 'info',
): SystemEventRow {
  return {
    workspace_id: run.workspaceId,
    agent_id: run.agentId,
    run_id: run.runId,
    event_id: mint.ulid(),
    type,
    level: levelNumber(level),
    payload: encodeJson(payload),
    occurred_at: at,
  }
}
