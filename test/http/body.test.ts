import { describe, expect, spyOn, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { RawJson } from '../../src/base/raw-json.ts'
import { errorOf, post, startHttpApp } from '../support/http-app.ts'

const LIMIT = 64 * 1024
const app = startHttpApp()
const url = `${app.url}/echo`
const encode = (text: string) => new TextEncoder().encode(text)
const thing = encode('{"name":"a"}')

/** JSON of exactly this many bytes. */
function bodyOf(bytes: number): Uint8Array {
  const frame = '{"name":"a","input":{"x":""}}'
  return encode(frame.replace('""', `"${'y'.repeat(bytes - frame.length)}"`))
}

/** A body without a Content-Length. */
function chunked(bytes: Uint8Array): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 10_000) controller.enqueue(bytes.slice(at, at + 10_000))
      controller.close()
    },
  })
}

function rejectionOf(response: Response) {
  return errorOf(response).then(({ code, message }) => `${code} ${message}`)
}

describe('size', () => {
  test('accepts a body at the limit and rejects one byte more', async () => {
    expect((await post(url, bodyOf(LIMIT))).status).toBe(200)
    const response = await post(url, bodyOf(LIMIT + 1))
    expect(await errorOf(response)).toMatchObject({
      status: 413,
      code: 'PAYLOAD_TOO_LARGE',
      message: 'body: expected at most 65536 bytes, also after decompression',
    })
    expect(response.headers.get('x-request-id')).not.toBeNull()
  })

  test('the limit applies to a body of unknown length', async () => {
    const send = (bytes: number) => fetch(url, { method: 'POST', body: chunked(bodyOf(bytes)) })
    expect((await send(LIMIT)).status).toBe(200)
    expect((await errorOf(await send(LIMIT + 1))).code).toBe('PAYLOAD_TOO_LARGE')
  })

  test('keeps the connection open after a body slightly over the limit', async () => {
    const response = await post(url, bodyOf(LIMIT * 2))
    expect([response.status, response.headers.get('connection')]).toEqual([413, null])
  })
})

describe('Content-Type', () => {
  test.each(['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf8"', ''])(
    'accepts %p',
    async (type) => {
      expect((await fetch(url, { method: 'POST', body: thing, headers: { 'content-type': type } })).status).toBe(200)
    },
  )

  test('accepts a request without Content-Type', async () => {
    expect((await fetch(url, { method: 'POST', body: chunked(thing) })).status).toBe(200)
  })

  test.each([
    'application/x-www-form-urlencoded',
    'text/plain',
    'application/json; charset=latin1',
    'application/jsonp',
    '*/*',
  ])('rejects %s', async (type) => {
    const response = await fetch(url, { method: 'POST', body: thing, headers: { 'content-type': type } })
    expect(await rejectionOf(response)).toBe(
      `VALIDATION_ERROR header Content-Type: expected application/json in UTF-8; got ${JSON.stringify(type)}`,
    )
  })

  test('is ignored without a body', async () => {
    const response = await fetch(`${app.url}/revoke`, { method: 'POST', headers: { 'content-type': 'text/plain' } })
    expect(response.status).toBe(200)
  })
})

describe('Content-Encoding', () => {
  test.each([
    ['gzip', gzipSync(thing)],
    ['x-gzip', gzipSync(thing)],
    ['GZIP', gzipSync(thing)],
    ['zstd', Bun.zstdCompressSync(thing)],
    ['identity', thing],
  ])('accepts %s', async (encoding, bytes) => {
    const response = await post(url, bytes, { 'content-encoding': encoding })
    expect(await response.json()).toEqual({ data: { name: 'a' }, error: null })
  })

  test.each(['br', 'deflate', 'gzip, gzip', 'compress'])('rejects %s', async (encoding) => {
    expect(await rejectionOf(await post(url, thing, { 'content-encoding': encoding }))).toBe(
      `VALIDATION_ERROR header Content-Encoding: expected gzip, zstd or identity; got "${encoding}"`,
    )
  })

  test.each(['gzip', 'zstd'])('the limit applies to the decompressed size: %s', async (encoding) => {
    const compress = (bytes: Uint8Array) => (encoding === 'gzip' ? gzipSync(bytes) : Bun.zstdCompressSync(bytes))
    expect((await post(url, compress(bodyOf(LIMIT)), { 'content-encoding': encoding })).status).toBe(200)
    const response = await post(url, compress(bodyOf(LIMIT + 1)), { 'content-encoding': encoding })
    expect((await errorOf(response)).code).toBe('PAYLOAD_TOO_LARGE')
  })

  test.each(['gzip', 'zstd'])('stops decompressing a bomb at the limit: %s', async (encoding) => {
    const zeros = new Uint8Array(256 << 20)
    const bomb = encoding === 'gzip' ? gzipSync(zeros.subarray(0, 60 << 20)) : Bun.zstdCompressSync(zeros)
    expect(bomb.length).toBeLessThanOrEqual(LIMIT)
    const before = process.memoryUsage.rss()
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => post(url, bomb, { 'content-encoding': encoding })),
    )
    for (const response of responses) expect(response.status).toBe(413)
    // Fully decompressed they would take more than a gigabyte, whenever garbage collection runs.
    expect(process.memoryUsage.rss() - before).toBeLessThan(512 << 20)
  })

  test.each([
    ['gzip', encode('{"name":"a"}')],
    ['gzip', gzipSync(thing).subarray(0, 20)],
    ['gzip', new Uint8Array([0x1f, 0x8b])],
    ['zstd', encode('{"name":"a"}')],
  ])('rejects invalid %s data', async (encoding, bytes) => {
    expect(await rejectionOf(await post(url, bytes, { 'content-encoding': encoding }))).toBe(
      `VALIDATION_ERROR body: not valid ${encoding} data`,
    )
  })
})

describe('text encoding', () => {
  const cases: [string, Uint8Array, string][] = [
    [
      'invalid UTF-8',
      new Uint8Array([...encode('{"name":"'), 0xc3, 0x28, ...encode('"}')]),
      'not valid UTF-8 at byte 9',
    ],
    ['an encoded surrogate', new Uint8Array([...encode('{"name":"'), 0xed, 0xa0, 0x80]), 'not valid UTF-8 at byte 9'],
    ['an overlong sequence', new Uint8Array([...encode('{"name":"é'), 0xc0, 0xaf]), 'not valid UTF-8 at byte 11'],
    ['a truncated sequence', new Uint8Array([...encode('{"name":"é'), 0xf0, 0x9f]), 'not valid UTF-8 at byte 11'],
    [
      'a byte order mark',
      new Uint8Array([0xef, 0xbb, 0xbf, ...thing]),
      'expected JSON without a byte order mark (EF BB BF) before it',
    ],
    [
      'UTF-16 with a byte order mark',
      new Uint8Array([0xff, 0xfe, 0x7b, 0]),
      'expected UTF-8; this looks like UTF-16 or UTF-32',
    ],
    ['UTF-16', Buffer.from('{"name":"a"}', 'utf16le'), 'expected UTF-8; this looks like UTF-16 or UTF-32'],
    [
      'big-endian UTF-16',
      Buffer.from('{"name":"a"}', 'utf16le').swap16(),
      'expected UTF-8; this looks like UTF-16 or UTF-32',
    ],
  ]
  test.each(cases)('rejects %s', async (_what, bytes, message) => {
    expect(await rejectionOf(await post(url, bytes))).toBe(`VALIDATION_ERROR body: ${message}`)
  })
})

test('a free-form object of a body that is refused is not parsed', async () => {
  using parse = spyOn(RawJson.prototype, 'parse')
  expect(await rejectionOf(await post(url, encode('{"input":{"x":1}}')))).toBe('VALIDATION_ERROR name: required')
  expect(parse).not.toHaveBeenCalled()
})

test('treats a missing body as {}', async () => {
  const revoked = await fetch(`${app.url}/revoke`, { method: 'POST' })
  expect(await revoked.json()).toEqual({ data: { revoked: true }, error: null })
  expect(await rejectionOf(await fetch(url, { method: 'POST' }))).toBe('VALIDATION_ERROR name: required')
})
