/** An answer of the service that no repeat would change. */
export class CallRefused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(`${code}: ${message}`)
    this.name = 'CallRefused'
  }
}

/** The service did not answer, or could not serve, for as long as we were ready to wait. What it did is not known. */
export class CallUnconfirmed extends Error {
  constructor(path: string, cause: unknown) {
    super(`no answer to ${path}: ${cause instanceof Error ? cause.message : cause}`, { cause })
    this.name = 'CallUnconfirmed'
  }
}

/** Whether the service is why a call came to nothing, and not a mistake of ours. */
export function isCallFailure(error: unknown): error is CallRefused | CallUnconfirmed {
  return error instanceof CallRefused || error instanceof CallUnconfirmed
}

export interface ClientOptions {
  readonly url: string
  /** How long a call is repeated before it is given up, milliseconds. */
  readonly patienceMs: number
  readonly onRetry?: () => void
  /** Told how long the answer took that was waited for, of each call that succeeded; earlier attempts do not count. */
  readonly onAnswer?: (path: string, ms: number) => void
}

export interface Call {
  readonly key: string
  readonly path: string
  /** Left out: GET. */
  readonly body?: object
  /** For calls whose body has no id of ours that makes a repeat harmless. */
  readonly idempotencyKey?: string
}

export type Client = (call: Call) => Promise<unknown>

const ATTEMPT_TIMEOUT_MS = 15_000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 2_000

/**
 * Calls the service as a careful SDK would. Whatever may pass is tried again, with the very same bytes and so the same
 * ids, ever more patiently: a lost connection, 429, 503, 500, and a 409 that says when to come back.
 *
 * @returns `data` of the envelope
 * @throws CallRefused, CallUnconfirmed
 */
export function createClient({ url, patienceMs, onRetry = () => {}, onAnswer = () => {} }: ClientOptions): Client {
  return async (call) => {
    const init = requestOf(call)
    const deadline = performance.now() + patienceMs
    for (let attempt = 0; ; attempt++) {
      const startedAt = performance.now()
      const outcome = await tryOnce(`${url}${call.path}`, init)
      if ('data' in outcome) {
        onAnswer(call.path, performance.now() - startedAt)
        return outcome.data
      }
      if (!outcome.mayPass) throw outcome.error
      const delay = Math.max(outcome.retryAfterMs, backoff(attempt))
      if (performance.now() + delay > deadline) throw new CallUnconfirmed(call.path, outcome.error)
      onRetry()
      await Bun.sleep(delay)
    }
  }
}

function requestOf({ key, body, idempotencyKey }: Call) {
  const headers: Record<string, string> = { authorization: `Bearer ${key}` }
  if (body === undefined) return { method: 'GET', headers }
  headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  return { method: 'POST', headers, body: JSON.stringify(body) }
}

type Outcome = { data: unknown } | { error: Error; mayPass: boolean; retryAfterMs: number }

async function tryOnce(url: string, init: { method: string; headers: Record<string, string> }): Promise<Outcome> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(ATTEMPT_TIMEOUT_MS) })
    const { data, error } = (await response.json()) as Envelope
    if (response.ok) return { data }
    const retryAfter = response.headers.get('retry-after')
    return {
      error: new CallRefused(response.status, error?.code ?? 'UNKNOWN', error?.message ?? 'no message'),
      mayPass: [429, 500, 503].includes(response.status) || (response.status === 409 && retryAfter !== null),
      retryAfterMs: Number(retryAfter ?? 0) * 1000,
    }
  } catch (error) {
    // No answer, or one that broke off: the connection, or the service, is gone.
    return { error: error instanceof Error ? error : new Error(String(error)), mayPass: true, retryAfterMs: 0 }
  }
}

interface Envelope {
  readonly data: unknown
  readonly error: { readonly code: string; readonly message: string } | null
}

/** Random, so that a fleet does not come back all at once. */
function backoff(attempt: number): number {
  return Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** (attempt + 1))
}
