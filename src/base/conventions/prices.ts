import type { ModelPrice } from '@pydantic/genai-prices'
import { isObject, parsedJson } from '../json-object.ts'
import type { TokenCounts } from './usage.ts'

/** In USD per million tokens of each kind. */
interface Price {
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly cacheWrite1h: number
  readonly audioInput: number
  readonly output: number
  readonly reasoning: number
  readonly audioOutput: number
}

/** A price of the operator. Without prices of their own, tokens from and to a cache cost as much as others. */
interface OwnPrice {
  readonly input: number
  readonly output: number
  readonly cache_read?: number
  readonly cache_write?: number
}

/** Prices by model name; a name that ends with `*` matches all names with that prefix. */
export type PriceTable = Readonly<Record<string, OwnPrice>>

/** What a model call costs by its tokens, if it does not report its cost (docs/usage.md). */
export interface Prices {
  /**
   * In USD; null if the price of the model is unknown.
   * @param at when the call was made, Unix milliseconds
   */
  costUsd(model: string, usage: TokenCounts, at: number): number | null
  /** The highest prices of all models: assumed for a model of unknown price when a budget applies. */
  highest(): Price
}

/** Prices whose list is loaded when first needed: it takes 40 ms and 20 MB. */
export interface PricesOnDemand {
  loaded(): Promise<Prices>
}

type ListedPrices = typeof import('@pydantic/genai-prices')

const TOKENS_PER_PRICE = 1_000_000
const PRICE_USD_MAX = 1_000_000
const MODELS_MAX = 10_000
/** Callers choose the names, so no more of them are cached, and no longer ones looked up: there are patterns to match. */
const CACHED_MODELS_MAX = 1_000
const MODEL_LENGTH_MAX = 200
/** Listed prices start, and change within a day, on the quarter of an hour. */
const PRICE_PERIOD_MS = 15 * 60 * 1_000
/** Names of models at Bedrock, as in `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, which the list knows of no other provider. */
const BEDROCK = /^(?:[a-z]+\.)?[a-z]+\.[\w.:-]+$/
/** Providers among whose models the highest price is looked for. */
const PROVIDERS = ['openai', 'anthropic', 'google', 'x-ai', 'mistral', 'deepseek', 'cohere', 'moonshotai']

/**
 * The list prices of `@pydantic/genai-prices` at the time of a call, overridden by the operator's. An exact name takes
 * precedence over a name with `*`, and a longer prefix over a shorter one; any price of the operator takes precedence
 * over a listed one.
 *
 * @param overrides as {@link parseModelPrices} returns them
 */
export function createPrices(overrides: PriceTable = {}): PricesOnDemand {
  let prices: Promise<Prices> | undefined
  return {
    loaded() {
      prices ??= load(overrides).catch((error) => {
        // The next call tries again.
        prices = undefined
        throw error
      })
      return prices
    },
  }
}

async function load(overrides: PriceTable): Promise<Prices> {
  const listed = await import('@pydantic/genai-prices')
  const own = lookUpIn(overrides)
  const cache = new Map<string, PriceAt>()
  let highest: Price | undefined
  const find = (model: string, { inputTokens }: TokenCounts, at: number): Price | null => {
    const price = own(model)
    if (price !== undefined) return price
    if (model.length > MODEL_LENGTH_MAX) return null
    let known = cache.get(model)
    if (known === undefined) {
      if (cache.size === CACHED_MODELS_MAX) cache.clear()
      known = listedPrice(listed, model)
      cache.set(model, known)
    }
    return known(inputTokens, at)
  }
  return {
    costUsd(model, usage, at) {
      const price = find(model, usage, at)
      return price === null ? null : costAt(price, usage)
    },
    highest() {
      highest ??= highestOf([...Object.values(overrides).map(ownPrice), ...allListed(listed)])
      return highest
    },
  }
}

/** What tokens cost, in USD: each once, by the price of what it is. */
export function costAt(price: Price, usage: TokenCounts): number {
  const { cacheReadTokens: read = 0, cacheWriteTokens: written = 0, cacheWrite1hTokens = 0 } = usage
  const { audioInputTokens: heard = 0, audioOutputTokens: spoken = 0, reasoningTokens: reasoned = 0 } = usage
  const forAnHour = Math.min(cacheWrite1hTokens, written)
  const input = (usage.inputTokens - read - written - heard) * price.input + heard * price.audioInput
  const cache = read * price.cacheRead + (written - forAnHour) * price.cacheWrite + forAnHour * price.cacheWrite1h
  const said = (usage.outputTokens - reasoned - spoken) * price.output + spoken * price.audioOutput
  return (input + cache + said + reasoned * price.reasoning) / TOKENS_PER_PRICE
}

/** The price of a model for a prompt of this length; null if unknown. */
type PriceAt = (inputTokens: number, at: number) => Price | null

/** Some prices are higher for long prompts. */
function pricesByLength(listed: ModelPrice): (inputTokens: number) => Price | null {
  const tiers = Object.values(listed).flatMap((price) => (typeof price === 'object' ? price.tiers : []))
  const starts = [...new Set(tiers.map(({ start }) => start))].sort((a, b) => b - a)
  const base = priceOf(listed, 0)
  const longer = starts.map((start) => ({ start, price: priceOf(listed, start + 1) }))
  return (inputTokens) => {
    for (const { start, price } of longer) if (inputTokens > start) return price
    return base
  }
}

function listedPrice(listed: ListedPrices, model: string): PriceAt {
  const first = calculated(listed, model, 0)
  if (first === null) return () => null
  let current = pricesByLength(first.model_price)
  if (!Array.isArray(first.model.prices)) return current
  let period = 0
  return (inputTokens, at) => {
    const wanted = Math.floor(at / PRICE_PERIOD_MS)
    if (wanted !== period) {
      const found = calculated(listed, model, wanted * PRICE_PERIOD_MS)
      if (found !== null) current = pricesByLength(found.model_price)
      period = wanted
    }
    return current(inputTokens)
  }
}

/** By the name alone, or else by that of the provider, which gateways put in front, as in `anthropic/claude-sonnet-4-5`. */
function calculated({ calcPrice }: ListedPrices, model: string, at: number) {
  const timestamp = new Date(at)
  const slash = model.indexOf('/')
  const named = calcPrice({}, model, { timestamp })
  if (named !== null) return named
  // The list knows a provider by the names of its language models only.
  if (model.startsWith('text-embedding-')) return calcPrice({}, model, { timestamp, providerId: 'openai' })
  if (BEDROCK.test(model)) return calcPrice({}, model, { timestamp, providerId: 'aws' })
  if (slash < 1) return null
  return calcPrice({}, model.slice(slash + 1), { timestamp, providerId: model.slice(0, slash) })
}

/** Null for a model that is not charged by tokens. Tokens without a price of their own cost as much as others. */
function priceOf(listed: ModelPrice, inputTokens: number): Price | null {
  if (listed.input_mtok === undefined && listed.output_mtok === undefined) return null
  const of = (price: ModelPrice[string], otherwise: number) => {
    if (price === undefined) return otherwise
    if (typeof price === 'number') return price
    return price.tiers.findLast(({ start }) => inputTokens > start)?.price ?? price.base
  }
  const input = of(listed.input_mtok, 0)
  const output = of(listed.output_mtok, 0)
  const cacheWrite = of(listed.cache_write_mtok, input)
  return {
    input,
    cacheRead: of(listed.cache_read_mtok, input),
    cacheWrite,
    cacheWrite1h: of(listed.cache_write_1h_mtok, cacheWrite),
    audioInput: of(listed.input_audio_mtok, input),
    output,
    reasoning: of(listed.output_reasoning_mtok, output),
    audioOutput: of(listed.output_audio_mtok, output),
  }
}

function ownPrice({ input, output, cache_read = input, cache_write = input }: OwnPrice): Price {
  const ofCache = { cacheRead: cache_read, cacheWrite: cache_write, cacheWrite1h: cache_write }
  return { input, ...ofCache, audioInput: input, output, reasoning: output, audioOutput: output }
}

function allListed({ findProvider }: ListedPrices): Price[] {
  const models = PROVIDERS.flatMap((providerId) => findProvider({ providerId })?.models ?? [])
  const all = models.flatMap(({ prices }) => (Array.isArray(prices) ? prices.map((each) => each.prices) : [prices]))
  return all.flatMap((each) => priceOf(each, 0) ?? [])
}

function highestOf(prices: readonly Price[]): Price {
  const kinds = Object.keys(prices[0]!) as (keyof Price)[]
  return Object.fromEntries(
    kinds.map((kind) => [kind, Math.max(...prices.map((price) => price[kind]))]),
  ) as unknown as Price
}

/**
 * Parses `MODEL_PRICES`, for example `{"gpt-5": {"input": 1.25, "output": 10}, "llama*": {"input": 0, "output": 0}}`.
 *
 * @returns the prices, or the problem, worded to follow the variable's name
 */
export function parseModelPrices(text: string): { readonly prices: PriceTable } | { readonly problem: string } {
  const expected = 'must be a JSON object like {"gpt-5": {"input": 1.25, "output": 10}}, in USD per million tokens'
  const table = parsedJson(text)
  if (!isObject(table)) return { problem: expected }
  const entries = Object.entries(table)
  if (entries.length > MODELS_MAX) return { problem: `must not name more than ${MODELS_MAX} models` }
  for (const [model, price] of entries) {
    const shown = JSON.stringify(model.slice(0, 100))
    if (model === '' || model.slice(0, -1).includes('*'))
      return { problem: `${expected}; a "*" is allowed only at the end of a name: ${shown}` }
    if (!isPrice(price))
      return {
        problem: `${expected}; ${shown} needs "input" and "output", and may have "cache_read" and "cache_write", numbers of at least 0`,
      }
  }
  return { prices: Object.fromEntries(entries) as PriceTable }
}

function lookUpIn(table: PriceTable): (model: string) => Price | undefined {
  const exact = new Map(Object.entries(table).map(([name, price]) => [name, ownPrice(price)]))
  const prefixes = [...exact.keys()]
    .filter((name) => name.endsWith('*'))
    .map((name) => name.slice(0, -1))
    .sort((a, b) => b.length - a.length)
  return (model) => {
    const price = exact.get(model)
    if (price !== undefined) return price
    const prefix = prefixes.find((each) => model.startsWith(each))
    return prefix === undefined ? undefined : exact.get(`${prefix}*`)
  }
}

const PRICED = new Set(['input', 'output', 'cache_read', 'cache_write'])

function isPrice(value: unknown): value is OwnPrice {
  if (!isObject(value) || typeof value.input !== 'number' || typeof value.output !== 'number') return false
  return Object.entries(value).every(
    ([name, usd]) => PRICED.has(name) && typeof usd === 'number' && usd >= 0 && usd <= PRICE_USD_MAX,
  )
}
