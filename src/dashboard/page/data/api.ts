import { signal as state } from '@preact/signals'
import { parseIntact } from './json.ts'

/** A page of a list. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
}

type Query = Readonly<Record<string, string | number | null | undefined>>

/** The service's API with one key. The calls return the envelope's `data`. All throw {@link ApiFailure}. */
export interface Api {
  get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>
  post<T>(path: string, body: object, signal?: AbortSignal): Promise<T>
  /** A POST that changes nothing, such as a query. */
  read<T>(path: string, body: object, signal?: AbortSignal): Promise<T>
  patch<T>(path: string, body: object): Promise<T>
  delete<T>(path: string): Promise<T>
  /** For answers without an envelope: streams and files. */
  raw(path: string, body: object, signal?: AbortSignal): Promise<Response>
}

/** An error of the service, or `UNREACHABLE` when there was no response. */
export class ApiFailure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message)
  }

  /** Whether the service no longer accepts the key, for any request. */
  get isKeyRefused(): boolean {
    return this.code === 'UNAUTHENTICATED' || this.code === 'FORBIDDEN'
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.code === 'UNREACHABLE' || this.code === 'UNAVAILABLE' || this.code === 'RATE_LIMITED'
  }
}

/** Called after each call; null on success. */
type Observe = (failure: ApiFailure | null) => void

/** @param signal ends all calls in flight: nothing may be shown for a key that was forgotten */
export function createApi(key: string, signal: AbortSignal, observe: Observe = () => {}): Api {
  function send(path: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return fetch(path, { ...init, headers, cache: 'no-store', credentials: 'omit' })
  }

  async function dataOf(response: Response): Promise<unknown> {
    const text = await response.text()
    const { data, error } = envelopeOf(text)
    if (error === null) return data
    throw new ApiFailure(error.code, error.message, Number(response.headers.get('retry-after') ?? 0))
  }

  async function call<T>(path: string, init: RequestInit, read: (response: Response) => Promise<unknown>): Promise<T> {
    const either = init.signal ? AbortSignal.any([signal, init.signal]) : signal
    try {
      const value = await read(await send(path, { ...init, signal: either }))
      observe(null)
      return value as T
    } catch (error) {
      // Its result is no longer wanted.
      if (either.aborted) throw error
      const failure = error instanceof ApiFailure ? error : unreachable()
      observe(failure)
      throw failure
    }
  }

  const post: Api['post'] = (path, body, aborted) =>
    call(path, { method: 'POST', body: JSON.stringify(body), signal: aborted }, dataOf)
  return {
    get: (path, query = {}, aborted) => call(path + searchOf(query), { method: 'GET', signal: aborted }, dataOf),
    post,
    read: post,
    patch: (path, body) => call(path, { method: 'PATCH', body: JSON.stringify(body) }, dataOf),
    delete: (path) => call(path, { method: 'DELETE' }, dataOf),
    raw: (path, body, aborted) =>
      call(path, { method: 'POST', body: JSON.stringify(body), signal: aborted }, async (response) =>
        response.ok ? response : dataOf(response),
      ),
  }
}

/** The most that a page of a list may have. */
const PAGE_LIMIT = 200

/** Reads a list page by page, until it has at least `max` items. @throws ApiFailure */
export async function listAll<T>(
  api: Api,
  path: string,
  max: number,
  signal?: AbortSignal,
): Promise<{ readonly items: T[]; readonly isPartial: boolean }> {
  const items: T[] = []
  let cursor: string | null = null
  do {
    const page: Listed<T> = await api.get(path, { limit: PAGE_LIMIT, cursor }, signal)
    items.push(...page.items)
    cursor = page.next_cursor
  } while (cursor !== null && items.length < max)
  return { items, isPartial: cursor !== null }
}

interface Envelope {
  readonly data: unknown
  readonly error: { readonly code: string; readonly message: string } | null
}

function envelopeOf(text: string): Envelope {
  try {
    return parseIntact(text) as Envelope
  } catch {
    // A proxy between the browser and the service has answered.
    throw unreachable()
  }
}

function unreachable(): ApiFailure {
  return new ApiFailure('UNREACHABLE', 'The service does not respond.', 0)
}

function searchOf(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** Between two attempts, unless the service says how long to wait. */
const RETRY_MS = 3_000
/** A single wait up to this is not shown. */
const SHORT_MS = 1_000

/**
 * Retries reads while the service cannot be reached, is not ready, or refuses them because a budget of the key is spent. So
 * no view has to handle that, and the page can say in one place why it waits.
 */
export class Retries {
  /** Why reads are waiting; null: none is. */
  readonly waiting = state<ApiFailure | null>(null)
  private readonly reasons = new Map<symbol, ApiFailure>()

  /** @param signal ends all retries */
  constructor(private readonly signal: AbortSignal) {}

  /** The same API, whose `get` and `read` are repeated while they fail transiently. */
  applyTo(api: Api): Api {
    return {
      ...api,
      get: (path, query, signal) => this.repeat(() => api.get(path, query, signal), signal),
      read: (path, body, signal) => this.repeat(() => api.read(path, body, signal), signal),
    }
  }

  private async repeat<T>(read: () => Promise<T>, aborted?: AbortSignal): Promise<T> {
    const signal = aborted === undefined ? this.signal : AbortSignal.any([this.signal, aborted])
    const own = Symbol('read')
    try {
      for (let isFirst = true; ; isFirst = false) {
        try {
          return await read()
        } catch (error) {
          if (!(error instanceof ApiFailure) || !error.isTransient) throw error
          const ms = error.retryAfterSeconds * 1_000 || RETRY_MS
          if (!isFirst || ms > SHORT_MS) this.explain(own, error)
          await pause(ms, signal)
        }
      }
    } finally {
      this.explain(own, null)
    }
  }

  private explain(read: symbol, reason: ApiFailure | null): void {
    this.reasons.delete(read)
    if (reason !== null) this.reasons.set(read, reason)
    this.waiting.value = [...this.reasons.values()].at(-1) ?? null
  }
}

/** @throws the reason of `signal` if it aborts before */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

export interface Column {
  readonly name: string
  readonly type: string
}

/** The answer of a query in JSON. */
export interface Result {
  readonly columns: readonly Column[]
  readonly rows: readonly Readonly<Record<string, unknown>>[]
  readonly row_count: number
  readonly truncated: boolean
  readonly statistics: { readonly elapsed_ms: number }
}

export type Params = Readonly<Record<string, string | number | boolean | null>>

/** The workspace may run only a few queries at once, and other tabs and programs need some of them. */
const CONCURRENT_QUERIES_MAX = 2

/** Runs the SQL behind the page's own views, a few queries at a time. */
export class Queries {
  private running = 0
  private readonly queue: (() => void)[] = []

  constructor(private readonly api: Api) {}

  /** @throws ApiFailure */
  async run(query: string, params: Params = {}, signal?: AbortSignal): Promise<Result> {
    while (this.running >= CONCURRENT_QUERIES_MAX) await new Promise<void>((resolve) => this.queue.push(resolve))
    this.running++
    try {
      return await this.api.read<Result>('/api/v1/query', { query, params }, signal)
    } finally {
      this.running--
      this.queue.shift()?.()
    }
  }
}
