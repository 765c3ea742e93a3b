/** The model that a call asked for; the one that responds may be a snapshot of it. */
export const REQUESTED_MODEL = 'gen_ai.request.model'

/**
 * The names under which instrumentations report the usage of a model call (docs/usage.md), in order of
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
  cacheReadTokens: [
    'gen_ai.usage.cache_read.input_tokens',
    'gen_ai.usage.cache_read_input_tokens',
    'gen_ai.usage.cache_read_tokens',
    'gen_ai.usage.cached_input_tokens',
    'gen_ai.usage.details.cache_read_tokens',
    'gen_ai.usage.details.cache_read_input_tokens',
    'llm.token_count.prompt_details.cache_read',
    'ai.usage.inputTokenDetails.cacheReadTokens',
    'ai.usage.cachedInputTokens',
  ],
  cacheWriteTokens: [
    'gen_ai.usage.cache_creation.input_tokens',
    'gen_ai.usage.cache_creation_input_tokens',
    'gen_ai.usage.cache_creation_tokens',
    'gen_ai.usage.cache_write.input_tokens',
    'gen_ai.usage.cache_write_input_tokens',
    'gen_ai.usage.cache_write_tokens',
    'gen_ai.usage.details.cache_write_tokens',
    'gen_ai.usage.details.cache_creation_input_tokens',
    'llm.token_count.prompt_details.cache_write',
    'ai.usage.inputTokenDetails.cacheWriteTokens',
  ],
  reasoningTokens: [
    'gen_ai.usage.reasoning.output_tokens',
    'gen_ai.usage.reasoning_tokens',
    'gen_ai.usage.details.reasoning_tokens',
    'llm.token_count.completion_details.reasoning',
    'ai.usage.outputTokenDetails.reasoningTokens',
    'ai.usage.reasoningTokens',
  ],
  audioInputTokens: ['gen_ai.usage.details.input_audio_tokens', 'llm.token_count.prompt_details.audio'],
  audioOutputTokens: ['gen_ai.usage.details.output_audio_tokens', 'llm.token_count.completion_details.audio'],
  totalTokens: ['gen_ai.usage.total_tokens', 'llm.token_count.total', 'llm.usage.total_tokens'],
  costUsd: ['cost_usd', 'gen_ai.usage.cost', 'llm.cost.total'],
} as const

/** Members of the usage of a provider's response, or of an SDK's: in `usage`, or outermost. */
function inUsage<const Names extends readonly string[]>(names: Names) {
  return [...names.map((name) => `usage.${name}`), ...names] as const
}

/**
 * The names in payloads that people write themselves or take from the response of a provider or an SDK: members of `usage` or
 * `tokens`, or the same members outermost. They count where the conventional names are missing.
 */
export const PLAIN_USAGE_NAMES = {
  inputTokens: [
    ...inUsage(['prompt_tokens', 'promptTokens', 'input_tokens', 'inputTokens']),
    'usageMetadata.promptTokenCount',
    'usage_metadata.prompt_token_count',
    'tokens.in',
    'tokens.input',
  ],
  outputTokens: [
    ...inUsage(['completion_tokens', 'completionTokens', 'output_tokens', 'outputTokens']),
    'usageMetadata.candidatesTokenCount',
    'usage_metadata.candidates_token_count',
    'tokens.out',
    'tokens.output',
  ],
  cacheReadTokens: [
    ...inUsage([
      'prompt_tokens_details.cached_tokens',
      'input_tokens_details.cached_tokens',
      'inputTokenDetails.cacheReadTokens',
      'prompt_cache_hit_tokens',
      'cached_tokens',
      'cached_input_tokens',
      'input_cached_tokens',
      'cachedInputTokens',
      'cache_read_input_tokens',
      'cache_read_tokens',
      'cacheReadInputTokens',
      'cacheReadTokens',
    ]),
    'usageMetadata.cachedContentTokenCount',
    'usage_metadata.cached_content_token_count',
    'tokens.cached',
    'tokens.cache.read',
  ],
  cacheWriteTokens: [
    ...inUsage([
      'prompt_tokens_details.cache_write_tokens',
      'input_tokens_details.cache_write_tokens',
      'inputTokenDetails.cacheWriteTokens',
      'cache_creation_input_tokens',
      'cache_creation_tokens',
      'cache_write_input_tokens',
      'cache_write_tokens',
      'cacheWriteInputTokens',
      'cacheCreationInputTokens',
      'cacheWriteTokens',
    ]),
    'tokens.cache.write',
  ],
  cacheWrite5mTokens: inUsage(['cache_creation.ephemeral_5m_input_tokens']),
  cacheWrite1hTokens: inUsage(['cache_creation.ephemeral_1h_input_tokens']),
  reasoningTokens: [
    ...inUsage([
      'completion_tokens_details.reasoning_tokens',
      'output_tokens_details.reasoning_tokens',
      'output_tokens_details.thinking_tokens',
      'outputTokenDetails.reasoningTokens',
      'reasoning_tokens',
      'reasoningTokens',
    ]),
    'usageMetadata.thoughtsTokenCount',
    'usage_metadata.thoughts_token_count',
    'tokens.reasoning',
  ],
  audioInputTokens: inUsage(['prompt_tokens_details.audio_tokens', 'input_tokens_details.audio_tokens']),
  audioOutputTokens: inUsage(['completion_tokens_details.audio_tokens', 'output_tokens_details.audio_tokens']),
  totalTokens: inUsage(['total_tokens', 'totalTokens']),
  costUsd: ['usage.cost_usd', 'usage.cost', 'total_cost_usd', 'cost'],
} as const

/** All names, in order of preference. A dot may be part of a key or separate nested objects. */
export const USAGE_NAMES = {
  inputTokens: [...CONVENTIONS.inputTokens, ...PLAIN_USAGE_NAMES.inputTokens],
  outputTokens: [...CONVENTIONS.outputTokens, ...PLAIN_USAGE_NAMES.outputTokens],
  /** Tokens of the prompt that the provider read from its cache. */
  cacheReadTokens: [...CONVENTIONS.cacheReadTokens, ...PLAIN_USAGE_NAMES.cacheReadTokens],
  /** Tokens of the prompt that the provider wrote to its cache. */
  cacheWriteTokens: [...CONVENTIONS.cacheWriteTokens, ...PLAIN_USAGE_NAMES.cacheWriteTokens],
  /** Of those, the ones to be kept for five minutes, and for an hour, which cost more. */
  cacheWrite5mTokens: PLAIN_USAGE_NAMES.cacheWrite5mTokens,
  cacheWrite1hTokens: PLAIN_USAGE_NAMES.cacheWrite1hTokens,
  /** Tokens of the model's reasoning. */
  reasoningTokens: [...CONVENTIONS.reasoningTokens, ...PLAIN_USAGE_NAMES.reasoningTokens],
  /** Of the input and of the output, the tokens of sound, which have prices of their own. */
  audioInputTokens: [...CONVENTIONS.audioInputTokens, ...PLAIN_USAGE_NAMES.audioInputTokens],
  audioOutputTokens: [...CONVENTIONS.audioOutputTokens, ...PLAIN_USAGE_NAMES.audioOutputTokens],
  /** Not counted; it tells whether the input and the output include their parts. */
  totalTokens: [...CONVENTIONS.totalTokens, ...PLAIN_USAGE_NAMES.totalTokens],
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
    'modelVersion',
    'modelId',
  ],
} as const

/**
 * Numbers that stand beside their parts in some dialects: `input_tokens` excludes what was read from or written to a cache
 * where those have the names of Anthropic, Bedrock or Claude Code, but includes it with OpenAI's names; the candidates of
 * Gemini exclude its thoughts. All other names include their parts.
 */
const BESIDE = {
  inputTokens: /^(?:usage\.)?(?:input_tokens|inputTokens)$|^tokens\.input$/,
  cache:
    /^(?:usage\.)?(?:cache_(?:read|creation|write)_(?:input_)?tokens|cache(?:Read|Write|Creation)(?:Input)?Tokens|cache_creation\..*)$|^tokens\.cache\./,
  outputTokens: /candidates/,
  reasoningTokens: /thoughts/,
}

/** For each name of a number, by its rank, whether it may stand beside others ({@link BESIDE}). */
export const STANDS_BESIDE = {
  inputTokens: USAGE_NAMES.inputTokens.map((name) => BESIDE.inputTokens.test(name)),
  cacheReadTokens: USAGE_NAMES.cacheReadTokens.map((name) => BESIDE.cache.test(name)),
  cacheWriteTokens: USAGE_NAMES.cacheWriteTokens.map((name) => BESIDE.cache.test(name)),
  outputTokens: USAGE_NAMES.outputTokens.map((name) => BESIDE.outputTokens.test(name)),
  reasoningTokens: USAGE_NAMES.reasoningTokens.map((name) => BESIDE.reasoningTokens.test(name)),
}

export type UsageField = keyof typeof USAGE_NAMES
export type UsageNumber = Exclude<UsageField, 'model'>

/** The fields that are numbers; the model gives the price of tokens that come without a cost. */
export const USAGE_NUMBERS = Object.keys(USAGE_NAMES).filter((field) => field !== 'model') as readonly UsageNumber[]

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
