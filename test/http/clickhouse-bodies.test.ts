import { beforeAll, expect, test } from 'bun:test'
import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { startTestService, type TestService } from '../support/service.ts'

/** Bodies at `/clickhouse/` that cannot be read: the client's mistake, so never a 500. */

const LIMIT = 64 * 1024
const QUERY = 'select 1 as one'
let service: TestService

beforeAll(async () => {
  service = await startTestService({ LIMIT_BODY_BYTES: String(LIMIT), RATE_LIMIT_QUERIES_PER_MINUTE: '0' })
})

async function ask(body: Uint8Array | string, headers: Record<string, string>) {
  const response = await fetch(`${service.url}/clickhouse/`, {
    method: 'POST',
    body: body as Uint8Array<ArrayBuffer>,
    headers: { 'x-clickhouse-key': service.workspaceKey, ...headers },
  })
  return { status: response.status, text: await response.text() }
}

test.each([
  ['gzip', gzipSync(QUERY)],
  ['zstd', zstdCompressSync(QUERY)],
  ['identity', Buffer.from(QUERY)],
])('a body with Content-Encoding %s is read', async (encoding, body) => {
  expect(await ask(body, { 'content-encoding': encoding })).toEqual({ status: 200, text: '1\n' })
})

const form = (...lines: string[]) => lines.join('\r\n')
const FORM = { 'content-type': 'multipart/form-data; boundary=b' }

test('a multipart body may be compressed', async () => {
  const body = form('--b', 'Content-Disposition: form-data; name="query"', '', QUERY, '--b--', '')
  expect(await ask(gzipSync(body), { ...FORM, 'content-encoding': 'gzip' })).toEqual({ status: 200, text: '1\n' })
})

test.each([
  ['no gzip at all', 'not gzip', { 'content-encoding': 'gzip' }],
  ['gzip that breaks off', gzipSync(QUERY).subarray(0, -5), { 'content-encoding': 'gzip' }],
  [
    'gzip with a wrong checksum',
    Buffer.concat([gzipSync(QUERY).subarray(0, -8), Buffer.alloc(8)]),
    { 'content-encoding': 'gzip' },
  ],
  ['gzip said to be zstd', gzipSync(QUERY), { 'content-encoding': 'zstd' }],
  ['zstd that breaks off', zstdCompressSync(QUERY).subarray(0, -3), { 'content-encoding': 'zstd' }],
  ['zstd said to be gzip', zstdCompressSync(QUERY), { 'content-encoding': 'gzip' }],
  ['an encoding that is not taken', deflateSync(QUERY), { 'content-encoding': 'deflate' }],
  ['several encodings', gzipSync(QUERY), { 'content-encoding': 'gzip, gzip' }],
  ['multipart without a boundary', QUERY, { 'content-type': 'multipart/form-data' }],
  ['multipart with another boundary', form('--c', '', QUERY, '--c--'), FORM],
  ['multipart that breaks off', form('--b', 'Content-Disposition: form-data; name="query"', '', 'select'), FORM],
  ['multipart without a name', form('--b', 'Content-Disposition: form-data', '', QUERY, '--b--', ''), FORM],
  ['multipart that is no text', new Uint8Array([0xff, 0xfe, 0, 1]), FORM],
  [
    'compressed multipart that breaks off',
    gzipSync(form('--b', 'x')).subarray(0, -4),
    { ...FORM, 'content-encoding': 'gzip' },
  ],
] as const)('%s is 400', async (_name, body, headers) => {
  const answer = await ask(body as Uint8Array, headers as Record<string, string>)
  expect(answer).toEqual({ status: 400, text: expect.stringMatching(/^Code: \d+\. DB::Exception: .+\)\n$/) })
})

test.each([
  ['gzip', gzipSync(' '.repeat(LIMIT + 1))],
  ['zstd', zstdCompressSync(' '.repeat(LIMIT + 1))],
])('%s that inflates to more than a body may have is 413', async (encoding, body) => {
  const answer = await ask(body, { 'content-encoding': encoding })
  expect(answer).toEqual({ status: 413, text: expect.stringContaining('TOO_MANY_BYTES') })
})

test('a key that is wrong is said before the body is looked at', async () => {
  const answer = await ask('not gzip', { 'content-encoding': 'gzip', 'x-clickhouse-key': 'wrong' })
  expect(answer.status).toBe(401)
})
