import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { Penalties } from '../../src/analytics/caps.ts'
import { FailureLimit, RateLimiter } from '../../src/http/rate-limit.ts'
import { waitOf } from '../support/failures.ts'

/** Limits last as long as they say, also when the system clock is set. */

const JUMPS_MS = [365 * 86_400_000, -365 * 86_400_000]

afterEach(() => {
  setSystemTime()
})

test.each(JUMPS_MS)('a jump of the system clock by %d ms neither ends nor prolongs a refusal', (jumpMs) => {
  const penalties = new Penalties(30)
  penalties.add('workspace')
  const limiter = new RateLimiter({
    ...{ ingestRequestsPerMinute: 0, eventsPerSecond: 0, invokesPerMinute: 0, readsPerMinute: 0 },
    queriesPerMinute: 1,
  })
  expect(waitOf(() => limiter.take('key', 'queries', 1))).toBe(0)
  const failures = new FailureLimit({ perMinute: 1, totalPerMinute: 100, what: 'attempts' })
  failures.begin('address')
  const refused = [
    () => penalties.check('workspace'),
    () => limiter.take('key', 'queries', 1),
    () => failures.begin('address'),
  ]
  const before = refused.map(waitOf)
  setSystemTime(Date.now() + jumpMs)
  const after = refused.map(waitOf)
  for (const [index, wait] of after.entries()) {
    expect(before[index]).toBeGreaterThan(0)
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(before[index]!)
  }
})
