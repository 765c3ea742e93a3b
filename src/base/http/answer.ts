import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { ApiError, invalid } from '../errors.ts'
import { encodeJson } from '../raw-json.ts'

/** Headers and status of the response so far, as Elysia holds them. */
interface ResponseSet {
  headers: Record<string, string | number>
  status?: number | string
}

/** A request that is being handled. */
export interface Begun {
  readonly request: Request
  readonly requestId: string
  /** On the monotonic clock. */
  readonly startedMs: number
  /** The route pattern that it matched; undefined if none. */
  readonly route: string | undefined
  readonly set: ResponseSet
}

/** A shorter body is not compressed: the response fits in one packet either way. */
const COMPRESSED_LENGTH_MIN = 1024
/** A longer body is compressed on another thread: 10 MiB take up to a quarter of a second. */
const COMPRESSED_SYNC_MAX = 64 * 1024
/** The fastest level: a third of the size, in a tenth of the time that the best level takes. */
const LEVEL = 1

const gzipLater = promisify(gzip)
const COMPRESSORS = {
  gzip: {
    now: (text: string) => Bun.gzipSync(text, { level: LEVEL }),
    later: (text: string) => gzipLater(text, { level: LEVEL }) as Promise<Compressed>,
  },
  zstd: {
    now: (text: string) => Bun.zstdCompressSync(text, { level: LEVEL }) as Compressed,
    later: (text: string) => Bun.zstdCompress(text, { level: LEVEL }) as Promise<Compressed>,
  },
}
/** The declared types allow for shared memory, which is never used. */
type Compressed = Buffer<ArrayBuffer>

/** The success envelope. */
export function dataText(data: unknown): string {
  return `{"data":${encodeJson(data)},"error":null}`
}

/** The header `Retry-After` of an error that has one. */
export function retryAfterOf({ retryAfterSeconds }: ApiError): string | undefined {
  return retryAfterSeconds === undefined ? undefined : `${Math.max(1, Math.ceil(retryAfterSeconds))}`
}

/** The error envelope; also used for responses that do not go through Elysia. */
export function errorText({ code, message, reason, param, problems }: ApiError): string {
  return JSON.stringify({ data: null, error: { code, message, reason, param, problems } })
}

/**
 * The response with all headers set so far (rate limits, request id), compressed if the client accepts that and the body
 * is long enough. It leaves Elysia nothing to add, which saves a copy of the headers.
 */
export function jsonResponse(
  { request, requestId, set }: Begun,
  status: number,
  text: string,
): Response | Promise<Response> {
  const { headers } = set
  headers['content-type'] = 'application/json'
  headers['x-request-id'] = requestId
  protect(headers, request)
  set.headers = {}
  set.status = 200
  const init = { status, headers: headers as Record<string, string> }
  if (text.length < COMPRESSED_LENGTH_MIN) return new Response(text, init)
  headers.vary = 'accept-encoding'
  const encoding = preferredEncoding(request.headers.get('accept-encoding'))
  if (encoding === null) return new Response(text, init)
  headers['content-encoding'] = encoding
  const { now, later } = COMPRESSORS[encoding]
  if (text.length <= COMPRESSED_SYNC_MAX) return new Response(now(text), init)
  return later(text).then((body) => new Response(body, init))
}

/** An answer is read as what it is, and what a person may see stays in no cache of a shared browser. */
function protect(headers: ResponseSet['headers'], request: Request): void {
  headers['x-content-type-options'] = 'nosniff'
  if (request.headers.has('cookie')) headers['cache-control'] = 'no-store'
}

/**
 * A `Response` returned by a route, with the same headers added. The body is not touched, because it may be a stream.
 */
export function ownResponse({ request, requestId, set }: Begun, response: Response): Response {
  const given: ResponseSet['headers'] = { ...set.headers, 'x-request-id': requestId }
  protect(given, request)
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

/** The `error` option of `Bun.serve`: answers errors that happen before Elysia is called. */
export function answerOutside(error: unknown): Response {
  // Bun builds `request.url` from the Host header on first use.
  const refused =
    error instanceof TypeError && /invalid url/i.test(error.message)
      ? invalid('header Host', 'required, as host or host:port')
      : new ApiError('INTERNAL', 'internal error')
  return new Response(errorText(refused), {
    status: refused.status,
    headers: { 'content-type': 'application/json', 'x-content-type-options': 'nosniff', connection: 'close' },
  })
}

/** The supported encoding with the highest weight; zstd wins a tie. Null if the client accepts none. */
export function preferredEncoding(acceptEncoding: string | null): keyof typeof COMPRESSORS | null {
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
