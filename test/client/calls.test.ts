import { afterEach, expect, test } from 'bun:test'
import { Client, NoResponseError, ServiceError } from '../../src/client/index.ts'

/** The calls of the client library that wait for a response (docs/client.md#other-calls). */

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
const newClient = (url: string, retryForMs: number, onRetry?: () => void) =>
  new Client({ url, key: 'svc_ws_x', retryForMs, onRetry })
const createAgent = (client: Client) =>
  client.request('POST', '/api/v1/agents', { body: { name: 'a' }, idempotencyKey: 'i' })

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
  const client = newClient(url, 60_000, () => retries++)
  expect(await createAgent(client)).toMatchObject({ ok: true })
  const sent = { method: 'POST', authorization: 'Bearer svc_ws_x', idempotencyKey: 'i', body: '{"name":"a"}' }
  expect([retries, received]).toEqual([2, [sent, sent, sent]])
})

test.each([
  ['400', refuse(400, 'VALIDATION_ERROR')],
  ['401', refuse(401, 'UNAUTHENTICATED')],
  ['409', refuse(409, 'CONFLICT')],
])('does not retry %s', async (status, refusal) => {
  const { url, received } = serve(refusal)
  const error = await createAgent(newClient(url, 60_000)).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ServiceError)
  expect(error).toMatchObject({ status: Number(status), reason: 'why', retryAfterMs: undefined })
  expect(received).toHaveLength(1)
})

test('gives up after the given time, with the last error as the cause', async () => {
  const { url, received } = serve(refuse(503, 'UNAVAILABLE', { 'retry-after': '3' }))
  const error = await createAgent(newClient(url, 0)).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(NoResponseError)
  expect((error as Error).cause).toMatchObject({ status: 503, code: 'UNAVAILABLE', retryAfterMs: 3_000 })
  expect(received).toHaveLength(1)
})

test('does not follow redirects, so that the key is sent to no other server', async () => {
  const other = serve(accept)
  const { url } = serve(() => Response.redirect(`${other.url}/api/v1/agents`, 307))
  await expect(createAgent(newClient(url, 60_000))).rejects.toMatchObject({ status: 307 })
  expect(other.received).toEqual([])
})
