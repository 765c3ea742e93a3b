import { isObject, parsedJson } from '../base/json-object.ts'

/** In USD per million tokens. */
interface Price {
  readonly input: number
  readonly output: number
}

/** Prices by model name; a name that ends with `*` matches all names with that prefix. */
export type PriceTable = Readonly<Record<string, Price>>

/** Prices of models (docs/specification.md#budgets: `budget_usd`, `cost_usd`). */
export interface Prices {
  /** In USD; null if the price of the model is unknown. */
  costUsd(model: string, usage: { readonly inputTokens: number; readonly outputTokens: number }): number | null
  /** The highest prices of all models: assumed for a model of unknown price when a budget applies. */
  highest(): Price
}

/**
 * List prices as of November 2025, without discounts for cached input or surcharges for very long prompts. Names with a
 * suffix, such as `gpt-4o-2024-08-06`, `claude-sonnet-4-5-20250929` or `claude-3-5-haiku-latest`, have the same price.
 * `MODEL_PRICES` overrides outdated prices and adds missing ones.
 */
const LIST_PRICES: PriceTable = {
  'gpt-4o': { input: 2.5, output: 10 },
  'gpt-4o-mini': { input: 0.15, output: 0.6 },
  'gpt-4.1': { input: 2, output: 8 },
  'gpt-4.1-mini': { input: 0.4, output: 1.6 },
  'gpt-4.1-nano': { input: 0.1, output: 0.4 },
  'gpt-5': { input: 1.25, output: 10 },
  'gpt-5-mini': { input: 0.25, output: 2 },
  'gpt-5-nano': { input: 0.05, output: 0.4 },
  'gpt-5-codex': { input: 1.25, output: 10 },
  'gpt-5.1': { input: 1.25, output: 10 },
  o3: { input: 2, output: 8 },
  'o3-mini': { input: 1.1, output: 4.4 },
  'o4-mini': { input: 1.1, output: 4.4 },
  'text-embedding-3-small': { input: 0.02, output: 0 },
  'text-embedding-3-large': { input: 0.13, output: 0 },
  'claude-opus-4-5': { input: 5, output: 25 },
  'claude-opus-4-1': { input: 15, output: 75 },
  'claude-opus-4': { input: 15, output: 75 },
  'claude-opus-4-0': { input: 15, output: 75 },
  'claude-sonnet-4-5': { input: 3, output: 15 },
  'claude-sonnet-4': { input: 3, output: 15 },
  'claude-sonnet-4-0': { input: 3, output: 15 },
  'claude-3-7-sonnet': { input: 3, output: 15 },
  'claude-3-5-sonnet': { input: 3, output: 15 },
  'claude-haiku-4-5': { input: 1, output: 5 },
  'claude-3-5-haiku': { input: 0.8, output: 4 },
  'claude-3-haiku': { input: 0.25, output: 1.25 },
  'gemini-2.5-pro': { input: 1.25, output: 10 },
  'gemini-2.5-flash': { input: 0.3, output: 2.5 },
  'gemini-2.5-flash-lite': { input: 0.1, output: 0.4 },
  'gemini-2.0-flash': { input: 0.1, output: 0.4 },
}

const TOKENS_PER_PRICE = 1_000_000
const PRICE_USD_MAX = 1_000_000
const MODELS_MAX = 10_000
/** The suffixes of `gpt-4o-2024-08-06`, `claude-sonnet-4-5-20250929` and `claude-3-5-haiku-latest`. */
const SNAPSHOT = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/
/** Callers choose the names, so no more of them are cached. */
const CACHED_MODELS_MAX = 1_000

/**
 * The built-in list prices, overridden by the operator's. An exact name takes precedence over a name with `*`, and a
 * longer prefix over a shorter one; any price of the operator takes precedence over a built-in one.
 *
 * @param overrides as {@link parseModelPrices} returns them
 */
export function createPrices(overrides: PriceTable = {}): Prices {
  const own = lookUpIn(overrides)
  const listed = lookUpIn(LIST_PRICES)
  const cache = new Map<string, Price | undefined>()
  const find = (model: string) => {
    if (cache.has(model)) return cache.get(model)
    const price = own(model) ?? listed(model.replace(SNAPSHOT, ''))
    if (cache.size === CACHED_MODELS_MAX) cache.clear()
    cache.set(model, price)
    return price
  }
  const all = Object.values({ ...LIST_PRICES, ...overrides })
  const highest = {
    input: Math.max(...all.map(({ input }) => input)),
    output: Math.max(...all.map(({ output }) => output)),
  }
  return {
    costUsd(model, { inputTokens, outputTokens }) {
      const price = find(model)
      if (price === undefined) return null
      return (inputTokens * price.input + outputTokens * price.output) / TOKENS_PER_PRICE
    },
    highest: () => highest,
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
