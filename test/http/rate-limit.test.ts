import { expect, test } from 'bun:test'
import { errorOf, startHttpApp } from '../support/http-app.ts'

let monotonicMs = 0
const app = startHttpApp({
  rateLimits: {
    ingestRequestsPerMinute: 0,
    eventsPerSecond: 0,
    invokesPerMinute: 0,
    readsPerMinute: 3,
    queriesPerMinute: 0,
  },
  limiter: { monotonicMs: () => monotonicMs },
})
const get = (key: string, path = '/things') => fetch(app.url + path, { headers: { 'x-test-key': key } })

function rateHeaders({ headers }: Response): (string | null)[] {
  return ['ratelimit-policy', 'ratelimit', 'retry-after'].map((name) => headers.get(name))
}

test('every response has rate limit headers, and a 429 has Retry-After, after which requests work again', async () => {
  expect(rateHeaders(await get('a'))).toEqual(['"reads";q=3;w=60', '"reads";r=2;t=20', null])
  // Also on an error response.
  const rejected = await get('a', '/things?limit=0')
  expect(rejected.status).toBe(400)
  expect(rateHeaders(rejected)).toEqual(['"reads";q=3;w=60', '"reads";r=1;t=40', null])
  await get('a')
  const limited = await get('a')
  expect(rateHeaders(limited)).toEqual(['"reads";q=3;w=60', '"reads";r=0;t=60', '20'])
  expect(await errorOf(limited)).toMatchObject({
    status: 429,
    code: 'RATE_LIMITED',
    message: 'too many requests: the limit is 3 per key in 60 s; retry in 20 s',
  })
  monotonicMs += 20_000
  expect((await get('a')).status).toBe(200)
  expect((await get('a')).status).toBe(429)
})

test('a request over the limit is rejected before it is validated', async () => {
  for (let i = 0; i < 3; i++) await get('d')
  expect((await get('d', '/things?limit=0')).status).toBe(429)
})
