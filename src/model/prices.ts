import { isObject } from '../http/json-object.ts'
import type { ModelUsage } from './model.ts'

/** In USD per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
}

/** Prices by model name; a name that ends with `*` matches all names with that prefix. */
export type PriceTable = Readonly<Record<string, Price>>

/** Prices of models (docs/specification.md#budgets: `budget_usd`, `cost_usd`). */
export interface Prices {
  /** In USD; null if the price of the model is unknown. */
  costUsd(model: string, usage: ModelUsage): number | null
  /** The highest prices of all models: assumed for a model of unknown price when a budget applies. */
  highest(): Price
}

/**
 * List prices of OpenAI's models as of August 2025, without discounts for cached input. Names with a date suffix, such
 * as `gpt-4o-2024-08-06`, have the same price. `MODEL_PRICES` overrides outdated prices.
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
  o3: { input: 2, output: 8 },
  'o4-mini': { input: 1.1, output: 4.4 },
}

const TOKENS_PER_PRICE = 1_000_000
const PRICE_USD_MAX = 1_000_000
const MODELS_MAX = 10_000
/** For example `gpt-4o-2024-08-06`. */
const SNAPSHOT = /-\d{4}-\d{2}-\d{2}$/

/**
 * The built-in list prices, overridden by the operator's. An exact name takes precedence over a name with `*`, and a
 * longer prefix over a shorter one; any price of the operator takes precedence over a built-in one.
 *
 * @param overrides as {@link parseModelPrices} returns them
 */
export function createPrices(overrides: PriceTable = {}): Prices {
  const own = lookUpIn(overrides)
  const listed = lookUpIn(LIST_PRICES)
  const find = (model: string) => own(model) ?? listed(model.replace(SNAPSHOT, ''))
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
  const form = 'must be a JSON object like {"gpt-5": {"input": 1.25, "output": 10}}, in USD per million tokens'
  const table = parsed(text)
  if (!isObject(table)) return { problem: form }
  const entries = Object.entries(table)
  if (entries.length > MODELS_MAX) return { problem: `must not name more than ${MODELS_MAX} models` }
  for (const [model, price] of entries) {
    const shown = JSON.stringify(model.slice(0, 100))
    if (model === '' || model.slice(0, -1).includes('*'))
      return { problem: `${form}; a "*" is allowed only at the end of a name: ${shown}` }
    if (!isPrice(price)) return { problem: `${form}; ${shown} needs "input" and "output", numbers of at least 0` }
  }
  return { prices: Object.fromEntries(entries) as PriceTable }
}

function lookUpIn(table: PriceTable): (model: string) => Price | undefined {
  const exact = new Map(Object.entries(table))
  const beginnings = [...exact.keys()]
    .filter((name) => name.endsWith('*'))
    .map((name) => name.slice(0, -1))
    .sort((a, b) => b.length - a.length)
  return (model) => {
    const price = exact.get(model)
    if (price !== undefined) return price
    const beginning = beginnings.find((each) => model.startsWith(each))
    return beginning === undefined ? undefined : exact.get(`${beginning}*`)
  }
}

function isPrice(value: unknown): value is Price {
  if (!isObject(value) || Object.keys(value).some((name) => name !== 'input' && name !== 'output')) return false
  return [value.input, value.output].every((usd) => typeof usd === 'number' && usd >= 0 && usd <= PRICE_USD_MAX)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
