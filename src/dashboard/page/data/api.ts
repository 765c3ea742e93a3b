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
