import type { TerminalStatus } from '../../activity/runs/state.ts'
import { mint, type RunIdentity } from '../../base/ids.ts'
import { encodeJson, type RawJson } from '../../base/raw-json.ts'
import type { ModelAnswer } from '../../outbound/model/model.ts'
import { type LEVELS, levelNumber } from '../../stores/journal/levels.ts'
import type { SystemEventRow } from '../../stores/journal/rows.ts'
import type { Call, HostedRun, Pause, StoredPause } from '../run/run.ts'

/**
 * The events that hosted runs report about themselves (docs/events.md#system-events). `gen_ai.*` keys follow
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
  | `${Pause['type']}.${'expired' | 'cancelled'}`

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

/** The event of an answer of the model. */
export function modelEvent(
  run: HostedRun,
  at: number,
  answer: ModelAnswer,
  { step, latencyMs, costUsd }: { readonly step: number; readonly latencyMs: number; readonly costUsd: number },
): SystemEventRow {
  return systemEvent(run, at, 'llm.call', {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': run.plan.agent.model,
    'gen_ai.response.model': answer.model,
    'gen_ai.response.id': answer.responseId ?? undefined,
    'gen_ai.response.finish_reasons': [answer.finishReason],
    'gen_ai.usage.input_tokens': answer.usage.inputTokens,
    'gen_ai.usage.output_tokens': answer.usage.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': answer.usage.cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens': answer.usage.cacheWriteTokens,
    'gen_ai.usage.reasoning.output_tokens': answer.usage.reasoningTokens,
    settings_left_out: answer.leftOut,
    latency_ms: Math.round(latencyMs),
    cost_usd: costUsd,
    step,
    tool_calls: answer.toolCalls.length,
  })
}

/** The event of a call that is about to be made, or that has a result. @param isRejected a person refused it, so that it was never made */
export function callEvent(run: HostedRun, at: number, call: Call, isRejected = false): SystemEventRow {
  const { input, output, durationMs } = call
  const status = isRejected ? 'rejected' : call.status
  const keys = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': call.tool,
    'gen_ai.tool.call.id': call.toolCallId,
    step: call.step,
    child_run_id: call.childRunId ?? undefined,
  }
  if (status === 'started') return systemEvent(run, at, 'tool.call.started', { ...keys, input })
  const result = { status, output, latency_ms: durationMs ?? 0 }
  return systemEvent(run, at, 'tool.call.finished', { ...keys, ...result }, status === 'failed' ? 'warn' : 'info')
}

/**
 * The event of a pause: what a person is asked. ClickHouse derives its table `pauses` from the events of pauses, so each
 * event repeats what the earlier ones of its pause say, and free-form members come last.
 */
export function requestedEvent(run: HostedRun, at: number, pause: Pause): SystemEventRow {
  const { type, pauseId, expiresAt: expires_at, tool, input, question, options } = pause
  return type === 'approval'
    ? systemEvent(run, at, 'approval.requested', { approval_id: pauseId, expires_at, tool, input })
    : systemEvent(run, at, 'input.requested', { request_id: pauseId, expires_at, question, options })
}

/** The event of a pause that ended without a decision: it expired, or its run ended. @param at Unix milliseconds */
export function undecidedEvent(
  run: EventOwner,
  at: number,
  pause: StoredPause,
  status: 'expired' | 'cancelled',
): SystemEventRow {
  const { type, pauseId, requestedAt: requested_at, expiresAt: expires_at, tool, input, question, options } = pause
  return type === 'approval'
    ? systemEvent(run, at, `approval.${status}`, { approval_id: pauseId, requested_at, expires_at, tool, input })
    : systemEvent(run, at, `input.${status}`, { request_id: pauseId, requested_at, expires_at, question, options })
}

/** What a run has done, as of its end. */
interface RunSummary {
  readonly steps: number
  readonly toolCalls: number
  readonly costUsd: number
  readonly message: string | null
  readonly errorDetail: RawJson | null
}

/** The event of a run that has ended. */
export function endedEvent(run: HostedRun, at: number, status: TerminalStatus, summary: RunSummary): SystemEventRow {
  const { steps, toolCalls: tool_calls, costUsd: cost_usd, message, errorDetail } = summary
  const error = { error_message: message ?? undefined, error_detail: errorDetail ?? undefined }
  const level = status === 'completed' ? 'info' : 'error'
  return systemEvent(run, at, `run.${status}`, { steps, tool_calls, cost_usd, ...error }, level)
}
