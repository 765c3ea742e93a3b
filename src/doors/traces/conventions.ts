import { langfuseUsage } from '../../base/conventions/langfuse-usage.ts'
import { AGENT, COMMA_SEPARATED_TAGS, SESSION, TAGS, USER } from '../../base/conventions/names.ts'
import { usageAmong } from '../../base/conventions/usage.ts'
import { USAGE_NAMES, type UsageNumber } from '../../base/conventions/usage-names.ts'
import { lookup } from '../../base/lookup.ts'
import { firstText, firstTexts, LIST_LENGTH_MAX, textAt } from './attributes.ts'
import type { Attributes } from './telemetry.ts'

/**
 * The semantic conventions: what the attributes of a span mean in OpenTelemetry's `gen_ai.*`, OpenInference, the Vercel
 * AI SDK, Traceloop and Langfuse.
 */

/** Whether a span says by its level that it has failed, although its status does not. */
export function hasErrorLevel(attributes: Attributes): boolean {
  return textAt(attributes, 'langfuse.observation.level') === 'ERROR'
}

/** What a span records: a model call, a tool call, the run of an agent, or anything else. */
export type SpanKind = 'model' | 'tool' | 'agent' | 'other'

/** The type of the event that a span of each kind becomes. */
export const EVENT_TYPES: Record<SpanKind, string> = {
  model: 'llm.call',
  tool: 'tool.call.finished',
  agent: 'span',
  other: 'span',
}

const OPENINFERENCE_KINDS = lookup<SpanKind>({ LLM: 'model', EMBEDDING: 'model', TOOL: 'tool', AGENT: 'agent' })

const OPERATIONS = lookup<SpanKind>({
  chat: 'model',
  completion: 'model',
  text_completion: 'model',
  generate_content: 'model',
  embeddings: 'model',
  llm_call: 'model',
  execute_tool: 'tool',
  tool_call: 'tool',
  invoke_agent: 'agent',
  retrieval: 'other',
})

/** Other operations that are more than a call of a model or a tool, though they may name one. */
const OUTER_OPERATION = /agent|workflow/i

const TRACELOOP_KINDS = lookup<SpanKind>({ tool: 'tool', agent: 'agent' })

/** Agents are not among them: an observation of that type names no agent. */
const LANGFUSE_TYPES = lookup<SpanKind>({ generation: 'model', embedding: 'model', tool: 'tool' })

const MODEL_ATTRIBUTES = [
  'gen_ai.request.model',
  'gen_ai.response.model',
  'llm.model_name',
  'embedding.model_name',
  'llm.request.type',
]

export function kindOf(attributes: Attributes): SpanKind {
  const langfuse = textAt(attributes, 'langfuse.observation.type')
  if (langfuse !== '') return LANGFUSE_TYPES.get(langfuse.toLowerCase()) ?? 'other'
  const openInference = textAt(attributes, 'openinference.span.kind')
  if (openInference !== '') return OPENINFERENCE_KINDS.get(openInference.toUpperCase()) ?? 'other'
  // Checked before the operation name, because outer spans of the Vercel AI SDK repeat the usage of their model calls.
  const vercel = textAt(attributes, 'ai.operationId')
  if (vercel !== '') return vercelKind(vercel)
  const operation = textAt(attributes, 'gen_ai.operation.name')
  const known = OPERATIONS.get(operation) ?? (OUTER_OPERATION.test(operation) ? 'other' : undefined)
  if (known !== undefined) return known
  const traceloop = textAt(attributes, 'traceloop.span.kind')
  if (traceloop !== '') return TRACELOOP_KINDS.get(traceloop) ?? 'other'
  if (attributes.has('gen_ai.tool.name')) return 'tool'
  return MODEL_ATTRIBUTES.some((name) => attributes.has(name)) ? 'model' : 'other'
}

/** `ai.generateText` is the outer span; `ai.generateText.doGenerate` is the model call. */
function vercelKind(operationId: string): SpanKind {
  if (operationId === 'ai.toolCall') return 'tool'
  return /\.do[A-Z]\w*$/.test(operationId) ? 'model' : 'other'
}

/** The standard names of tokens in payloads. */
export const TOKEN_MEMBERS = [
  ['inputTokens', 'gen_ai.usage.input_tokens'],
  ['outputTokens', 'gen_ai.usage.output_tokens'],
  ['cacheReadTokens', 'gen_ai.usage.cache_read.input_tokens'],
  ['cacheWriteTokens', 'gen_ai.usage.cache_creation.input_tokens'],
  ['reasoningTokens', 'gen_ai.usage.reasoning.output_tokens'],
] as const

/**
 * The usage of a model call under the service's standard names (docs/usage.md), for values that the
 * attributes have only under other names.
 */
export function usageOf(attributes: Attributes): Attributes {
  const usage: Attributes = new Map()
  const add = (name: string, value: string | number | null | undefined) => {
    if (value !== null && value !== undefined && !attributes.has(name)) usage.set(name, value)
  }
  const reported = usageAmong(attributes)
  const details = firstText(attributes, ['langfuse.observation.usage_details']) ?? undefined
  const costs = firstText(attributes, ['langfuse.observation.cost_details']) ?? undefined
  if (details !== undefined || costs !== undefined) {
    // Its numbers are whole under any name, unlike some of those that it adds to.
    for (const [field, value] of Object.entries(langfuseUsage(undefined, details, costs)))
      if (!reported.has(field as UsageNumber)) reported.keep(field as UsageNumber, 0, value)
  }
  const { costUsd, ...tokens } = reported.usage()
  for (const [field, name] of TOKEN_MEMBERS) if (tokens[field] > 0 || reported.has(field)) add(name, tokens[field])
  add('cost_usd', costUsd)
  add('gen_ai.response.model', firstText(attributes, USAGE_NAMES.model))
  return usage
}

export function sessionOf(attributes: Attributes): string | null {
  return firstText(attributes, SESSION)
}

export function userOf(attributes: Attributes): string | null {
  return firstText(attributes, USER)
}

export function tagsOf(attributes: Attributes): string[] {
  const tags = firstTexts(attributes, TAGS)
  if (tags.length > 0) return tags
  const separated = firstText(attributes, [COMMA_SEPARATED_TAGS]) ?? ''
  return separated
    .slice(0, LIST_LENGTH_MAX)
    .split(',')
    .flatMap((tag) => tag.trim() || [])
}

export function agentNameOf(attributes: Attributes): string | null {
  return firstText(attributes, AGENT)
}
