import type { Budget, RateLimiter } from '../../base/http/rate-limit.ts'

/** What all feed tokens of a key may spend together, in budgets of a key: without a bound a key could make itself any budget. */
const BUDGETS_OF_TOKENS = 20

export interface Payer {
  readonly keyId: string
  /** Identifies the feed token; undefined for keys and people. */
  readonly token: string | undefined
}

/**
 * Spends the budget of a call. A feed token, which any page may have, has one of its own, so that it spends nothing of the key.
 * @throws ApiError RATE_LIMITED
 */
export function spendBudget(
  limiter: RateLimiter,
  { keyId, token }: Payer,
  [budget, cost]: readonly [Budget, number],
  headers?: Record<string, string | number>,
): void {
  limiter.take(token ?? keyId, budget, cost, headers)
  if (token !== undefined) limiter.take(`tokens of ${keyId}`, budget, cost / BUDGETS_OF_TOKENS)
}

/** Who pays for a call that a feed token may make, too. */
export function payerOf({ keyId, scoring }: { keyId: string; scoring?: { credential: string } }): Payer {
  return { keyId, token: scoring?.credential }
}
