import { afterEach, expect, test } from 'bun:test'
import { CallRefused, CallUnconfirmed, createClient } from '../../src/cli/client.ts'

/** The HTTP client of the terminal programs. */

const servers: Bun.Server<undefined>[] = []
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop(true))))

interface Received {
  readonly method: string
  readonly authorization: string | null
  readonly idempotencyKey: string | null
  readonly body: string
}

/** A service that gives these responses, one after the other, and repeats the last one. */
function serve(...responses: readonly (() => Response)[]) {
  const received: Received[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { method, headers } = request
      const body = await request.text()
      const [authorization, idempotencyKey] = [headers.get('authorization'), headers.get('idempotency-key')]
      received.push({ method, authorization, idempotencyKey, body })
      return responses[Math.min(received.length, responses.length) - 1]!()
    },
  })
  servers.push(server)
  return { url: `http://127.0.0.1:${server.port}`, received }
}

const refuse = (status: number, code: string, headers?: Record<string, string>) => () =>
  Response.json({ data: null, error: { code, message: 'why' } }, { status, headers })
const accept = () => Response.json({ data: { ok: true }, error: null })
const CALL = { key: 'svc_ws_x', path: '/api/v1/agents', body: { name: 'a' }, idempotencyKey: 'i' }

test.each([
  ['429', refuse(429, 'RATE_LIMITED', { 'retry-after': '0' })],
  ['500', refuse(500, 'INTERNAL')],
  ['503', refuse(503, 'UNAVAILABLE', { 'retry-after': '0' })],
  ['a 409 with Retry-After', refuse(409, 'CONFLICT', { 'retry-after': '0' })],
  ["a proxy's 502", () => new Response('<p>', { status: 502 })],
  ["a proxy's 502 in JSON", () => Response.json({ error: 'bad gateway' }, { status: 502 })],
  ['a body that is not JSON', () => new Response('<p>')],
  ['a body without data', () => Response.json(null)],
])('retries %s with the same bytes', async (_, failure) => {
  const { url, received } = serve(failure, failure, accept)
  let retries = 0
  const client = createClient({ url, retryForMs: 60_000, onRetry: () => retries++ })
  expect(await client(CALL)).toEqual({ ok: true })
  const sent = { method: 'POST', authorization: 'Bearer svc_ws_x', idempotencyKey: 'i', body: '{"name":"a"}' }
  expect([retries, received]).toEqual([2, [sent, sent, sent]])
})

test.each([
  ['400', refuse(400, 'VALIDATION_ERROR')],
  ['401', refuse(401, 'UNAUTHENTICATED')],
  ['409', refuse(409, 'CONFLICT')],
])('does not retry %s', async (status, refusal) => {
  const { url, received } = serve(refusal)
  const error = await createClient({ url, retryForMs: 60_000 })(CALL).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(CallRefused)
  expect(error).toMatchObject({ status: Number(status), reason: 'why', retryAfterMs: undefined })
  expect(received).toHaveLength(1)
})

test('gives up after the given time, with the last error as the cause', async () => {
  const { url, received } = serve(refuse(503, 'UNAVAILABLE', { 'retry-after': '3' }))
  const error = await createClient({ url, retryForMs: 0 })(CALL).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(CallUnconfirmed)
  expect((error as Error).cause).toMatchObject({ status: 503, code: 'UNAVAILABLE', retryAfterMs: 3_000 })
  expect(received).toHaveLength(1)
})

test('does not follow redirects, so that the key is sent to no other server', async () => {
  const other = serve(accept)
  const { url } = serve(() => Response.redirect(`${other.url}/api/v1/agents`, 307))
  await expect(createClient({ url, retryForMs: 60_000 })(CALL)).rejects.toMatchObject({ status: 307 })
  expect(other.received).toEqual([])
})
