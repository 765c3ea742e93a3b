import { connect } from 'node:net'
import { Elysia, t } from 'elysia'
import { ApiError } from '../../src/base/errors.ts'
import { type BodyReaderOptions, bodyReader } from '../../src/base/http/body.ts'
import { createEnvelope, type EnvelopeDeps } from '../../src/base/http/envelope.ts'
import type { RateLimits } from '../../src/base/http/rate-limit.ts'
import { RateLimiter, type RateLimiterOptions } from '../../src/base/http/rate-limit.ts'
import { Body, FreeForm, Int, ListQuery, Nullable, Text, TimestampIn, Uuid } from '../../src/base/http/schema.ts'
import { serverOptions } from '../../src/base/http/server-options.ts'
import { createLog } from '../../src/base/log.ts'
import type { Idempotency, IdempotencyContext } from '../../src/stores/idempotency/store.ts'
import type { Answer } from './api.ts'
import { CONDITION_TIMEOUT_MS } from './eventually.ts'
import { atEnd } from './teardown.ts'

export interface HttpAppOptions extends Partial<BodyReaderOptions>, Partial<Omit<EnvelopeDeps, 'log' | 'limits'>> {
  readonly idempotency?: Idempotency
  readonly rateLimits?: RateLimits
  readonly limiter?: RateLimiterOptions
  /** Handles `POST /things`. */
  readonly onThing?: (context: { name: string; id: string }) => unknown
}

export interface HttpApp {
  readonly url: string
  readonly port: number
  /** The log so far, each line parsed. */
  readonly logged: Record<string, unknown>[]
}

const LIMITS = { body_bytes: 64 * 1024, json_depth: 16 }
const Event = t.Object(
  {
    type: Text({ minLength: 1, maxLength: 20 }),
    level: t.Optional(t.Union([t.Literal('debug'), t.Literal('info'), t.Literal('warn'), t.Literal('error')])),
    payload: t.Optional(FreeForm),
    occurred_at: t.Optional(TimestampIn),
  },
  { additionalProperties: false },
)
const Thing = Body({
  name: Text({ minLength: 1, maxLength: 10 }),
  task: t.Optional(Body({ id: Uuid })),
  count: t.Optional(Int({ minimum: 1, maximum: 5 })),
  budget: t.Optional(Nullable(t.Number({ minimum: 0 }))),
  input: t.Optional(FreeForm),
  events: t.Optional(t.Array(Event, { maxItems: 10 })),
})

/**
 * The HTTP core with routes of every kind, listening on its own port: for tests of what all routes have in
 * common, over real sockets. Stopped after the last test.
 */
export function startHttpApp(options: HttpAppOptions = {}): HttpApp {
  const logged: Record<string, unknown>[] = []
  const log = createLog('debug', (line) => logged.push(JSON.parse(line)))
  const limits = options.limits ?? LIMITS
  const bodyTimeoutMs = options.bodyTimeoutMs ?? 5_000
  const root = createEnvelope({ logRequests: true, ...options, log, limits })
  const app = root.use(
    routes(options, bodyReader({ limits, bodyTimeoutMs, bodyBytesInFlight: options.bodyBytesInFlight ?? 1 << 30 })),
  )
  app.listen(serverOptions({ host: '127.0.0.1', port: 0, bodyTimeoutMs }))
  atEnd(() => app.server!.stop(true))
  const port = app.server!.port!
  return { url: `http://127.0.0.1:${port}`, port, logged }
}

function routes(options: HttpAppOptions, reader: ReturnType<typeof bodyReader>) {
  const limiter =
    options.rateLimits && options.limiter ? new RateLimiter(options.rateLimits, options.limiter) : undefined
  const { onThing = (thing) => thing } = options
  return new Elysia()
    .onParse(async (context) => {
      const { request } = context
      reader.checkLength(request)
      const body = await reader.read(request, request.headers.get('x-test-owner') ?? 'owner')
      Object.assign(context, { bodyHold: body.hold })
      return body
    })
    .derive(({ request, set }) => {
      const keyId = request.headers.get('x-test-key') ?? '00000000-0000-7000-8000-000000000001'
      limiter?.take(keyId, 'reads', 1, set.headers as Record<string, string>)
      return { caller: { keyId } }
    })
    .onTransform((context) => reader.transform(context as never))
    .onBeforeHandle((context) => options.idempotency?.beforeHandle(context as unknown as IdempotencyContext))
    .post(
      '/things',
      (context) => onThing({ name: context.body.name, id: (context as unknown as IdempotencyContext).mint.uuid() }),
      { body: Thing },
    )
    .post('/echo', ({ body }) => body, { body: Thing })
    .post('/revoke', () => ({ revoked: true }), {
      body: Body({ grace_seconds: t.Optional(Int({ minimum: 0, maximum: 9 })) }),
    })
    .get('/things', ({ query }) => query, { query: ListQuery({ from: t.Optional(TimestampIn) }) })
    .get('/things/:thingId', ({ params }) => params, { params: t.Object({ thingId: Uuid }) })
    .patch('/things/:thingId', ({ params }) => params, { params: t.Object({ thingId: Uuid }) })
    .get('/large', () => ({ text: 'All work and no play. '.repeat(500) }))
    .get('/own', () => new Response('mine', { status: 201, headers: { 'content-type': 'text/plain' } }))
    .get('/wrong', () => ({ wrong: 'internal detail' }) as never, { response: t.Object({ right: t.String() }) })
    .get('/crash', () => {
      throw new Error('internal detail')
    })
    .get('/away', () => {
      throw new ApiError('UNAVAILABLE', 'the store is away', { retryAfterSeconds: 6.2 })
    })
}

/** A `POST` request with JSON, text or bytes. */
export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const text = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
  return fetch(url, {
    method: 'POST',
    body: text as BodyInit,
    headers: { 'content-type': 'application/json', ...headers },
  })
}

type EnvelopeError = NonNullable<Answer['error']>

/** The error of a response, after checking that the body is the envelope only. */
export async function errorOf(response: Response): Promise<{ status: number } & EnvelopeError> {
  const body = (await response.json()) as { data: null; error: EnvelopeError }
  if (
    Object.keys(body).join() !== 'data,error' ||
    body.data !== null ||
    !ERROR_MEMBERS.test(Object.keys(body.error).join())
  )
    throw new Error(`not the envelope: ${JSON.stringify(body)}`)
  return { status: response.status, ...body.error }
}

/** In order; the last three only where they apply. */
const ERROR_MEMBERS = /^code,message(,reason)?(,param)?(,problems)?$/

export interface Conversation {
  /** Everything that was received. */
  readonly text: string
  readonly closed: boolean
}

/**
 * Writes to a socket in ways no HTTP client would, and reads until the server closes it or `isEnough` returns true.
 * Numbers among `parts` are pauses in milliseconds.
 */
export function converse(
  port: number,
  parts: readonly (string | Uint8Array | number)[],
  { isEnough = () => false }: { isEnough?: (text: string) => boolean } = {},
): Promise<Conversation> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1')
    const end = (closed: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, closed })
    }
    const timer = setTimeout(() => {
      socket.destroy()
      reject(
        new Error(
          `neither closed nor complete after ${CONDITION_TIMEOUT_MS} ms: ${JSON.stringify(text.slice(0, 500))}`,
        ),
      )
    }, CONDITION_TIMEOUT_MS)
    socket.on('data', (data) => {
      text += data.toString('latin1')
      if (isEnough(text)) end(false)
    })
    // Some tests write to a closed connection; only what was received before counts.
    socket.on('error', () => {})
    socket.on('close', () => end(true))
    socket.on('connect', async () => {
      for (const part of parts) {
        if (socket.destroyed) return
        if (typeof part === 'number') await Bun.sleep(part)
        else socket.write(part)
      }
    })
  })
}
