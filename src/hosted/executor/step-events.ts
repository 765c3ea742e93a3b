import type { RawJson } from '../../base/raw-json.ts'
import type { SystemEventRow } from '../../journal/rows.ts'
import type { ModelAnswer } from '../../model/model.ts'
import type { TerminalStatus } from '../../runs/state.ts'
import type { Call, HostedRun, Pause } from '../run/run.ts'
import { systemEvent } from '../store/system-event.ts'

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
    latency_ms: Math.round(latencyMs),
    cost_usd: costUsd,
    step,
    tool_calls: answer.toolCalls.length,
  })
}

/** The event of a call that is about to be made. */
export function startedEvent(run: HostedRun, at: number, call: Call): SystemEventRow {
  return systemEvent(run, at, 'tool.call.started', { ...toolKeys(call), input: call.input })
}

/** The event of a call that has a result. @param latencyMs how long the call took */
export function finishedEvent(run: HostedRun, at: number, call: Call, latencyMs: number): SystemEventRow {
  const outcome = { status: call.status, output: call.output, latency_ms: Math.round(latencyMs) }
  return systemEvent(
    run,
    at,
    'tool.call.finished',
    { ...toolKeys(call), ...outcome },
    call.status === 'failed' ? 'warn' : 'info',
  )
}

/** The event of a pause: what a person is asked. */
export function requestedEvent(run: HostedRun, at: number, pause: Pause): SystemEventRow {
  const expires_at = pause.expiresAt
  if (pause.type === 'approval') {
    const { pauseId: approval_id, tool, input } = pause
    return systemEvent(run, at, 'approval.requested', { approval_id, tool, input, expires_at })
  }
  const { pauseId: request_id, question, options } = pause
  return systemEvent(run, at, 'input.requested', { request_id, question, options, expires_at })
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

function toolKeys(call: Call): Record<string, unknown> {
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': call.tool,
    'gen_ai.tool.call.id': call.toolCallId,
    step: call.step,
    child_run_id: call.childRunId ?? undefined,
  }
}
