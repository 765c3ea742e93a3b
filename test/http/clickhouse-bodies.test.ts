import { beforeAll, expect, test } from 'bun:test'
import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { startTestService, type TestService } from '../support/service.ts'

/** Invalid bodies and queries at `/clickhouse/` are client errors, never a 500; answers are safe in a browser. */

const LIMIT = 64 * 1024
const QUERY = 'select 1 as one'
let service: TestService

beforeAll(async () => {
  service = await startTestService({ LIMIT_BODY_BYTES: String(LIMIT) })
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
])('accepts a body with Content-Encoding %s', async (encoding, body) => {
  expect(await ask(body, { 'content-encoding': encoding })).toEqual({ status: 200, text: '1\n' })
})

const form = (...lines: string[]) => lines.join('\r\n')
const FORM = { 'content-type': 'multipart/form-data; boundary=b' }

test('accepts a compressed multipart body', async () => {
  const body = form('--b', 'Content-Disposition: form-data; name="query"', '', QUERY, '--b--', '')
  expect(await ask(gzipSync(body), { ...FORM, 'content-encoding': 'gzip' })).toEqual({ status: 200, text: '1\n' })
})

test.each([
  ['gzip that is not gzip', 'not gzip', { 'content-encoding': 'gzip' }],
  ['truncated gzip', gzipSync(QUERY).subarray(0, -5), { 'content-encoding': 'gzip' }],
  [
    'gzip with a wrong checksum',
    Buffer.concat([gzipSync(QUERY).subarray(0, -8), Buffer.alloc(8)]),
    { 'content-encoding': 'gzip' },
  ],
  ['gzip declared as zstd', gzipSync(QUERY), { 'content-encoding': 'zstd' }],
  ['truncated zstd', zstdCompressSync(QUERY).subarray(0, -3), { 'content-encoding': 'zstd' }],
  ['zstd declared as gzip', zstdCompressSync(QUERY), { 'content-encoding': 'gzip' }],
  ['an unsupported encoding', deflateSync(QUERY), { 'content-encoding': 'deflate' }],
  ['several encodings', gzipSync(QUERY), { 'content-encoding': 'gzip, gzip' }],
  ['multipart without a boundary', QUERY, { 'content-type': 'multipart/form-data' }],
  ['multipart with a different boundary', form('--c', '', QUERY, '--c--'), FORM],
  ['truncated multipart', form('--b', 'Content-Disposition: form-data; name="query"', '', 'select'), FORM],
  ['multipart without a name', form('--b', 'Content-Disposition: form-data', '', QUERY, '--b--', ''), FORM],
  ['multipart that is not text', new Uint8Array([0xff, 0xfe, 0, 1]), FORM],
  [
    'truncated compressed multipart',
    gzipSync(form('--b', 'x')).subarray(0, -4),
    { ...FORM, 'content-encoding': 'gzip' },
  ],
] as const)('%s is rejected with 400', async (_name, body, headers) => {
  const answer = await ask(body as Uint8Array, headers as Record<string, string>)
  expect(answer).toEqual({ status: 400, text: expect.stringMatching(/^Code: \d+\. DB::Exception: .+\)\n$/) })
})

test.each([
  ['gzip', gzipSync(' '.repeat(LIMIT + 1))],
  ['zstd', zstdCompressSync(' '.repeat(LIMIT + 1))],
])('%s that decompresses past the body limit is rejected with 413', async (encoding, body) => {
  const answer = await ask(body, { 'content-encoding': encoding })
  expect(answer).toEqual({ status: 413, text: expect.stringContaining('TOO_MANY_BYTES') })
})

test('an invalid key is rejected before the body is read', async () => {
  const answer = await ask('not gzip', { 'content-encoding': 'gzip', 'x-clickhouse-key': 'wrong' })
  expect(answer.status).toBe(401)
})

test('rejects a query that is nested too deep', async () => {
  const answer = await ask(`select ${'['.repeat(1_500)}`, {})
  expect(answer).toEqual({ status: 400, text: expect.stringContaining('TOO_DEEP_RECURSION') })
})

/** The content and format of rows may have been chosen by others. */
test.each([
  ['rows', '/clickhouse/?query=select+1', 200],
  ['a page in rows', "/clickhouse/?query=select+'<script>alert(1)</script>'+format+RawBLOB", undefined],
  ['an error', '/clickhouse/?query=selec', 400],
  ['a ping', '/clickhouse/ping', 200],
  ['a greeting', '/clickhouse/', 200],
])('a browser saves %s, and neither shows nor runs it', async (_, path, status) => {
  for (const method of ['GET', 'POST'].slice(0, path.includes('?') ? 2 : 1)) {
    const response = await fetch(service.url + path, {
      method,
      headers: { authorization: `Bearer ${service.workspaceKey}` },
    })
    const { headers } = response
    const text = await response.text()
    if (status !== undefined) expect({ method, status: response.status, text }).toMatchObject({ status })
    expect({
      sniffing: headers.get('x-content-type-options'),
      disposition: headers.get('content-disposition'),
      policy: headers.get('content-security-policy'),
    }).toEqual({
      sniffing: 'nosniff',
      disposition: 'attachment',
      policy: "default-src 'none'; sandbox; frame-ancestors 'none'",
    })
  }
})
