import type { ModelPrice } from '@pydantic/genai-prices'
import { isObject, parsedJson } from '../base/json-object.ts'

/** In USD per million tokens. */
interface Price {
  readonly input: number
  readonly output: number
}

/** Prices by model name; a name that ends with `*` matches all names with that prefix. */
export type PriceTable = Readonly<Record<string, Price>>

/** What a model call costs by its tokens, if it does not report its cost (docs/specification.md#usage). */
export interface Prices {
  /**
   * In USD; null if the price of the model is unknown. Tokens that were read from a cache cost as much as others.
   * @param at when the call was made, Unix milliseconds
   */
  costUsd(model: string, usage: TokenCounts, at: number): number | null
  /** The highest prices of all models: assumed for a model of unknown price when a budget applies. */
  highest(): Price
}

interface TokenCounts {
  readonly inputTokens: number
  readonly outputTokens: number
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
      if (price === null) return null
      return (usage.inputTokens * price.input + usage.outputTokens * price.output) / TOKENS_PER_PRICE
    },
    highest() {
      highest ??= highestOf([...Object.values(overrides), ...allListed(listed)])
      return highest
    },
  }
}

/** The price of a model for a prompt of this length; null if unknown. */
type PriceAt = (inputTokens: number, at: number) => Price | null

function listedPrice(listed: ListedPrices, model: string): PriceAt {
  const first = calculated(listed, model, 0)
  if (first === null) return () => null
  if (!Array.isArray(first.model.prices)) return (inputTokens) => priceOf(first.model_price, inputTokens)
  let period = 0
  let current = first.model_price
  return (inputTokens, at) => {
    const wanted = Math.floor(at / PRICE_PERIOD_MS)
    if (wanted !== period) {
      current = calculated(listed, model, wanted * PRICE_PERIOD_MS)?.model_price ?? current
      period = wanted
    }
    return priceOf(current, inputTokens)
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
  if (slash < 1) return null
  return calcPrice({}, model.slice(slash + 1), { timestamp, providerId: model.slice(0, slash) })
}

/** Null for a model that is not charged by tokens. Some prices are higher for long prompts. */
function priceOf({ input_mtok, output_mtok }: ModelPrice, inputTokens: number): Price | null {
  if (input_mtok === undefined && output_mtok === undefined) return null
  const of = (price: ModelPrice[string] = 0) => {
    if (typeof price === 'number') return price
    return price.tiers.findLast(({ start }) => inputTokens > start)?.price ?? price.base
  }
  return { input: of(input_mtok), output: of(output_mtok) }
}

function allListed({ findProvider }: ListedPrices): Price[] {
  const models = PROVIDERS.flatMap((providerId) => findProvider({ providerId })?.models ?? [])
  const all = models.flatMap(({ prices }) => (Array.isArray(prices) ? prices.map((each) => each.prices) : [prices]))
  return all.flatMap((each) => priceOf(each, 0) ?? [])
}

function highestOf(prices: readonly Price[]): Price {
  return {
    input: Math.max(...prices.map(({ input }) => input)),
    output: Math.max(...prices.map(({ output }) => output)),
  }
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
    if (!isPrice(price)) return { problem: `${expected}; ${shown} needs "input" and "output", numbers of at least 0` }
  }
  return { prices: Object.fromEntries(entries) as PriceTable }
}

function lookUpIn(table: PriceTable): (model: string) => Price | undefined {
  const exact = new Map(Object.entries(table))
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

function isPrice(value: unknown): value is Price {
  if (!isObject(value) || Object.keys(value).some((name) => name !== 'input' && name !== 'output')) return false
  return [value.input, value.output].every((usd) => typeof usd === 'number' && usd >= 0 && usd <= PRICE_USD_MAX)
}
