import type { RawJson } from '../../../http/raw-json.ts'
import { parseIntact } from './json.ts'

/** A record of the API as the page receives it: free-form members are plain JSON. */
export type OnWire<T> = T extends RawJson
  ? unknown
  : T extends readonly (infer Item)[]
    ? readonly OnWire<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: OnWire<T[Name]> }
      : T

/** A page of a list. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
}

export type Query = Readonly<Record<string, string | number | null | undefined>>

/** The service's API with one key. The calls return the envelope's `data`. All throw {@link ApiFailure}. */
export interface Api {
  get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>
  post<T>(path: string, body: object, signal?: AbortSignal): Promise<T>
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

  /** The key does not work any more, whatever the request. */
  get isKeyRefused(): boolean {
    return this.code === 'UNAUTHENTICATED' || this.code === 'FORBIDDEN'
  }

  /** The same request may succeed later. */
  get isTransient(): boolean {
    return this.code === 'UNREACHABLE' || this.code === 'UNAVAILABLE' || this.code === 'RATE_LIMITED'
  }
}

/** Told the outcome of each call: null for a response that is no failure. */
export type Observe = (failure: ApiFailure | null) => void

/** @param signal ends all calls in flight: nothing may be shown for a key that was forgotten */
export function createApi(key: string, signal: AbortSignal, observe: Observe = () => {}): Api {
  async function send(path: string, init: RequestInit): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const either = init.signal ? AbortSignal.any([signal, init.signal]) : signal
    const request = { ...init, headers, signal: either, cache: 'no-store', credentials: 'omit' } as const
    return fetch(path, request).catch((error: unknown) => unreachable(error, either))
  }

  async function dataOf<T>(response: Response): Promise<T> {
    const text = await response.text().catch((error: unknown) => unreachable(error, signal))
    const { data, error } = envelopeOf(text)
    if (error === null) return data as T
    throw new ApiFailure(error.code, error.message, Number(response.headers.get('retry-after') ?? 0))
  }

  async function observed<T>(answer: Promise<T>): Promise<T> {
    try {
      const value = await answer
      observe(null)
      return value
    } catch (error) {
      if (error instanceof ApiFailure) observe(error)
      throw error
    }
  }

  const call = <T>(path: string, init: RequestInit) => observed(send(path, init).then(dataOf<T>))
  return {
    get: (path, query = {}, aborted) => call(path + searchOf(query), { method: 'GET', signal: aborted }),
    post: (path, body, aborted) => call(path, { method: 'POST', body: JSON.stringify(body), signal: aborted }),
    patch: (path, body) => call(path, { method: 'PATCH', body: JSON.stringify(body) }),
    delete: (path) => call(path, { method: 'DELETE' }),
    raw: (path, body, aborted) =>
      observed(
        send(path, { method: 'POST', body: JSON.stringify(body), signal: aborted }).then((response) =>
          response.ok ? response : dataOf<Response>(response),
        ),
      ),
  }
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
    throw new ApiFailure('UNREACHABLE', 'The service does not respond.', 0)
  }
}

function unreachable(error: unknown, signal: AbortSignal): never {
  if (signal.aborted) throw error
  throw new ApiFailure('UNREACHABLE', 'The service does not respond.', 0)
}

function searchOf(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
