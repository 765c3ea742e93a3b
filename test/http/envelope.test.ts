import { describe, expect, test } from 'bun:test'
import { ApiError } from '../../src/base/errors.ts'
import { converse, errorOf, post, startHttpApp } from '../support/http-app.ts'

const app = startHttpApp({
  unavailableOf: (error) =>
    error instanceof Error && error.message === 'store gone' ? new ApiError('UNAVAILABLE', 'try again') : null,
  onThing: ({ name }) => {
    if (name === 'gone') throw new Error('store gone')
    return { name }
  },
})
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/
const ID = '0197F3A0-0000-7000-8000-000000000001'

describe('every response is the envelope', () => {
  test('wraps the result in data, with error null and nothing else', async () => {
    const response = await post(`${app.url}/echo`, { name: 'a' })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.text()).toBe('{"data":{"name":"a"},"error":null}')
  })

  test('returns free-form JSON value for value', async () => {
    const input = '{"big":12345678901234567890,"one":1.0,"__proto__":{"x":1},"nul":"\\u0000","lone":"\\ud800"}'
    const response = await post(`${app.url}/echo`, `{"name":"a","input":${input}}`)
    expect(await response.text()).toBe(`{"data":{"name":"a","input":${input}},"error":null}`)
  })

  test('an unknown route is NOT_FOUND', async () => {
    const response = await fetch(`${app.url}/nope?x=1`)
    expect(await errorOf(response)).toMatchObject({
      status: 404,
      code: 'NOT_FOUND',
      message: 'no route GET "/nope"; GET /docs lists them all',
    })
  })

  test('a known path with another method is METHOD_NOT_ALLOWED and names the methods it supports', async () => {
    const response = await fetch(`${app.url}/things/${ID}`, { method: 'PUT' })
    expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS, PATCH')
    expect(await errorOf(response)).toMatchObject({
      status: 405,
      code: 'METHOD_NOT_ALLOWED',
      message: `"/things/${ID}" does not support PUT; it supports GET, HEAD, OPTIONS, PATCH`,
    })
  })

  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'])('%p on a POST-only path is 405 with Allow', async (method) => {
    const response = await fetch(`${app.url}/echo`, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'OPTIONS, POST'])
    expect(response.headers.get('x-request-id')).toMatch(ULID)
    if (method !== 'HEAD') expect((await errorOf(response)).code).toBe('METHOD_NOT_ALLOWED')
  })

  test('skips the body of an unsupported method and keeps the connection', async () => {
    const rejected = `PUT /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{"a":`
    const next = `GET /things HTTP/1.1\r\nHost: localhost\r\n\r\n`
    const { text } = await converse(app.port, [rejected, next], { isEnough: (text) => text.includes('HTTP/1.1 200') })
    expect(text).toContain('HTTP/1.1 405')
  })

  test.each([
    ['an empty parameter', '/things//'],
    ['too many segments', `/things/${ID}/more`],
  ])('a path with %s is NOT_FOUND for every method', async (_name, path) => {
    for (const method of ['GET', 'PUT']) {
      const response = await fetch(app.url + path, { method })
      expect([response.status, response.headers.get('allow')]).toEqual([404, null])
    }
  })

  test('OPTIONS lists the methods, and HEAD answers like GET without a body', async () => {
    const options = await fetch(`${app.url}/things`, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS, POST'])
    expect(options.headers.get('x-request-id')).toMatch(ULID)
    const head = await fetch(`${app.url}/things`, { method: 'HEAD' })
    const get = await fetch(`${app.url}/things`)
    expect(head.status).toBe(200)
    expect(head.headers.get('content-length')).toBe(String((await get.text()).length))
    expect(await head.text()).toBe('')
  })

  test('a crash is INTERNAL with the request id, and only the log has the cause', async () => {
    const response = await fetch(`${app.url}/crash`, { headers: { 'x-request-id': 'crash-1' } })
    expect(await errorOf(response)).toMatchObject({
      status: 500,
      code: 'INTERNAL',
      message: 'internal error; see the log for request id crash-1',
    })
    const line = app.logged.find((entry) => entry.request_id === 'crash-1')
    expect(line).toMatchObject({ level: 'error', method: 'GET', path: '/crash', status: 500 })
    expect(JSON.stringify(line)).toContain('internal detail')
  })

  test('a response that does not match its schema is INTERNAL and logged, not sent', async () => {
    const response = await fetch(`${app.url}/wrong`, { headers: { 'x-request-id': 'wrong-1' } })
    expect((await errorOf(response)).code).toBe('INTERNAL')
    expect(app.logged.find((entry) => entry.request_id === 'wrong-1')).toMatchObject({ level: 'error', status: 500 })
  })

  test('UNAVAILABLE carries Retry-After in whole seconds; only a failed store is logged with its error', async () => {
    const linesOf = async (id: string, path: string, answer: [after: string, message: string], body?: object) => {
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      const headers = { 'x-request-id': id, 'content-type': 'application/json' }
      const response = await fetch(app.url + path, { ...init, headers })
      const { status, code, message } = await errorOf(response)
      expect([status, code]).toEqual([503, 'UNAVAILABLE'])
      expect([response.headers.get('retry-after'), message]).toEqual(answer)
      return app.logged.filter((entry) => entry.request_id === id)
    }
    const expected = { level: 'warn', status: 503, error: 'the store is away' }
    expect(await linesOf('expected-1', '/away', ['7', 'the store is away'])).toMatchObject([expected])
    const failed = { level: 'warn', status: 503, error: { message: 'store gone', stack: expect.any(String) } }
    expect(await linesOf('failed-1', '/things', ['1', 'try again'], { name: 'gone' })).toMatchObject([failed])
  })

  test('a Response made by a route is sent unchanged, with a request id', async () => {
    const response = await fetch(`${app.url}/own`)
    expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
      201,
      'text/plain',
      'mine',
    ])
    expect(response.headers.get('x-request-id')).toMatch(ULID)
  })
})

describe('X-Refused', () => {
  const refusedOf = async (path: string, body: unknown, method = 'POST') => {
    const init = method === 'GET' ? {} : { method, body: JSON.stringify(body) }
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(app.url + path, { ...init, headers })
    return [response.status, response.headers.get('x-refused')]
  }

  test('marks a refusal of the request itself, and nothing else', async () => {
    expect(await refusedOf('/echo', { name: 7 })).toEqual([400, 'request'])
    expect(await refusedOf('/echo', { name: 'a', input: { text: 'x'.repeat(100_000) } })).toEqual([413, 'request'])
    expect(await refusedOf('/echo', { name: 'a' })).toEqual([200, null])
    expect(await refusedOf('/nope', { name: 'a' })).toEqual([404, null])
    expect(await refusedOf('/echo', {}, 'PUT')).toEqual([405, null])
    expect(await refusedOf('/things', { name: 'gone' })).toEqual([503, null])
    expect(await refusedOf('/away', undefined, 'GET')).toEqual([503, null])
  })
})

describe('X-Request-Id', () => {
  test("is the caller's, if valid", async () => {
    for (const id of ['a', 'req_01.A-z', 'x'.repeat(128)]) {
      const response = await fetch(`${app.url}/things`, { headers: { 'x-request-id': id } })
      expect(response.headers.get('x-request-id')).toBe(id)
    }
  })

  test('is otherwise a new ULID, on errors too', async () => {
    const seen = new Set<string>()
    for (const id of ['', 'a b', 'x'.repeat(129), 'é', '"quoted"', undefined]) {
      for (const path of ['/things', '/nope', '/things?limit=0']) {
        const response = await fetch(app.url + path, { headers: id === undefined ? {} : { 'x-request-id': id } })
        expect(response.headers.get('x-request-id')).toMatch(ULID)
        seen.add(response.headers.get('x-request-id')!)
      }
    }
    expect(seen.size).toBe(18)
  })

  test('is in the log line of the request', async () => {
    await fetch(`${app.url}/things?limit=3`, { headers: { 'x-request-id': 'line-1' } })
    const line = app.logged.find((entry) => entry.request_id === 'line-1')
    expect(line).toMatchObject({ level: 'debug', message: 'request', method: 'GET', path: '/things', status: 200 })
  })
})

test('metrics get the route pattern, never parameter values', async () => {
  const observed: unknown[][] = []
  const observing = startHttpApp({ observeRequest: (...seen) => observed.push(seen) })
  await fetch(`${observing.url}/things/${ID}`)
  await fetch(`${observing.url}/things/x`)
  await fetch(`${observing.url}/nope/${ID}`)
  await fetch(`${observing.url}/crash`)
  expect(observed.map((seen) => seen.slice(0, 3))).toEqual([
    ['GET', '/things/:thingId', 200],
    ['GET', '/things/:thingId', 400],
    ['GET', 'none', 404],
    ['GET', '/crash', 500],
  ])
  for (const [, , , seconds] of observed) expect(seconds).toBeWithin(0, 1)
})
