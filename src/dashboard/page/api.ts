import type { RawJson } from '../../http/raw-json.ts'
import { parseIntact } from './json.ts'

/** A record of the API as the page receives it: free-form members are plain JSON. */
export type OnWire<T> = T extends RawJson
  ? unknown
  : T extends readonly (infer Item)[]
    ? readonly OnWire<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: OnWire<T[Name]> }
      : T

type Query = Readonly<Record<string, string | number | undefined>>

/** The service's API with one key. Both calls return the envelope's `data`. */
export interface Api {
  /** @throws ApiFailure */
  get<T>(path: string, query?: Query): Promise<T>
  /** @throws ApiFailure */
  post<T>(path: string, body: object): Promise<T>
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
}

/** @param signal ends all calls in flight: nothing may be shown for a key that was forgotten */
export function createApi(key: string, signal: AbortSignal): Api {
  async function call<T>(path: string, init: RequestInit): Promise<T> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const request = { ...init, headers, signal, cache: 'no-store', credentials: 'omit' } as const
    const answer = await fetch(path, request).catch((error: unknown) => unreachable(error, signal))
    const text = await answer.text().catch((error: unknown) => unreachable(error, signal))
    const { data, error } = envelopeOf(text)
    if (error === null) return data as T
    throw new ApiFailure(error.code, error.message, Number(answer.headers.get('retry-after') ?? 0))
  }
  return {
    get: (path, query = {}) => call(path + searchOf(query), { method: 'GET' }),
    post: (path, body) => call(path, { method: 'POST', body: JSON.stringify(body) }),
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
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
