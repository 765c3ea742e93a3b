import { backoff, sleep } from './backoff.ts'
import { NoResponseError, ServiceError } from './errors.ts'

/** A call of the service. */
export interface Call {
  readonly path: string
  /** Default: GET without a body, else POST. */
  readonly method?: string | undefined
  /** Sent as JSON, unless it is text or bytes that already are. */
  readonly body?: object | string | Uint8Array<ArrayBuffer> | undefined
  /** Makes a call repeatable whose body has no id that does. */
  readonly idempotencyKey?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** The service responds only when something is done that may take long. */
  readonly mayTakeLong?: boolean
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

export interface HttpOptions {
  /** Base URL of the service, without a trailing slash. */
  readonly url: string
  /** The header that carries the key. A function, so that no dump of an object shows it. */
  readonly authorization: () => string
  /** How long a call that fails temporarily is repeated, in milliseconds. */
  readonly retryForMs: number
  /** Whether to compress bodies of requests. */
  readonly compress: boolean
  /** For responses that are streamed. */
  readonly fetch: Fetch
  readonly transport: Transport
  readonly onRetry?: (() => void) | undefined
  /** Called after each successful call with the duration of the successful attempt; failed attempts do not count. */
  readonly onResponse?: ((path: string, ms: number) => void) | undefined
}

const ATTEMPT_TIMEOUT_MS = 30_000
/** A service that says more is asked again after this time. */
const RETRY_AFTER_MAX_MS = 60_000
const REDIRECT_LENGTH_MAX = 200
/** Smaller bodies fit into one packet anyway. */
const COMPRESS_BYTES_MIN = 1_024
const ENCODER = new TextEncoder()

/** Calls the service over HTTP with one key. */
export class Http {
  constructor(readonly options: HttpOptions) {}

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
    const headers: Record<string, string> = { ...call.headers, authorization: this.options.authorization() }
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
  async attempt(call: Call): Promise<unknown> {
    const startedAt = performance.now()
    const timeout = new AbortController()
    const stop = () => timeout.abort(call.signal?.reason)
    const giveUp = () => timeout.abort(new Error('the service did not respond in time'))
    const timer = call.mayTakeLong === true ? undefined : setTimeout(giveUp, ATTEMPT_TIMEOUT_MS)
    call.signal?.addEventListener('abort', stop)
    if (call.signal?.aborted === true) stop()
    try {
      const request = await this.toRequest({ ...call, signal: timeout.signal })
      const response = await this.options.transport(this.options.url + call.path, request)
      if (!response.ok) throw await readServiceError(response)
      const data = readData(response.status, await response.json())
      this.options.onResponse?.(call.path, performance.now() - startedAt)
      return data
    } finally {
      clearTimeout(timer)
      call.signal?.removeEventListener('abort', stop)
    }
  }

  /**
   * Sends a call, and again after temporary failures with the same bytes, and therefore the same ids.
   *
   * @returns `data` of the envelope
   * @throws ServiceError, NoResponseError; the reason of `signal` when it aborts
   */
  async call(call: Call): Promise<unknown> {
    const deadline = performance.now() + this.options.retryForMs
    const sent = { ...call, body: call.body === undefined ? undefined : toBytes(call.body) }
    for (let failures = 1; ; failures++) {
      try {
        return await this.attempt(sent)
      } catch (error) {
        call.signal?.throwIfAborted()
        if (!isTemporary(error)) throw error
        const delay = Math.max(retryAfterOf(error), backoff(failures))
        if (performance.now() + delay > deadline) throw new NoResponseError(call.path, error)
        this.options.onRetry?.()
        await sleep(delay, call.signal)
        call.signal?.throwIfAborted()
      }
    }
  }
}

function toBytes(body: object | string): Uint8Array<ArrayBuffer> {
  if (body instanceof Uint8Array) return body as Uint8Array<ArrayBuffer>
  return ENCODER.encode(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Reads what an error response says. */
export async function readServiceError(response: SmallResponse): Promise<ServiceError> {
  const { status, headers } = response
  const retryAfter = headers.get('retry-after')
  const retryAfterMs = retryAfter === null ? undefined : Math.min(Number(retryAfter) * 1000 || 0, RETRY_AFTER_MAX_MS)
  const body: unknown = await response.json().catch(() => null)
  const { code, message } = (body as Partial<Envelope> | null)?.error ?? {}
  if (typeof code !== 'string') return new ServiceError(status, undefined, redirectOf(response), retryAfterMs)
  const isFinal = status < 500 && retryAfterMs === undefined && headers.get('x-refused') === 'request'
  return new ServiceError(status, code, typeof message === 'string' ? message : '', retryAfterMs, isFinal)
}

/** `data` of a successful response. @throws ServiceError when it is not one of the service */
function readData(status: number, body: unknown): unknown {
  const { data, error } = (body ?? {}) as { data?: unknown; error?: unknown }
  if (data === undefined || error !== null) throw notOurs(status)
  return data
}

/** The error for a successful response that the service would not give. */
export function notOurs(status: number): ServiceError {
  return new ServiceError(status, undefined, '', undefined)
}

function redirectOf({ headers }: SmallResponse): string {
  const location = headers.get('location')
  return location === null ? '' : `, but a redirect to ${location.replace(/[?#].*/, '').slice(0, REDIRECT_LENGTH_MAX)}`
}

interface Envelope {
  readonly error: { readonly code?: unknown; readonly message?: string } | null
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
