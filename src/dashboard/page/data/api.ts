import { computed, signal as state } from '@preact/signals'
import { sleep } from '../../../base/abort.ts'
import { parseIntact } from '../../../base/intact-json.ts'
import type { Schemas } from './records.ts'

/** A page of a list. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
}

type ServiceError = Schemas['Error']['error']

type Query = Readonly<Record<string, string | number | null | undefined>>

/** An error of the service, or `UNREACHABLE` when there was no response. */
export class ApiFailure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly retryAfterSeconds: number,
    /** What else the service says of the error. */
    readonly about: Pick<ServiceError, 'reason' | 'param' | 'problems'> = {},
  ) {
    super(message)
  }

  /** Whether the service now refuses every request. @param isPerson of a person, the role may refuse single requests */
  isCallerRefused(isPerson: boolean): boolean {
    if (this.code === 'FORBIDDEN') return !isPerson || this.about.reason === 'no_workspace'
    return this.code === 'UNAUTHENTICATED'
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.code === 'UNREACHABLE' || this.code === 'UNAVAILABLE' || this.code === 'RATE_LIMITED'
  }
}

/** Between two attempts, unless the service says how long to wait. */
const RETRY_MS = 3_000
/** A single wait up to this is not shown. */
const SHORT_MS = 1_000

/**
 * The service's API with one key, or with the cookie of the person who is signed in. The calls return the envelope's
 * `data`. All throw {@link ApiFailure}, but {@link get} and {@link read} are repeated while the service cannot be reached,
 * is not ready, or refuses them because a budget of the key is spent. So no view has to handle that, and the page can say
 * in one place why it waits.
 */
export class Api {
  private readonly unreachable = state<ApiFailure | null>(null)
  /** Why reads are waiting. */
  private readonly waiting = state<readonly ApiFailure[]>([])
  /** Why the page has to wait for the service; null while it does not. */
  readonly trouble = computed(() => this.unreachable.value ?? this.waiting.value.at(-1) ?? null)

  /**
   * @param key null for the person who is signed in
   * @param signal ends all calls in flight: nothing may be shown for a key that was forgotten
   * @param onRefused the service no longer accepts the key or the sign-in, for any request
   */
  constructor(
    private readonly key: string | null,
    private readonly signal: AbortSignal,
    private readonly onRefused: (failure: ApiFailure) => void = () => {},
  ) {}

  /** Whether a person is signed in, in the place of a key. */
  get isPerson(): boolean {
    return this.key === null
  }

  get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return this.repeat(() => this.once<T>('GET', path + searchOf(query), undefined, signal), signal)
  }

  /** A POST that may be repeated, such as a query. */
  read<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
    return this.repeat(() => this.post<T>(path, body, signal), signal)
  }

  post<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
    return this.once('POST', path, body, signal)
  }

  /** @param version changes this one alone: `CONFLICT` if somebody has edited it since */
  patch<T>(path: string, body: object, version?: number): Promise<T> {
    return this.change('PATCH', path, body, version)
  }

  /** @param version replaces this one alone; undefined: replaces any, or creates it */
  put<T>(path: string, body: object, version: number | undefined): Promise<T> {
    return this.change('PUT', path, body, version)
  }

  /** @param version deletes this one alone; left out for what has none */
  delete<T>(path: string, version?: number): Promise<T> {
    return this.change('DELETE', path, undefined, version)
  }

  private change<T>(method: string, path: string, body: object | undefined, version: number | undefined): Promise<T> {
    const headers = version === undefined ? {} : { 'if-match': `"${version}"` }
    return this.call(method, path, body, undefined, dataOf, headers)
  }

  /** A POST whose answer has no envelope: a stream or a file. */
  raw(path: string, body: object, signal?: AbortSignal): Promise<Response> {
    return this.call('POST', path, body, signal, (response) => (response.ok ? response : dataOf(response)))
  }

  /** One attempt. */
  once<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    return this.call(method, path, body, signal, dataOf)
  }

  private async call<T>(
    method: string,
    path: string,
    body: object | undefined,
    aborted: AbortSignal | undefined,
    read: (response: Response) => unknown,
    more: Readonly<Record<string, string>> = {},
  ): Promise<T> {
    const signal = this.endOf(aborted)
    const headers = {
      ...(this.key !== null && { authorization: `Bearer ${this.key}` }),
      'content-type': 'application/json',
      ...more,
    }
    const credentials = this.isPerson ? 'same-origin' : 'omit'
    try {
      const request = { method, body: JSON.stringify(body), headers, signal }
      const value = await read(await fetch(path, { ...request, cache: 'no-store', credentials }))
      this.unreachable.value = null
      return value as T
    } catch (error) {
      // Its result is no longer wanted.
      if (signal.aborted) throw error
      const failure = error instanceof ApiFailure ? error : unreachable()
      // Other failures are shown where they belong.
      this.unreachable.value = failure.code === 'UNREACHABLE' ? failure : null
      if (failure.isCallerRefused(this.isPerson)) this.onRefused(failure)
      throw failure
    }
  }

  private async repeat<T>(read: () => Promise<T>, aborted?: AbortSignal): Promise<T> {
    let reason: ApiFailure | undefined
    const explain = (next?: ApiFailure) => {
      const others = this.waiting.value.filter((each) => each !== reason)
      this.waiting.value = next === undefined ? others : [...others, next]
      reason = next
    }
    try {
      for (let isFirst = true; ; isFirst = false) {
        try {
          return await read()
        } catch (error) {
          if (!(error instanceof ApiFailure) || !error.isTransient) throw error
          const ms = error.retryAfterSeconds * 1_000 || RETRY_MS
          if (!isFirst || ms > SHORT_MS) explain(error)
          await sleep(ms, this.endOf(aborted))
        }
      }
    } finally {
      if (reason !== undefined) explain()
    }
  }

  private endOf(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.signal : AbortSignal.any([this.signal, signal])
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
  conditions: Query = {},
): Promise<{ readonly items: T[]; readonly isPartial: boolean }> {
  const items: T[] = []
  let cursor: string | null = null
  do {
    const page: Listed<T> = await api.get(path, { ...conditions, limit: PAGE_LIMIT, cursor }, signal)
    items.push(...page.items)
    cursor = page.next_cursor
  } while (cursor !== null && items.length < max)
  return { items, isPartial: cursor !== null }
}

/** With a filter, pages may be empty: so many are read at once for one that is not. */
const EMPTY_PAGES_MAX = 10

/** The next page with items, or the last page read. @param cursor null: the first page @throws ApiFailure */
export async function nextNonEmptyPage<T>(
  read: (cursor: string | null) => Promise<Listed<T>>,
  cursor: string | null,
): Promise<Listed<T>> {
  let page = await read(cursor)
  for (let tries = 1; tries < EMPTY_PAGES_MAX && page.items.length === 0 && page.next_cursor !== null; tries++)
    page = await read(page.next_cursor)
  return page
}

const AT_ONCE = 4

/** Calls the service for each item, for a few at the same time. @param call must not fail */
export async function forEachAtOnce<T>(items: readonly T[], call: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  const worker = async () => {
    for (const item of rest) await call(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

interface Envelope {
  readonly data: unknown
  readonly error: ServiceError | null
}

async function dataOf(response: Response): Promise<unknown> {
  const { data, error } = envelopeOf(await response.text())
  if (error === null) return data
  throw new ApiFailure(error.code, error.message, Number(response.headers.get('retry-after') ?? 0), error)
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

/** The answer of a query in JSON. */
export type Result = Schemas['QueryAnswer']
export type Column = Result['columns'][number]
export type Params = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

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
