import type { ModelUsage } from '../model/model.ts'
import type { Prices } from '../model/prices.ts'
import type { Step } from './rows.ts'

/** What calls cost where a budget is concerned (contract section 3: `budget_usd`). */

/** The next question holds at least what the last one and its answer did. */
export function nextCostAtLeast(prices: Prices, model: string, last: Step | undefined): number {
  if (last === undefined) return 0
  return priceOf(prices, model, { inputTokens: last.inputTokens + last.outputTokens, outputTokens: 0 })
}

/**
 * What the answers of a run have come to so far.
 *
 * @param costUsd of those whose price is known
 */
export function spentUsd(prices: Prices, model: string, costUsd: number, steps: readonly Step[]): number {
  if (prices.costUsd(model, { inputTokens: 0, outputTokens: 0 }) !== null) return costUsd
  return Math.max(
    costUsd,
    steps.reduce((sum, step) => sum + priceOf(prices, model, step), 0),
  )
}

/** A model of unknown price is taken for the dearest, so that no budget is passed without a word. */
export function priceOf(prices: Prices, model: string, usage: ModelUsage): number {
  const known = prices.costUsd(model, usage)
  if (known !== null) return known
  const { input, output } = prices.dearest()
  return (usage.inputTokens * input + usage.outputTokens * output) / TOKENS_PER_PRICE
}

const TOKENS_PER_PRICE = 1_000_000
