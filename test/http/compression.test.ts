import { expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { preferredEncoding } from '../../src/base/http/answer.ts'
import { startHttpApp } from '../support/http-app.ts'

const app = startHttpApp()
const get = (path: string, acceptEncoding: string) =>
  fetch(app.url + path, { headers: { 'accept-encoding': acceptEncoding }, decompress: false })

test('compresses a large response with an encoding the client accepts', async () => {
  const plain = await (await get('/large', 'identity')).text()
  expect(plain.length).toBeGreaterThan(10_000)
  const gzip = await get('/large', 'gzip, deflate, br')
  const zstd = await get('/large', 'gzip, deflate, br, zstd')
  expect([gzip.headers.get('content-encoding'), zstd.headers.get('content-encoding')]).toEqual(['gzip', 'zstd'])
  expect(gzip.headers.get('vary')).toBe('accept-encoding')
  const [gzipped, zstandard] = [await gzip.bytes(), await zstd.bytes()]
  expect(Math.max(gzipped.length, zstandard.length)).toBeLessThan(plain.length / 5)
  expect(gunzipSync(gzipped).toString()).toBe(plain)
  expect(Bun.zstdDecompressSync(zstandard).toString()).toBe(plain)
})

test('does not compress a small response or one the client does not want compressed', async () => {
  const small = await get('/things', 'gzip')
  expect([small.headers.get('content-encoding'), small.headers.get('vary')]).toEqual([null, null])
  const unwanted = await get('/large', 'br')
  expect([unwanted.headers.get('content-encoding'), unwanted.headers.get('vary')]).toEqual([null, 'accept-encoding'])
})

test.each([
  [null, null],
  ['', null],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['zstd;q=0.5, gzip;q=0.8', 'gzip'],
  ['zstd;q=0, gzip;q=0', null],
  ['GZIP ; q=1', 'gzip'],
  ['*', 'zstd'],
  ['zstd;q=0, *', 'gzip'],
  ['identity, br', null],
  ['gzip;q=lots', null],
])('Accept-Encoding %p selects %p', (header, encoding) => {
  expect(preferredEncoding(header)).toBe(encoding as ReturnType<typeof preferredEncoding>)
})
