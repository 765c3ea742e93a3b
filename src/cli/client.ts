import { KEY_SOURCE } from './connection.ts'
import { CliError } from './error.ts'

/** An error response of the service. */
export class CallRefused extends Error {
  constructor(
    readonly status: number,
    /** Undefined when the response is not an error envelope of the service. */
    readonly code: string | undefined,
    /** The message of the envelope; empty when there is none. */
    readonly reason: string,
    /** From `Retry-After`; undefined without that header. */
    readonly retryAfterMs: number | undefined,
  ) {
    super(code === undefined ? `status ${status}, not a response of the service` : `${code}: ${reason}`)
    this.name = 'CallRefused'
  }
}

/** The service did not respond, or could not serve the call, before the deadline. Whether it had any effect is unknown. */
export class CallUnconfirmed extends Error {
  constructor(path: string, cause: unknown) {
    super(`the call to ${path} failed: ${cause instanceof Error ? cause.message : cause}`, { cause })
    this.name = 'CallUnconfirmed'
  }
}

/** Whether the service, and not a bug in the caller, made a call fail. */
export function isCallFailure(error: unknown): error is CallRefused | CallUnconfirmed {
  return error instanceof CallRefused || error instanceof CallUnconfirmed
}

export interface Call {
  readonly key: string
  readonly path: string
  /** GET without it, else POST. */
  readonly body?: object
  /** For calls whose body has no id that makes a retry safe. */
  readonly idempotencyKey?: string
}

/**
 * Sends a call once.
 *
 * @returns a successful response, whose body has not been read
 * @throws CallRefused for an error response; the error of `fetch` when there is no response
 */
export async function send(url: string, call: Call, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(url + call.path, { ...requestOf(call), redirect: 'manual', signal })
  if (response.ok) return response
  throw await readRefusal(response)
}

function requestOf({ key, body, idempotencyKey }: Call): {
  method: string
  headers: Record<string, string>
  body?: string
} {
  const headers: Record<string, string> = { authorization: `Bearer ${key}` }
  if (body === undefined) return { method: 'GET', headers }
  headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  return { method: 'POST', headers, body: JSON.stringify(body) }
}

/** Reads what an error response says. */
export async function readRefusal(response: Response): Promise<CallRefused> {
  const { status, headers } = response
  const retryAfter = headers.get('retry-after')
  const retryAfterMs = retryAfter === null ? undefined : Number(retryAfter) * 1000 || 0
  const body: unknown = await response.json().catch(() => null)
  const { code, message } = (body as Partial<Envelope> | null)?.error ?? {}
  if (typeof code !== 'string') return new CallRefused(status, undefined, '', retryAfterMs)
  return new CallRefused(status, code, message ?? '', retryAfterMs)
}

interface Envelope {
  readonly error: { readonly code?: unknown; readonly message?: string } | null
}

/** For a service that cannot be reached at `url`. */
export function unreachable(url: string, cause: unknown): CliError {
  const root = cause instanceof CallUnconfirmed ? cause.cause : cause
  const { code, message } = root as NodeJS.ErrnoException
  const advice = 'Start one with "bun run start", or set --url or AGENT_RUN_URL.'
  return new CliError(`no service responds at ${url} (${code ?? message}).\n${advice}`, 1, { cause })
}

/** For a service that rejects the key. */
export function keyRejected(url: string, refusal: CallRefused): CliError {
  const reason = refusal.reason || `status ${refusal.status}`
  return new CliError(`the service at ${url} rejected the key: ${reason}\n${KEY_SOURCE}`, 1, { cause: refusal })
}

export interface ClientOptions {
  readonly url: string
  /** How long a call is retried, in milliseconds. */
  readonly retryForMs: number
  readonly onRetry?: () => void
  /** Called after each successful call with the duration of the successful attempt; failed attempts do not count. */
  readonly onAnswer?: (path: string, ms: number) => void
}

export type Client = (call: Call) => Promise<unknown>

const ATTEMPT_TIMEOUT_MS = 15_000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 2_000

/**
 * Creates a client that retries temporary failures with the same bytes, and therefore the same ids, and with exponential
 * backoff: a lost connection, 429, 503, 500, and a 409 with `Retry-After`.
 *
 * @returns a function that returns `data` of the envelope, or throws CallRefused or CallUnconfirmed
 */
export function createClient({ url, retryForMs, onRetry = () => {}, onAnswer = () => {} }: ClientOptions): Client {
  return async (call) => {
    const deadline = performance.now() + retryForMs
    for (let attempt = 0; ; attempt++) {
      const startedAt = performance.now()
      const outcome = await attemptOnce(url, call)
      if ('data' in outcome) {
        onAnswer(call.path, performance.now() - startedAt)
        return outcome.data
      }
      const { error } = outcome
      if (!isTemporary(error)) throw error
      const retryAfterMs = error instanceof CallRefused ? (error.retryAfterMs ?? 0) : 0
      const delay = Math.max(retryAfterMs, backoff(attempt))
      if (performance.now() + delay > deadline) throw new CallUnconfirmed(call.path, error)
      onRetry()
      await Bun.sleep(delay)
    }
  }
}

async function attemptOnce(url: string, call: Call): Promise<{ data: unknown } | { error: unknown }> {
  try {
    const response = await send(url, call, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS))
    const { data } = (await response.json()) as { data: unknown }
    return { data }
  } catch (error) {
    return { error }
  }
}

/** Errors other than CallRefused mean that there was no complete response. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof CallRefused)) return true
  const { status, code, retryAfterMs } = error
  // Without a code, the response is not from the service, but from a proxy while the service restarts, for example.
  return (
    (code === undefined && status >= 400) ||
    [429, 500, 503].includes(status) ||
    (status === 409 && retryAfterMs !== undefined)
  )
}

/** Random, so that clients do not all retry at the same moment. */
function backoff(attempt: number): number {
  return Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (attempt + 1))
}
