import { NoResponseError, ServiceError } from './errors.ts'
import { uuidv7 } from './ids.ts'
import {
  type CallOptions,
  type DataOf,
  type EditOptions,
  fillPath,
  type InputOf,
  type Method,
  type OperationOf,
  type PathOf,
  queryString,
} from './request.ts'
import { backoff, Deadline, sleep } from './timing.ts'

/** One request. */
export interface Call {
  readonly path: string
  /** Default: GET without a body, else POST. */
  readonly method?: string | undefined
  /** Sent as JSON, unless it is text or bytes that already are. */
  readonly body?: object | string | Uint8Array<ArrayBuffer> | undefined
  /** Makes a call repeatable whose body has no id that does. */
  readonly idempotencyKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

/** What {@link Http.attempt} needs of a response. */
export interface SmallResponse {
  readonly ok: boolean
  readonly status: number
  readonly headers: { get(name: string): string | null }
  json(): Promise<unknown>
}

export interface OutgoingRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer> | null
  readonly signal: AbortSignal | null
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Sends a request whose response is small. It follows no redirects, so that the key is sent to no other server. */
export type Transport = (url: string, request: OutgoingRequest) => Promise<SmallResponse>

interface HttpOptions {
  /** Base URL of the service, without a trailing slash. */
  readonly url: string
  /** Headers of every request. A function, so that no dump of an object shows the key. */
  readonly headers: () => Readonly<Record<string, string>>
  /** How long an attempt may take, in milliseconds. */
  readonly timeoutMs: number
  /** How often a call is repeated that fails temporarily. */
  readonly maxRetries: number
  /** Whether to compress bodies of requests. */
  readonly compress: boolean
  /** For responses that are streamed. */
  readonly fetch: Fetch
  readonly transport: Transport
  readonly onRetry?: (() => void) | undefined
  /** Called after each successful call with the duration of the successful attempt; failed attempts do not count. */
  readonly onResponse?: ((path: string, ms: number) => void) | undefined
}

/** For calls that the service answers only when something is done that may take any time. */
export const NO_TIMEOUT = Number.POSITIVE_INFINITY
/** A service that asks for a longer wait is asked again after this time. */
const RETRY_AFTER_MAX_MS = 60_000
const REDIRECT_LENGTH_MAX = 200
/** Smaller bodies fit into one packet anyway. */
const COMPRESS_BYTES_MIN = 1_024
const ENCODER = new TextEncoder()

/** Calls the service over HTTP with one key. */
export class Http {
  constructor(readonly options: HttpOptions) {}

  /**
   * Calls an operation of the OpenAPI document; repeats it after temporary failures.
   *
   * @returns `data` of the response
   * @throws as {@link call}
   */
  async request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    input: InputOf<OperationOf<M, P>> & CallOptions,
  ): Promise<DataOf<OperationOf<M, P>>> {
    const { path: values, query, body, signal, timeoutMs, maxRetries, ifVersion, ...given } = input as GivenInput
    // Repeating a POST must not have a second effect.
    const { idempotencyKey = method === 'POST' ? uuidv7() : null } = given
    const headers: Record<string, string> = ifVersion === undefined ? {} : { 'if-match': `"${ifVersion}"` }
    const target = fillPath(path, values) + queryString(query)
    const call = { method, path: target, body, headers, signal, timeoutMs, maxRetries }
    const data = await this.call({ ...call, idempotencyKey: idempotencyKey ?? undefined })
    return data as DataOf<OperationOf<M, P>>
  }

  /**
   * Sends a call once.
   *
   * @returns a successful response, whose body has not been read
   * @throws ServiceError for an error response; the error of `fetch` when there is no response
   */
  async send(call: Call): Promise<Response> {
    const request = await this.toRequest(call)
    const response = await this.options.fetch(this.options.url + call.path, { ...request, redirect: 'manual' })
    if (response.ok) return response
    throw await readServiceError(response)
  }

  private async toRequest(call: Call): Promise<OutgoingRequest> {
    const method = call.method ?? (call.body === undefined ? 'GET' : 'POST')
    const headers: Record<string, string> = { ...call.headers, ...this.options.headers() }
    if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey
    const signal = call.signal ?? null
    if (call.body === undefined) return { method, headers, body: null, signal }
    headers['content-type'] = 'application/json'
    const body = toBytes(call.body)
    if (!this.options.compress || body.length < COMPRESS_BYTES_MIN) return { method, headers, body, signal }
    headers['content-encoding'] = 'gzip'
    return { method, headers, body: await gzip(body), signal }
  }

  /** Sends a call once. @returns `data` of the envelope @throws as {@link send}, or when the response is not complete */
  async attempt(call: Call, timeoutMs = this.options.timeoutMs): Promise<unknown> {
    const startedAt = performance.now()
    const deadline = new Deadline(call.signal, timeoutMs)
    try {
      const request = await this.toRequest({ ...call, signal: deadline.controller.signal })
      const response = await this.options.transport(this.options.url + call.path, request)
      if (!response.ok) throw await readServiceError(response)
      const data = readData(response, await response.json())
      this.options.onResponse?.(call.path, performance.now() - startedAt)
      return data
    } finally {
      deadline.close()
    }
  }

  /**
   * Sends a call, and again after temporary failures with the same bytes, and therefore the same ids.
   *
   * @returns `data` of the envelope
   * @throws ServiceError, NoResponseError; the reason of `signal` when it aborts
   */
  async call({ timeoutMs, maxRetries = this.options.maxRetries, ...call }: RepeatedCall): Promise<unknown> {
    const sent = { ...call, body: call.body === undefined ? undefined : toBytes(call.body) }
    for (let failures = 1; ; failures++) {
      try {
        return await this.attempt(sent, timeoutMs)
      } catch (error) {
        call.signal?.throwIfAborted()
        if (!isTemporary(error)) throw error
        if (failures > maxRetries) throw new NoResponseError(call.path, error)
        this.options.onRetry?.()
        await sleep(Math.max(retryAfterOf(error), backoff(failures)), call.signal)
        call.signal?.throwIfAborted()
      }
    }
  }
}

type RepeatedCall = Call & Pick<CallOptions, 'timeoutMs' | 'maxRetries'>

interface GivenInput extends EditOptions {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: object
  readonly body?: object
}

function toBytes(body: object | string): Uint8Array<ArrayBuffer> {
  if (body instanceof Uint8Array) return body as Uint8Array<ArrayBuffer>
  return ENCODER.encode(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Reads what an error response says. */
async function readServiceError(response: SmallResponse): Promise<ServiceError> {
  const { status, headers } = response
  const retryAfter = headers.get('retry-after')
  const retryAfterMs = retryAfter === null ? undefined : Math.min(Number(retryAfter) * 1000 || 0, RETRY_AFTER_MAX_MS)
  const known = { status, retryAfterMs, requestId: requestIdOf(response) }
  const body: unknown = await response.json().catch(() => null)
  const error: Partial<EnvelopeError> = (body as Partial<Envelope> | null)?.error ?? {}
  const { code, message, reason, param, problems } = error
  if (typeof code !== 'string') return new ServiceError({ ...known, detail: redirectOf(response) })
  const isFinal = status < 500 && retryAfterMs === undefined && headers.get('x-refused') === 'request'
  const detail = typeof message === 'string' ? message : ''
  return new ServiceError({ ...known, code, detail, reason, param, problems, isFinal })
}

/** `data` of a successful response. @throws ServiceError when it is not one of the service */
function readData(response: SmallResponse, body: unknown): unknown {
  const { data, error } = (body ?? {}) as { data?: unknown; error?: unknown }
  if (data !== undefined && error === null) return data
  throw new ServiceError({ status: response.status, requestId: requestIdOf(response) })
}

function requestIdOf({ headers }: SmallResponse): string | undefined {
  return headers.get('x-request-id') ?? undefined
}

function redirectOf({ headers }: SmallResponse): string {
  const location = headers.get('location')
  return location === null ? '' : `, but a redirect to ${location.replace(/[?#].*/, '').slice(0, REDIRECT_LENGTH_MAX)}`
}

interface Envelope {
  readonly error: EnvelopeError | null
}

interface EnvelopeError extends Pick<ServiceError, 'reason' | 'param' | 'problems'> {
  readonly code?: unknown
  readonly message?: string
}

/**
 * Whether the same call may succeed later: a lost connection, 429, 503, 500, a 409 with `Retry-After`. Errors other than
 * ServiceError mean that there was no complete response.
 */
export function isTemporary(error: unknown): boolean {
  if (!(error instanceof ServiceError)) return true
  const { status, code, retryAfterMs } = error
  // Without a code, the response is not from the service, but from a proxy while the service restarts, for example.
  return (
    (code === undefined && !isRedirect(status)) ||
    [429, 500, 503].includes(status) ||
    (status === 409 && retryAfterMs !== undefined)
  )
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400
}

export function retryAfterOf(error: unknown): number {
  return error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const compressed = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(compressed).arrayBuffer())
}
