import { expect, test } from 'bun:test'
import { RateLimiter } from '../../src/base/http/rate-limit.ts'
import { type Payer, spendBudget } from '../../src/tenants/keys/budget.ts'

const LIMITS = {
  ingestRequestsPerMinute: 0,
  eventsPerSecond: 0,
  invokesPerMinute: 0,
  readsPerMinute: 30,
  queriesPerMinute: 0,
}

test('all feed tokens of a key together have twenty times its budget, and spend nothing of the key', () => {
  const limiter = new RateLimiter(LIMITS, { monotonicMs: () => 0 })
  const read = (payer: Payer) => {
    try {
      spendBudget(limiter, payer, ['reads', 1])
      return 1
    } catch {
      return 0
    }
  }
  const readsOf = (keyId: string, token: string | undefined) => {
    let count = 0
    for (let i = 0; i < 40; i++) count += read({ keyId, token })
    return count
  }
  const counts = Array.from({ length: 25 }, (_, i) => readsOf('a', `token ${i}`))
  expect(counts.slice(0, 19)).toEqual(Array(19).fill(30))
  const total = counts.reduce((sum, count) => sum + count, 0)
  expect(Math.abs(total - 600)).toBeLessThanOrEqual(1)
  expect(readsOf('a', undefined)).toBe(30)
  expect(readsOf('b', 'another token')).toBe(30)
})
