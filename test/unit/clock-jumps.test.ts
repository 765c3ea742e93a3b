import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { SteadyClock } from '../../src/base/clock.ts'
import { FailureLimit, RateLimiter } from '../../src/base/http/rate-limit.ts'
import { clockHealth } from '../../src/service/ops/clock-watch.ts'
import { Penalties } from '../../src/sql/analytics/caps.ts'
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

const HOUR_MS = 3_600_000

function steadyClock() {
  const system = { ms: Date.UTC(2026, 0, 31), now: () => system.ms }
  let monotonicMs = 1_000
  const clock = new SteadyClock(system, () => monotonicMs)
  const pass = (ms: number) => {
    monotonicMs += ms
    system.ms += ms
    return clock.now() - system.ms
  }
  return { clock, system, pass }
}

test.each([6 * HOUR_MS, -6 * HOUR_MS])('a clock that is wrong by %d ms for some seconds changes nothing', (byMs) => {
  const { clock, system, pass } = steadyClock()
  expect(pass(1_000)).toBe(0)
  system.ms += byMs
  for (let n = 0; n < 20; n++) expect(pass(1_000)).toBe(-byMs)
  expect(clock.state).toEqual({ offByMs: byMs, jump: null })
  expect(clockHealth(clock)).toMatchObject({ ok: false, off_by_ms: byMs })
  expect(clockHealth(clock).problem).toContain(`jumped by ${byMs / 1_000} s`)
  system.ms -= byMs
  expect(pass(1_000)).toBe(0)
  expect(clockHealth(clock)).toEqual({ ok: true, off_by_ms: 0, problem: null })
})

test.each([6 * HOUR_MS, -6 * HOUR_MS])('a clock that stays %d ms away is followed after half a minute', (byMs) => {
  const { clock, system, pass } = steadyClock()
  system.ms += byMs
  expect(pass(1_000)).toBe(-byMs)
  expect(pass(29_000)).toBe(-byMs)
  expect(pass(1_000)).toBe(0)
  expect(clock.state).toEqual({ offByMs: 0, jump: { byMs, agoMs: 0 } })
  expect(clockHealth(clock)).toMatchObject({ ok: false, off_by_ms: 0 })
  pass(HOUR_MS)
  expect(clockHealth(clock).ok).toBe(true)
})

test('small steps are followed at once, and another jump begins to wait anew', () => {
  const { system, pass } = steadyClock()
  for (const stepMs of [4_000, -4_000, 500]) {
    system.ms += stepMs
    expect(pass(1_000)).toBe(0)
  }
  system.ms += HOUR_MS
  expect(pass(20_000)).toBe(-HOUR_MS)
  system.ms += HOUR_MS
  for (let n = 0; n < 29; n++) expect(pass(1_000)).toBe(-2 * HOUR_MS)
  expect([pass(1_000), pass(1_000)]).toEqual([-2 * HOUR_MS, 0])
})
