import { TOOL } from '../../../base/conventions/names.ts'
import {
  type CallUsage,
  finishReasonOf,
  firstOf,
  latencyOf,
  modelOf,
  toolNameOf,
  usageOf,
} from '../../../base/conventions/payload.ts'
import { count, dollars, duration } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'
import { textOf } from '../data/json.ts'

/** `1,204 in (900 cached), 88 out (20 reasoning)`; empty without tokens. */
export function tokensText({ inputTokens, outputTokens, cacheReadTokens, reasoningTokens }: CallUsage): string {
  if (inputTokens + outputTokens === 0) return ''
  const cached = cacheReadTokens > 0 ? ` (${count(cacheReadTokens)} cached)` : ''
  const reasoning = reasoningTokens > 0 ? ` (${count(reasoningTokens)} reasoning)` : ''
  return `${count(inputTokens)} in${cached}, ${count(outputTokens)} out${reasoning}`
}

const RESULTS = ['error_message', 'error.message', ...TOOL.result]
const TEXTS = ['message', 'text', 'body', 'question', 'exception.message']

/** One line on what an event says: the figures of a model call, the arguments or the result of a tool call, a message. */
export function summaryOf({ type, payload }: { readonly type: string; readonly payload: unknown }): string {
  const summary = SUMMARIES.get(type)?.(payload) ?? messageOf(payload)
  const text = summary === '' ? textOf(payload) : summary
  return text === '{}' ? '' : text
}

const SUMMARIES = lookup<(payload: unknown) => string>({
  'llm.call': callSummary,
  'tool.call.started': (payload) => toolSummary(payload, TOOL.arguments),
  'tool.call.finished': (payload) => toolSummary(payload, RESULTS),
  'approval.requested': (payload) => toolSummary(payload, TOOL.arguments),
})

/** `gpt-5 · 1,204 in (1,024 cached), 88 out · $0.02 · 1.49 s · tool calls`. */
function callSummary(payload: unknown): string {
  const { inputTokens, outputTokens, cacheReadTokens, costUsd } = usageOf(payload)
  const cached = cacheReadTokens > 0 ? ` (${count(cacheReadTokens)} cached)` : ''
  const latencyMs = latencyOf(payload)
  return joined([
    modelOf(payload),
    inputTokens + outputTokens > 0 && `${count(inputTokens)} in${cached}, ${count(outputTokens)} out`,
    costUsd > 0 && dollars(costUsd),
    latencyMs > 0 && duration(latencyMs),
    finishReasonOf(payload),
  ])
}

function toolSummary(payload: unknown, paths: readonly string[]): string {
  const value = firstOf(payload, paths)
  const latencyMs = latencyOf(payload)
  return joined([toolNameOf(payload), latencyMs > 0 && duration(latencyMs), value !== undefined && textOf(value)])
}

function messageOf(payload: unknown): string {
  const text = firstOf(payload, TEXTS)
  return typeof text === 'string' ? text : ''
}

function joined(parts: readonly (string | null | false)[]): string {
  return parts.filter((part) => part !== null && part !== false && part !== '').join(' · ')
}
