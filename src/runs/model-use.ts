import { isObject } from '../http/json-object.ts'
import { BACKSLASH, COMMA, OPEN_BRACE, QUOTE, skipColon, skipSpace, skipValue, startsWith } from '../http/json-scan.ts'
import type { Prices } from '../model/prices.ts'

/** What one model call used, or several. */
export interface ModelUse {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

/** Type of the events that report model calls. */
export const MODEL_CALL = 'llm.call'

/**
 * The members of a payload that count, the preferred name of each value first: OpenTelemetry's names, its older ones, then
 * those of OpenInference and of the Vercel AI SDK.
 */
const NAMES = {
  inputTokens: [
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.prompt_tokens',
    'llm.token_count.prompt',
    'ai.usage.inputTokens',
    'ai.usage.promptTokens',
  ],
  outputTokens: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'ai.usage.outputTokens',
    'ai.usage.completionTokens',
  ],
  costUsd: ['cost_usd', 'gen_ai.usage.cost'],
  model: [
    'gen_ai.response.model',
    'gen_ai.request.model',
    'model',
    'llm.model_name',
    'ai.response.model',
    'ai.model.id',
  ],
} as const

/** Larger numbers are mistakes; they must not make the sums useless. */
const TOKENS_MAX = 1e12
const COST_USD_MAX = 1e9

type Slot = keyof typeof NAMES
interface Member {
  readonly word: Uint8Array
  readonly slot: Slot
  /** Lower ones are preferred. */
  readonly rank: number
}

const SLOTS = Object.keys(NAMES) as Slot[]
/** By the length of the name. */
const MEMBERS = Map.groupBy(
  SLOTS.flatMap((slot): Member[] =>
    NAMES[slot].map((name, rank) => ({ word: new TextEncoder().encode(name), slot, rank })),
  ),
  ({ word }) => word.length,
)
/** `gen_ai` with an object is the nested form of the names that begin so. */
const NESTED = new TextEncoder().encode('gen_ai')
const NO_MEMBERS: readonly Member[] = []
const NO_RANK = 99
/** From there on a native search is faster. */
const SHORT_STRING_BYTES = 48

/**
 * Reads what model calls used from the payloads of their events (docs/specification.md#usage), without parsing them: the
 * names of the outermost members are compared, everything else is skipped. Values that are not such numbers are ignored.
 */
export class ModelUseReader {
  private readonly ranks = { inputTokens: NO_RANK, outputTokens: NO_RANK, costUsd: NO_RANK }
  private readonly values = { inputTokens: 0, outputTokens: 0, costUsd: 0 }
  private models: (string | undefined)[] = []

  constructor(private readonly prices: Prices) {}

  /**
   * @param block holds a payload from `start` to `end`: a valid JSON object
   * @returns null if the payload reports no use. The cost of a model without a price is 0.
   */
  read(block: Buffer, start: number, end: number): ModelUse | null {
    const { ranks, values } = this
    ranks.inputTokens = ranks.outputTokens = ranks.costUsd = NO_RANK
    values.inputTokens = values.outputTokens = values.costUsd = 0
    if (this.models.length > 0) this.models = []
    this.scan(block, start, end)
    const hasTokens = ranks.inputTokens !== NO_RANK || ranks.outputTokens !== NO_RANK
    if (ranks.costUsd === NO_RANK) {
      if (!hasTokens) return null
      values.costUsd = this.price()
    }
    return { ...values }
  }

  private scan(block: Buffer, start: number, end: number): void {
    let at = skipSpace(block, start + 1)
    while (at < end && block[at] === QUOTE) {
      const name = at + 1
      at = skipText(block, at)
      const nameEnd = at - 1
      const value = skipColon(block, at)
      at = block[value] === QUOTE ? skipText(block, value) : skipValue(block, value, Number.MAX_SAFE_INTEGER)
      this.member(block, name, nameEnd - name, value, at)
      at = skipSpace(block, at)
      if (block[at] === COMMA) at = skipSpace(block, at + 1)
    }
  }

  private member(block: Buffer, name: number, length: number, start: number, end: number): void {
    if (length === NESTED.length && block[start] === OPEN_BRACE && startsWith(block, name, NESTED)) {
      this.nested('gen_ai', JSON.parse(block.toString('utf8', start, end)))
      return
    }
    for (const { word, slot, rank } of MEMBERS.get(length) ?? NO_MEMBERS) {
      if (startsWith(block, name, word)) this.keep(slot, rank, JSON.parse(block.toString('utf8', start, end)))
    }
  }

  private nested(path: string, object: unknown): void {
    if (!isObject(object)) return
    for (const [name, value] of Object.entries(object)) {
      const full = `${path}.${name}`
      for (const slot of SLOTS) {
        const rank = (NAMES[slot] as readonly string[]).indexOf(full)
        if (rank >= 0) this.keep(slot, rank, value)
      }
      if (full === 'gen_ai.usage' || full === 'gen_ai.request' || full === 'gen_ai.response') this.nested(full, value)
    }
  }

  private keep(slot: Slot, rank: number, value: unknown): void {
    if (slot === 'model') {
      if (typeof value === 'string') this.models[rank] = value
    } else if (typeof value === 'number' && rank <= this.ranks[slot] && isPlausible(slot, value)) {
      this.ranks[slot] = rank
      this.values[slot] = value
    }
  }

  /** By the first of the model's names that has a price. */
  private price(): number {
    for (const model of this.models) {
      const costUsd = model === undefined ? null : this.prices.costUsd(model, this.values)
      if (costUsd !== null) return costUsd
    }
    return 0
  }
}

function isPlausible(slot: Exclude<Slot, 'model'>, value: number): boolean {
  if (slot === 'costUsd') return value >= 0 && value <= COST_USD_MAX
  return Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX
}

/** Skips a valid string from its opening quote. Prompts are long, so most of one is searched natively. */
function skipText(block: Buffer, at: number): number {
  const short = at + SHORT_STRING_BYTES
  at++
  while (at < short) {
    const byte = block[at]
    if (byte === QUOTE) return at + 1
    at += byte === BACKSLASH ? 2 : 1
  }
  for (;;) {
    const quote = block.indexOf(QUOTE, at)
    let escapes = quote
    while (escapes > at && block[escapes - 1] === BACKSLASH) escapes--
    if ((quote - escapes) % 2 === 0) return quote + 1
    at = quote + 1
  }
}
