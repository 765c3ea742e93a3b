/** The model that a call asked for; the one that responds may be a snapshot of it. */
export const REQUESTED_MODEL = 'gen_ai.request.model'

/**
 * The names under which instrumentations report the usage of a model call (docs/specification.md#usage), in order of
 * preference: those of this service and OpenTelemetry, then those of OpenInference, Traceloop and the Vercel AI SDK.
 */
const CONVENTIONS = {
  inputTokens: [
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.prompt_tokens',
    'llm.token_count.prompt',
    'llm.usage.prompt_tokens',
    'ai.usage.inputTokens',
    'ai.usage.promptTokens',
    'ai.usage.tokens',
  ],
  outputTokens: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'llm.usage.completion_tokens',
    'ai.usage.outputTokens',
    'ai.usage.completionTokens',
  ],
  cachedTokens: [
    'gen_ai.usage.cache_read.input_tokens',
    'gen_ai.usage.cache_read_input_tokens',
    'llm.token_count.prompt_details.cache_read',
    'ai.usage.cachedInputTokens',
  ],
  reasoningTokens: [
    'gen_ai.usage.reasoning.output_tokens',
    'gen_ai.usage.reasoning_tokens',
    'llm.token_count.completion_details.reasoning',
    'ai.usage.reasoningTokens',
  ],
  costUsd: ['cost_usd', 'gen_ai.usage.cost', 'llm.cost.total'],
} as const

/**
 * The names in payloads that people write themselves or take from the response of a provider or an SDK: members of `usage` or
 * `tokens`, or the same members outermost. They count where the conventional names are missing.
 */
export const PLAIN_USAGE_NAMES = {
  inputTokens: [
    'usage.input_tokens',
    'usage.prompt_tokens',
    'usage.inputTokens',
    'usage.promptTokens',
    'input_tokens',
    'prompt_tokens',
    'tokens.in',
    'tokens.input',
  ],
  outputTokens: [
    'usage.output_tokens',
    'usage.completion_tokens',
    'usage.outputTokens',
    'usage.completionTokens',
    'output_tokens',
    'completion_tokens',
    'tokens.out',
    'tokens.output',
  ],
  cachedTokens: [
    'usage.prompt_tokens_details.cached_tokens',
    'usage.input_tokens_details.cached_tokens',
    'usage.cache_read_input_tokens',
    'usage.cached_tokens',
    'usage.cachedInputTokens',
    'prompt_tokens_details.cached_tokens',
    'input_tokens_details.cached_tokens',
    'cache_read_input_tokens',
    'cached_input_tokens',
    'cached_tokens',
    'tokens.cached',
  ],
  reasoningTokens: [
    'usage.completion_tokens_details.reasoning_tokens',
    'usage.output_tokens_details.reasoning_tokens',
    'usage.reasoning_tokens',
    'usage.reasoningTokens',
    'completion_tokens_details.reasoning_tokens',
    'output_tokens_details.reasoning_tokens',
    'reasoning_tokens',
    'tokens.reasoning',
  ],
  costUsd: ['usage.cost_usd', 'usage.cost', 'total_cost_usd', 'cost'],
} as const

/** All names, in order of preference. A dot may be part of a key or separate nested objects. */
export const USAGE_NAMES = {
  inputTokens: [...CONVENTIONS.inputTokens, ...PLAIN_USAGE_NAMES.inputTokens],
  outputTokens: [...CONVENTIONS.outputTokens, ...PLAIN_USAGE_NAMES.outputTokens],
  /** Of the input tokens, those that the provider read from its cache. */
  cachedTokens: [...CONVENTIONS.cachedTokens, ...PLAIN_USAGE_NAMES.cachedTokens],
  /** Of the output tokens, those of the model's reasoning. */
  reasoningTokens: [...CONVENTIONS.reasoningTokens, ...PLAIN_USAGE_NAMES.reasoningTokens],
  costUsd: [...CONVENTIONS.costUsd, ...PLAIN_USAGE_NAMES.costUsd],
  model: [
    'gen_ai.response.model',
    REQUESTED_MODEL,
    'model',
    'llm.model_name',
    'embedding.model_name',
    'langfuse.observation.model.name',
    'ai.response.model',
    'ai.model.id',
  ],
} as const

/** The fields that a run's totals need; the model gives the price of tokens that come without a cost. */
export const COUNTED_USAGE = [
  'inputTokens',
  'outputTokens',
  'costUsd',
  'model',
] as const satisfies readonly UsageField[]

type UsageField = keyof typeof USAGE_NAMES
export type UsageNumber = Exclude<UsageField, 'model'>

/** Larger numbers are taken for mistakes and ignored, so that they do not make the sums useless. */
const TOKENS_MAX = 1e12
const COST_USD_MAX = 1e9

/** Whether a reported number can be right. */
export function isPlausible(field: UsageNumber, value: number): boolean {
  if (field === 'costUsd') return value >= 0 && value <= COST_USD_MAX
  return Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX
}

const NUMERIC = /^(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** The number that a string holds as JSON writes numbers of at least 0, as some instrumentations send usage; else NaN. */
export function numberIn(text: string): number {
  return NUMERIC.test(text) ? Number(text) : Number.NaN
}
