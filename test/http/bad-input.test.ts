import { describe, expect, test } from 'bun:test'
import { converse, errorOf, post, startHttpApp } from '../support/http-app.ts'

const app = startHttpApp()
const ID = '0197f3a0-0000-7000-8000-000000000001'

/** The error message for an invalid body. */
async function rejection(body: unknown, path = '/echo'): Promise<string> {
  const error = await errorOf(await post(app.url + path, body))
  expect(error).toMatchObject({ status: 400, code: 'VALIDATION_ERROR' })
  return error.message
}

describe('an invalid body is rejected, naming the field and what was expected', () => {
  const cases: [string, unknown, string][] = [
    ['a missing field', {}, 'name: required'],
    ['a missing nested field', { name: 'a', task: {} }, 'task.id: required'],
    ['a wrong type', { name: 5 }, 'name: expected a string of 1 to 10 characters; got 5'],
    ['null for text', { name: null }, 'name: expected a string of 1 to 10 characters; got null'],
    ['an object for text', { name: {} }, 'name: expected a string of 1 to 10 characters; got an object'],
    ['a text that is too long', { name: '12345678901' }, 'name: expected at most 10 characters; got "12345678901"'],
    ['an empty text', { name: '' }, 'name: expected at least 1 character; got ""'],
    ['NUL in text', '{"name":"a\\u0000b"}', 'name: expected text without the character U+0000; got "a\\u0000b"'],
    ['a lone surrogate in text', '{"name":"a\\ud800b"}', 'name: expected text without lone surrogates; got "a\ufffdb"'],
    ['an invalid UUID', { name: 'a', task: { id: 'x' } }, 'task.id: expected a UUID; got "x"'],
    ['an integer out of range', { name: 'a', count: 6 }, 'count: expected an integer from 1 to 5; got 6'],
    ['a fraction for an integer', { name: 'a', count: 1.5 }, 'count: expected an integer from 1 to 5; got 1.5'],
    ['digits in a string for an integer', { name: 'a', count: '5' }, 'count: expected an integer from 1 to 5; got "5"'],
    ['a nullable number out of range', { name: 'a', budget: -1 }, 'budget: expected a number of at least 0; got -1'],
    [
      'text for a nullable number',
      { name: 'a', budget: 'x' },
      'budget: expected a number of at least 0 or null; got "x"',
    ],
    ['an array for a free-form object', { name: 'a', input: [1] }, 'input: expected a JSON object; got an array'],
    ['text for a free-form object', { name: 'a', input: 'x' }, 'input: expected a JSON object; got "x"'],
    ['null for a free-form object', { name: 'a', input: null }, 'input: expected a JSON object; got null'],
    [
      'a value outside an enum',
      { name: 'a', events: [{ type: 'x' }, { type: 'y', level: 'warning' }] },
      'events[1].level: expected one of debug, info, warn, error; got "warning"',
    ],
    [
      'a date that does not exist',
      { name: 'a', events: [{ type: 'x', occurred_at: '2026-02-30T00:00:00Z' }] },
      'events[0].occurred_at: expected an RFC 3339 timestamp of the years 1900 to 2299; got "2026-02-30T00:00:00Z"',
    ],
    ['a non-array', { name: 'a', events: {} }, 'events: expected an array of at most 10 items; got an object'],
    ['an element of the wrong type', { name: 'a', events: [7] }, 'events[0]: expected an object; got 7'],
    [
      'too many items',
      { name: 'a', events: Array(11).fill({ type: 'x' }) },
      'events: expected an array of at most 10 items; got an array',
    ],
    ['an unknown field close to a known one', { name: 'a', inptu: {} }, 'inptu: unknown field; did you mean "input"?'],
    ['a known field spelled In-put', { name: 'a', 'In-put': {} }, 'In-put: unknown field; did you mean "input"?'],
    ['a misspelt required field', { nmae: 'a' }, 'nmae: unknown field; did you mean "name"?'],
    [
      'a nested misspelling',
      { name: 'a', events: [{ tpye: 'x' }] },
      'events[0].tpye: unknown field; did you mean "type"?',
    ],
    [
      'any other unknown field',
      { name: 'a', zzz: 1 },
      'zzz: unknown field; expected only name, task, count, budget, input, events',
    ],
    [
      'a name that needs quoting',
      { name: 'a', 'a b/c~"': 1 },
      '["a b/c~\\""]: unknown field; expected only name, task, count, budget, input, events',
    ],
    [
      '__proto__',
      '{"name":"a","__proto__":{"admin":true}}',
      '__proto__: unknown field; expected only name, task, count, budget, input, events',
    ],
    ['an array', [1], 'body: expected a JSON object; got an array'],
    ['a string', '"x"', 'body: expected a JSON object; got "x"'],
    ['null', 'null', 'body: expected a JSON object; got null'],
  ]
  test.each(cases)('%s', async (_what, body, message) => {
    expect(await rejection(body)).toBe(message)
  })

  test('truncates a long value in the message', async () => {
    const message = await rejection({ name: 'a', task: { id: '😀'.repeat(5_000) } })
    expect(message).toStartWith('task.id: expected a UUID; got "😀😀')
    expect(message).toEndWith('😀"…')
    expect(message.length).toBeLessThan(120)
  })

  test('counts text length in characters, not in UTF-16 code units', async () => {
    expect((await post(`${app.url}/echo`, { name: '😀'.repeat(10) })).status).toBe(200)
    expect(await rejection({ name: '😀'.repeat(11) })).toStartWith('name: expected at most 10 characters')
  })
})

describe('all mistakes of a body are told', () => {
  const problemsOf = async (body: unknown) => errorOf(await post(`${app.url}/echo`, body))

  test('each by its place, the first one in the message, too', async () => {
    const error = await problemsOf({
      task: { id: 'x' },
      count: 9,
      events: [{ type: 'a' }, { level: 'loud', at: 1 }],
      extra: 1,
    })
    expect(error).toEqual({
      status: 400,
      code: 'VALIDATION_ERROR',
      message: 'name: required',
      param: 'name',
      problems: [
        { param: 'name', message: 'required' },
        { param: 'extra', message: 'unknown field; expected only name, task, count, budget, input, events' },
        { param: 'task.id', message: 'expected a UUID; got "x"' },
        { param: 'count', message: 'expected an integer from 1 to 5; got 9' },
        { param: 'events[1].type', message: 'required' },
        { param: 'events[1].at', message: expect.stringContaining('unknown field') },
        { param: 'events[1].level', message: expect.stringContaining('got "loud"') },
      ],
    })
  })

  test('a misspelt field is one mistake', async () => {
    const { problems } = await problemsOf({ nmae: 'a' })
    expect(problems).toEqual([{ param: 'nmae', message: 'unknown field; did you mean "name"?' }])
  })

  test('at most 20, whatever is wrong', async () => {
    const names = Array.from({ length: 5_000 }, (_, index) => [`x${index}`, {}])
    const error = await problemsOf({ name: 'a', ...Object.fromEntries(names) })
    expect(error.param).toBe('x0')
    expect(error.problems).toHaveLength(20)
  })

  test('a body that is no JSON has one', async () => {
    const { message, param, problems } = await problemsOf('{"name":')
    expect(problems).toEqual([{ param: 'body', message: message.replace('body: ', '') }])
    expect(param).toBe('body')
  })
})

describe('an invalid query or path is rejected, naming the parameter', () => {
  const limit = 'query.limit: expected an integer from 1 to 200; got'
  const cases: [string, string][] = [
    ['/things?limit=0', `${limit} "0"`],
    ['/things?limit=201', `${limit} "201"`],
    ['/things?limit=ten', `${limit} "ten"`],
    ['/things?limit=', `${limit} ""`],
    ['/things?limit=1e1', `${limit} "1e1"`],
    ['/things?limit=99999999999999999999', `${limit} "99999999999999999999"`],
    ['/things?limt=5', 'query.limt: unknown field; did you mean "limit"?'],
    ['/things?from=yesterday', 'query.from: expected an RFC 3339 timestamp of the years 1900 to 2299; got "yesterday"'],
    ['/things/42', 'path.thingId: expected a UUID; got "42"'],
    ['/things/%00', 'path.thingId: expected a UUID; got "\\u0000"'],
  ]
  test.each(cases)('%s', async (path, message) => {
    const error = await errorOf(await fetch(app.url + path))
    expect(error).toMatchObject({ status: 400, code: 'VALIDATION_ERROR', message, param: message.split(':')[0] })
  })

  test('a valid query is parsed into numbers and text', async () => {
    const response = await fetch(`${app.url}/things?limit=20&from=2026-01-31T09:30:00%2B02:00`)
    expect(await response.json()).toEqual({ data: { limit: 20, from: '2026-01-31T09:30:00+02:00' }, error: null })
  })

  test.each([
    '/things/%ff',
    '/things/%zz',
    '/things/%',
    `/things/${ID}/`,
    '//things',
    '/things?%ff=%zz&a[b]=c&__proto__=x',
    '/%00',
  ])('an odd path gets a regular response: %s', async (path) => {
    const { text } = await converse(app.port, [`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`])
    expect(text).toMatch(/^HTTP\/1.1 (200|400|404) /)
    expect(text).toMatch(
      /\{"data":(null|\{.*\}),"error":(null|\{"code":"(NOT_FOUND|VALIDATION_ERROR)","message":".*",?.*\})\}$/,
    )
  })
})

describe('a body that is not JSON', () => {
  test.each([
    ['{"name":', 'body: not valid JSON: expected a value at line 1 column 9; the body ends there'],
    ["{'name':1}", `body: not valid JSON: expected a member name or '}' at line 1 column 2; got "'"`],
    ['{"name":"a",}', `body: not valid JSON: expected a member name or '}' at line 1 column 13; got "}"`],
    ['{"name":NaN}', 'body: not valid JSON: expected a value at line 1 column 9; got "N"'],
    [' ', 'body: not valid JSON: expected a value at line 1 column 2; the body ends there'],
    ['{}{}', 'body: not valid JSON: expected the end of the body at line 1 column 3; got "{"'],
  ])('%s', async (body, message) => {
    expect(await rejection(body)).toBe(message)
  })

  test.each([
    ['a typed', `{"name":${'['.repeat(5_000)}`],
    ['a free-form', `{"name":"a","input":${'{"a":'.repeat(5_000)}`],
    ['an unknown', `{"zzz":${'[['.repeat(2_000)}${']]'.repeat(2_000)}}`],
  ])('with nesting past the limit in %s field is rejected', async (_what, deep) => {
    expect(await rejection(deep)).toContain('expected less nesting at line 1')
  })
})

test('rejecting a large body costs about as much CPU as accepting one', async () => {
  const large = startHttpApp({ limits: { body_bytes: 12 << 20, json_depth: 16 } })
  const input = { text: 'a "quoted" word '.repeat(650_000) }
  const time = async (body: string) => {
    const before = process.cpuUsage()
    const response = await post(`${large.url}/echo`, body)
    await response.arrayBuffer()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
  const good = JSON.stringify({ name: 'a', input })
  const bad = JSON.stringify({ name: 'a', input, zzz: 1 })
  const best = { good: Number.POSITIVE_INFINITY, bad: Number.POSITIVE_INFINITY }
  for (let round = 0; round < 3; round++) {
    best.good = Math.min(best.good, await time(good))
    best.bad = Math.min(best.bad, await time(bad))
  }
  expect(best.bad).toBeLessThan(best.good * 3 + 50)
})
