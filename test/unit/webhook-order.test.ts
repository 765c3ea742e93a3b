import { describe, expect, test } from 'bun:test'
import { Health } from '../../src/feeds/webhooks/delivery/health.ts'
import { Pace } from '../../src/feeds/webhooks/delivery/pace.ts'
import { delayAfter, retryAfterMs, SCHEDULE } from '../../src/feeds/webhooks/delivery/schedule.ts'
import { Slots } from '../../src/feeds/webhooks/delivery/slots.ts'

/** The pure parts of deliveries: docs/webhooks.md#deliveries. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const failed = (attempt: number, more: object = {}) => ({ attempt, isStrict: false, retryAfterMs: 0, ...more })

describe('the schedule', () => {
  test('has nine delays, then none', () => {
    const delays = Array.from({ length: 10 }, (_, i) => delayAfter(SCHEDULE, failed(i + 1), 0.5))
    expect(delays.map((ms) => ms && ms / 1_000)).toEqual([
      5,
      300,
      1_800,
      7_200,
      18_000,
      36_000,
      50_400,
      72_000,
      86_400,
      null,
    ])
  })

  test('varies delays by a fifth', () => {
    expect(delayAfter(SCHEDULE, failed(1), 0)).toBe(4_000)
    expect(delayAfter(SCHEDULE, failed(1), 1)).toBe(6_000)
  })

  test('repeats the last delay in strict order', () => {
    expect(delayAfter(SCHEDULE, failed(50, { isStrict: true }), 0.5)).toBe(DAY_MS)
  })

  test('waits as long as the receiver asks, up to an hour', () => {
    const now = Date.UTC(2026, 0, 1)
    expect(delayAfter(SCHEDULE, failed(1, { retryAfterMs: 9_000 }), 0.5)).toBe(9_000)
    expect(delayAfter(SCHEDULE, failed(2, { retryAfterMs: 9_000 }), 0.5)).toBe(300_000)
    expect(retryAfterMs('120', now)).toBe(120_000)
    expect(retryAfterMs(new Date(now + 60_000).toUTCString(), now)).toBe(60_000)
    expect(retryAfterMs('999999999999', now)).toBe(HOUR_MS)
    for (const useless of [null, '', 'soon', '-5', '0', new Date(now - 1).toUTCString()])
      expect(retryAfterMs(useless, now)).toBe(0)
  })
})

describe('an endpoint', () => {
  const outcome = (httpStatus: number | null) => ({
    isSuccess: httpStatus === 200,
    httpStatus,
    durationMs: 1,
    response: null,
    retryAfterMs: 0,
  })

  const stored = { failingSince: null, failingMs: 0, succeededAt: null, failedAt: null }

  test('is disabled by a failure five days after the first one', () => {
    const health = new Health(stored)
    const failDaily = (from: number, to: number) => {
      for (let day = from; day <= to; day++) health.note(outcome(500), SCHEDULE, day * DAY_MS)
    }
    failDaily(0, 4)
    health.note(outcome(500), SCHEDULE, 5 * DAY_MS - 1)
    expect(health.disabledBecause).toBeNull()
    health.note(outcome(200), SCHEDULE, 5 * DAY_MS)
    failDaily(6, 10)
    expect(health.disabledBecause).toBeNull()
    // The next process goes on from what is stored.
    const next = new Health(health.stored)
    next.note(outcome(null), SCHEDULE, 11 * DAY_MS)
    expect(next.disabledBecause).toBe('every attempt since 1970-01-07T00:00:00.000Z has failed')
  })

  test('is not disabled by a clock that jumps ahead by weeks, or back', () => {
    const health = new Health(stored)
    for (const day of [0, 20, 0, 20.1, 0.1]) health.note(outcome(500), SCHEDULE, day * DAY_MS)
    expect(health.disabledBecause).toBeNull()
    expect(health.stored.failingSince).toBe(0)
  })

  test('has half the attempts under way after 429, 502 and 504, and one more after each full window', () => {
    const pace = new Pace()
    const room = () => {
      let count = 0
      for (; pace.hasRoom(0); count++) pace.started(0)
      for (let i = 0; i < count; i++) pace.cancelled()
      return count
    }
    const attempts = (httpStatus: number, count: number) => {
      for (let i = 0; i < count; i++) {
        pace.started(0)
        pace.ended(outcome(httpStatus), 0)
      }
    }
    expect(room()).toBe(16)
    for (const [status, left] of [
      [429, 8],
      [500, 8],
      [502, 4],
      [504, 2],
      [429, 1],
      [429, 1],
    ] as const) {
      attempts(status, 1)
      expect(room()).toBe(left)
    }
    attempts(200, 1)
    expect(room()).toBe(2)
    attempts(200, 2)
    expect(room()).toBe(3)
    attempts(200, 1_000)
    expect(room()).toBe(16)
  })

  test('that is dead is only probed', () => {
    const pace = new Pace()
    for (let i = 0; i < 20; i++) {
      pace.started(0)
      pace.ended(outcome(null), 0)
    }
    expect(pace.hasRoom(999)).toBe(false)
    expect(pace.hasRoom(1_000)).toBe(true)
    pace.started(1_000)
    expect(pace.hasRoom(2_000)).toBe(false)
    pace.ended(outcome(200), 2_000)
    expect(pace.hasRoom(2_000)).toBe(true)
  })

  test('leaves a receiver alone as long as it asks', () => {
    const pace = new Pace()
    pace.started(0)
    pace.ended({ ...outcome(429), retryAfterMs: 5_000 }, 0)
    expect(pace.hasRoom(4_999)).toBe(false)
    expect(pace.hasRoom(5_000)).toBe(true)
  })
})

test('a workspace leaves slots for the others', () => {
  const slots = new Slots(16)
  const told: string[] = []
  const fill = (workspace: string) => {
    let count = 0
    while (slots.take(workspace, () => told.push(workspace))) count++
    return count
  }
  expect(fill('a')).toBe(8)
  expect(fill('b')).toBe(4)
  expect(fill('c')).toBe(2)
  slots.release('a')
  expect(told).toEqual(['a', 'b', 'c'])
  expect(slots.inFlight).toBe(13)
})
