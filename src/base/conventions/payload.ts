import { words } from '../format.ts'
import { FINISH_REASON, LATENCY_MS, TOOL } from './names.ts'
import { memberAt, reportedUsage } from './usage.ts'
import { USAGE_NAMES } from './usage-names.ts'

/** Reads payloads of events by the names of this folder, whose dots may be part of a key or separate nested objects. */

/** What a call of a model used. Details that its sender does not report are 0. */
export interface CallUsage {
  readonly model: string | null
  readonly inputTokens: number
  readonly outputTokens: number
  /** Of the input tokens, those that the provider read from its cache. */
  readonly cacheReadTokens: number
  /** Of the output tokens, those that the model spent on reasoning. */
  readonly reasoningTokens: number
  readonly costUsd: number
}

export { memberAt as fieldOf }

/** The first of several paths that has a value. */
export function firstOf(value: unknown, paths: readonly string[]): unknown {
  for (const path of paths) {
    const found = memberAt(value, path)
    if (found !== undefined && found !== null && found !== '') return found
  }
  return undefined
}

export function modelOf(payload: unknown): string | null {
  const model = firstOf(payload, USAGE_NAMES.model)
  return typeof model === 'string' ? model : null
}

/** What the service counts for the run: docs/usage.md. */
export function usageOf(payload: unknown): CallUsage {
  const { costUsd = 0, ...usage } = reportedUsage((name) => numeric(memberAt(payload, name))).usage()
  return {
    model: modelOf(payload),
    ...usage,
    costUsd,
  }
}

/** The sum of several calls; its model is that of all of them, or null if they had different ones. */
export function totalUsage(usages: readonly CallUsage[]): CallUsage {
  const sum = (of: (usage: CallUsage) => number) => usages.reduce((total, each) => total + of(each), 0)
  const model = usages[0]?.model ?? null
  return {
    model: usages.every((usage) => usage.model === model) ? model : null,
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    costUsd: sum(({ costUsd }) => costUsd),
    cacheReadTokens: sum(({ cacheReadTokens }) => cacheReadTokens),
    reasoningTokens: sum(({ reasoningTokens }) => reasoningTokens),
  }
}

/** Numbers that would lose digits are texts here. */
function numeric(value: unknown): unknown {
  return typeof value === 'string' ? value : numberOf(value)
}

/** Why a model stopped: `stop`, `length`, `tool_calls`, … */
export function finishReasonOf(payload: unknown): string | null {
  const reasons = firstOf(payload, FINISH_REASON)
  const [first] = Array.isArray(reasons) ? reasons : [reasons]
  return typeof first === 'string' && first !== '' ? words(first) : null
}

/** What went wrong in a call. */
export function errorOf(payload: unknown): string | null {
  const message = firstOf(payload, ['error_message', 'error.message', 'exception.message', 'error'])
  return typeof message === 'string' ? message : null
}

/** In milliseconds; 0 if unknown. */
export function latencyOf(payload: unknown): number {
  return Math.max(0, numberOf(firstOf(payload, LATENCY_MS)) || 0)
}

export function toolNameOf(payload: unknown): string | null {
  const name = firstOf(payload, TOOL.name)
  return typeof name === 'string' ? name : null
}

/** Unique within a run while the call is under way. */
export function toolCallIdOf(payload: unknown): string | null {
  const callId = firstOf(payload, TOOL.callId)
  // Models reuse the ids of calls in later steps.
  return typeof callId === 'string' ? `${callId} ${memberAt(payload, 'step') ?? ''}` : null
}

export function childRunOf(payload: unknown): string | null {
  const id = memberAt(payload, 'child_run_id')
  return typeof id === 'string' ? id : null
}

/** NaN if it is not a number. A number too long for a double is an object that serializes to its digits. */
function numberOf(value: unknown): number {
  const isKept = typeof value === 'object' && value !== null
  return isKept ? Number(JSON.stringify(value)) : typeof value === 'number' ? value : Number.NaN
}
