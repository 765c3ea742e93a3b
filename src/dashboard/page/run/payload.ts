import { words } from '../../../base/format.ts'

/**
 * What payloads of events say, in the conventions of OpenTelemetry (`gen_ai.*`), OpenInference (`llm.*`), the Vercel AI SDK
 * (`ai.*`) and Traceloop (`gen_ai.prompt.N`), with flat or nested keys.
 */

export interface CallUsage {
  readonly model: string | null
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

/** The member at a path, whose dots may be part of a key or separate nested objects. */
export function fieldOf(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const members = value as Readonly<Record<string, unknown>>
  if (Object.hasOwn(members, path)) return members[path]
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    const found = Object.hasOwn(members, head) ? fieldOf(members[head], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The first of several paths that has a value. */
export function firstOf(value: unknown, paths: readonly string[]): unknown {
  for (const path of paths) {
    const found = fieldOf(value, path)
    if (found !== undefined && found !== null && found !== '') return found
  }
  return undefined
}

export function modelOf(payload: unknown): string | null {
  const model = firstOf(payload, [
    'gen_ai.request.model',
    'gen_ai.response.model',
    'llm.model_name',
    'ai.model.id',
    'model',
  ])
  return typeof model === 'string' ? model : null
}

export function usageOf(payload: unknown): CallUsage {
  return {
    model: modelOf(payload),
    inputTokens: numberOf(fieldOf(payload, 'gen_ai.usage.input_tokens')),
    outputTokens: numberOf(fieldOf(payload, 'gen_ai.usage.output_tokens')),
    costUsd: numberOf(fieldOf(payload, 'cost_usd')),
  }
}

/** Why a model stopped: `stop`, `length`, `tool_calls`, … */
export function finishReasonOf(payload: unknown): string | null {
  const reasons = firstOf(payload, [
    'gen_ai.response.finish_reasons',
    'ai.response.finishReason',
    'gen_ai.completion.0.finish_reason',
    'finish_reason',
    'stop_reason',
  ])
  const [first] = Array.isArray(reasons) ? reasons : [reasons]
  return typeof first === 'string' && first !== '' ? words(first) : null
}

/** In milliseconds; 0 if unknown. */
export function latencyOf(payload: unknown): number {
  return Math.max(0, numberOf(firstOf(payload, ['latency_ms', 'duration_ms'])))
}

export interface ToolCall {
  /** `tool` if the payload has no name. */
  readonly name: string
  readonly isNamed: boolean
  readonly callId: string | null
}

export function toolOf(payload: unknown): ToolCall {
  const name = firstOf(payload, ['gen_ai.tool.name', 'tool.name', 'tool', 'name'])
  const callId = firstOf(payload, ['gen_ai.tool.call.id', 'tool_call_id', 'tool_call.id'])
  // Models reuse the ids of calls in later steps.
  const step = fieldOf(payload, 'step')
  return {
    name: typeof name === 'string' ? name : 'tool',
    isNamed: typeof name === 'string',
    callId: typeof callId === 'string' ? `${callId} ${step === undefined ? '' : String(step)}` : null,
  }
}

export function childRunOf(payload: unknown): string | null {
  const id = fieldOf(payload, 'child_run_id')
  return typeof id === 'string' ? id : null
}

function numberOf(value: unknown): number {
  // A number whose digits were kept is an object that prints as them.
  const number = typeof value === 'object' && value !== null ? Number(JSON.stringify(value)) : Number(value ?? 0)
  return Number.isFinite(number) ? number : 0
}
