import { expect, test } from 'bun:test'
import { type Budget, RateLimiter, type RateLimits } from '../../src/base/http/rate-limit.ts'
import { waitOf } from '../support/failures.ts'
import { seededRandom } from '../support/random.ts'

const LIMITS: RateLimits = {
  ingestRequestsPerMinute: 60,
  eventsPerSecond: 100,
  invokesPerMinute: 600,
  readsPerMinute: 0,
  queriesPerMinute: 1,
}

function setUp(limits = LIMITS) {
  const time = { ms: 1_000_000 }
  const limiter = new RateLimiter(limits, { monotonicMs: () => time.ms })
  /** Seconds to wait; 0 if the cost was taken. */
  const take = (key: string, budget: Budget, cost: number) => waitOf(() => limiter.take(key, budget, cost))
  return { time, limiter, take }
}

test('counts budgets and keys separately', () => {
  const { take } = setUp()
  for (let i = 0; i < 60; i++) expect(take('a', 'ingest', 1)).toBe(0)
  expect(take('a', 'ingest', 1)).toBe(1)
  expect(take('a', 'events', 100)).toBe(0)
  expect(take('a', 'queries', 1)).toBe(0)
  expect(take('a', 'queries', 1)).toBe(60)
  expect(take('b', 'queries', 1)).toBe(0)
})

test('a batch larger than the whole bucket passes when the bucket is full, and leaves a debt', () => {
  const { time, take } = setUp()
  expect(take('a', 'events', 1)).toBe(0)
  expect(take('a', 'events', 250)).toBe(1)
  time.ms += 10
  expect(take('a', 'events', 250)).toBe(0)
  // The debt of 150 and one more, at 100 a second.
  expect(take('a', 'events', 1)).toBe(2)
  time.ms += 1_510
  expect(take('a', 'events', 1)).toBe(0)
})

test('a retry after the advertised wait succeeds', () => {
  const { int, pick } = seededRandom('rate limit')
  const { time, take } = setUp()
  for (let i = 0; i < 2_000; i++) {
    const [budget, cost] = pick([
      ['ingest', 1],
      ['events', int(1, 300)],
      ['queries', 1],
    ] as [Budget, number][])
    const wait = take('a', budget, cost)
    if (wait > 0) {
      time.ms += wait * 1000
      expect(take('a', budget, cost)).toBe(0)
    }
    time.ms += int(0, 50)
  }
})

test('never admits more than one full bucket plus the refill', () => {
  const { int } = seededRandom('rate limit bound')
  const { time, take } = setUp()
  const start = time.ms
  let passed = 0
  for (let i = 0; i < 5_000; i++) {
    const cost = int(1, 100)
    if (take('a', 'events', cost) === 0) passed += cost
    time.ms += int(0, 20)
    expect(passed).toBeLessThanOrEqual(100 + ((time.ms - start) * 100) / 1000)
  }
  expect(passed).toBeGreaterThan(((time.ms - start) * 100) / 1000 / 2)
})

test('an unlimited budget rejects nothing and sends no headers', () => {
  const { limiter } = setUp()
  const headers = {}
  for (let i = 0; i < 10_000; i++) limiter.take('a', 'reads', 1_000, headers)
  expect(headers).toEqual({})
})

test('bounds memory; evicts full buckets first', () => {
  const { time, take } = setUp()
  expect(take('busy', 'queries', 1)).toBe(0)
  for (let i = 0; i < 15_000; i++) take(`early ${i}`, 'queries', 1)
  time.ms += 59_000
  expect(take('late', 'queries', 1)).toBe(0)
  time.ms += 1_000
  for (let i = 0; i < 15_000; i++) take(`more ${i}`, 'queries', 1)
  expect(take('late', 'queries', 1)).toBe(59)
  // After those, the oldest bucket goes, although it still has a debt.
  for (let i = 0; i < 25_000; i++) take(`flood ${i}`, 'queries', 1)
  expect(take('late', 'queries', 1)).toBe(0)
})
