import { ApiError } from './errors.ts'
import { encodeJson } from './raw-json.ts'

/** Response headers on their way, as Elysia holds them. */
export interface ResponseSet {
  headers: Record<string, string | number>
  status?: number | string
}

/** What is known of a request once it has begun. */
export interface Begun {
  readonly request: Request
  readonly requestId: string
  /** On the monotonic clock. */
  readonly startedMs: number
  /** The pattern it matched, if it got that far. */
  readonly route: string | undefined
  readonly set: ResponseSet
}

/** Shorter bodies gain nothing: the answer fits one packet either way. */
const COMPRESSED_LENGTH_MIN = 1024
/** The fastest: a third of the size for a tenth of the time that the best ratio takes. */
const LEVEL = 1

/** The envelope of an answer. */
export function dataText(data: unknown): string {
  return `{"data":${encodeJson(data)},"error":null}`
}

/** The envelope of an error, also for those answers that are given outside of Elysia. */
export function errorText(code: string, message: string): string {
  return JSON.stringify({ data: null, error: { code, message } })
}

/**
 * The answer with everything in it that was set on the way (rate limits, request id), compressed where the client takes
 * it and it pays. Elysia finds nothing left to add, which spares a copy of the headers.
 */
export function jsonResponse({ request, requestId, set }: Begun, status: number, text: string): Response {
  const { headers } = set
  headers['content-type'] = 'application/json'
  headers['x-request-id'] = requestId
  set.headers = {}
  set.status = 200
  const init = { status, headers: headers as Record<string, string> }
  if (text.length < COMPRESSED_LENGTH_MIN) return new Response(text, init)
  headers.vary = 'accept-encoding'
  const encoding = preferredEncoding(request.headers.get('accept-encoding'))
  if (encoding === null) return new Response(text, init)
  headers['content-encoding'] = encoding
  return new Response(compress(text, encoding), init)
}

function compress(text: string, encoding: 'zstd' | 'gzip'): Uint8Array<ArrayBuffer> {
  if (encoding === 'gzip') return Bun.gzipSync(text, { level: LEVEL })
  // Its type allows for shared memory, which it never is.
  return Bun.zstdCompressSync(text, { level: LEVEL }) as Buffer<ArrayBuffer>
}

/** A route's own answer, with the same headers added. Its body is not touched: it may be a stream. */
export function ownResponse({ requestId, set }: Begun, response: Response): Response {
  const given = { ...set.headers, 'x-request-id': requestId }
  set.headers = {}
  set.status = 200
  const headers = new Headers(response.headers)
  for (const [name, value] of Object.entries(given)) if (!headers.has(name)) headers.set(name, String(value))
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers })
}

/**
 * The type of a handler's answer that is either the data of the route's schema or a stream. Elysia sends a `Response`
 * as it is, but its types know only one or the other.
 */
export function dataOrStream<T>(answer: Promise<T | Response>): Promise<T> {
  return answer as Promise<T>
}

/** An answer to an error that never reached Elysia, as the `error` option of `Bun.serve`. */
export function answerOutside(error: unknown): Response {
  // Bun builds `request.url` from the Host header on first use.
  const refused =
    error instanceof TypeError && /invalid url/i.test(error.message)
      ? new ApiError('VALIDATION_ERROR', 'header Host: required, as host or host:port')
      : new ApiError('INTERNAL', 'internal error')
  return new Response(errorText(refused.code, refused.message), {
    status: refused.status,
    headers: { 'content-type': 'application/json', connection: 'close' },
  })
}

/** The encoding of ours that the client likes best; ours first where it likes them equally. Null for none. */
export function preferredEncoding(acceptEncoding: string | null): 'zstd' | 'gzip' | null {
  if (acceptEncoding === null) return null
  const weights = new Map<string, number>()
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [name, ...parameters] = item.split(';').map((part) => part.trim())
    const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1)
    weights.set(name, Number.isNaN(weight) ? 0 : weight)
  }
  const any = weights.get('*') ?? 0
  const zstd = weights.get('zstd') ?? any
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? any
  if (zstd > 0 && zstd >= gzip) return 'zstd'
  return gzip > 0 ? 'gzip' : null
}
