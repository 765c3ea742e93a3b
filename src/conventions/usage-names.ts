/** The model that a call asked for; the one that responds may be a snapshot of it. */
export const REQUESTED_MODEL = 'gen_ai.request.model'

/**
 * The names under which instrumentations report the usage of a model call (docs/specification.md#usage), in order of
 * preference: those of this service and OpenTelemetry, then those of OpenInference, Traceloop and the Vercel AI SDK.
 */
export const USAGE_NAMES = {
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
  costUsd: ['cost_usd', 'gen_ai.usage.cost', 'llm.cost.total'],
  model: [
    'gen_ai.response.model',
    REQUESTED_MODEL,
    'model',
    'llm.model_name',
    'embedding.model_name',
    'ai.response.model',
    'ai.model.id',
  ],
} as const

export type UsageField = keyof typeof USAGE_NAMES
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
