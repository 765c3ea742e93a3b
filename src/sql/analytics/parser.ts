import { LRUCache } from 'lru-cache'
import { ApiError } from '../../base/errors.ts'
import { type ColumnarClient, ColumnarError, ColumnarUnavailable } from '../../stores/clickhouse/client.ts'
import { type CheckedQuery, createGuard, normalFormOf, PARSER_SETTINGS, type SqlGuard } from './guard.ts'
import { atCharacters, explainFailure } from './problems.ts'
import type { QueryCaps } from './query-caps.ts'

/** Limits of each cache: entries, and characters of queries. */
const CACHED_MAX = 1_000
const CACHED_LENGTH_MAX = 4_000_000

/** A setting of the engine. */
export interface EngineSetting {
  readonly name: string
  readonly type: string
  readonly default: string
  readonly isObsolete: boolean
}

/** What is known of the engine: its version, and all its settings by name. */
export interface KnownEngine {
  readonly version: string
  readonly settings: ReadonlyMap<string, EngineSetting>
}

/** Parses queries with the engine. Results are cached, because they depend only on the text. */
export class QueryParser {
  // A check takes two round trips, as long as a short query itself.
  private readonly passed = textCache<CheckedQuery>()
  private readonly normalForms = textCache<string>()
  private readonly guard: SqlGuard
  private known: KnownEngine | undefined

  constructor(
    private readonly client: ColumnarClient,
    private readonly caps: QueryCaps,
  ) {
    this.guard = createGuard(client, (error) => explainFailure(error, caps))
  }

  /** @throws ApiError VALIDATION_ERROR for a query that does not parse or is not allowed, UNAVAILABLE */
  check(query: string, signal: AbortSignal): Promise<CheckedQuery> {
    return this.cached(this.passed, query, () => this.guard.check(query, signal))
  }

  /**
   * The query in the engine's normal form: on one line, without comments.
   * @throws ApiError VALIDATION_ERROR for a query that does not parse, UNAVAILABLE
   */
  normalForm(query: string, signal: AbortSignal): Promise<string> {
    return this.cached(this.normalForms, query, () => normalFormOf(this.client, query, signal))
  }

  /** @throws ApiError UNAVAILABLE */
  async engine(signal: AbortSignal): Promise<KnownEngine> {
    const sql = 'SELECT version() AS version, name, type, default, is_obsolete::Bool AS isObsolete FROM system.settings'
    const options = { settings: PARSER_SETTINGS, signal }
    const ask = () => this.client.query<EngineSetting & { version: string }>(sql, options)
    if (this.known !== undefined) return this.known
    const rows = await this.translated('', ask)
    this.known = { version: rows[0].version, settings: new Map(rows.map((row) => [row.name, row])) }
    return this.known
  }

  private async cached<Found extends {}>(
    cache: LRUCache<string, Found>,
    query: string,
    find: () => Promise<Found>,
  ): Promise<Found> {
    const found = cache.get(query) ?? (await this.translated(query, find))
    cache.set(query, found)
    return found
  }

  private async translated<T>(query: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw atCharacters(toCallersError(error, this.caps), query)
    }
  }
}

function textCache<Found extends {}>(): LRUCache<string, Found> {
  return new LRUCache({ max: CACHED_MAX, maxSize: CACHED_LENGTH_MAX, sizeCalculation: (_, { length }) => length + 1 })
}

/**
 * Turns a failure of the engine into the caller's error; returns any other error unchanged.
 * @param caps the caps of the query that failed
 */
export function toCallersError(error: unknown, caps: QueryCaps): unknown {
  if (error instanceof ColumnarError) return explainFailure(error, caps)
  if (!(error instanceof ColumnarUnavailable)) return error
  return new ApiError('UNAVAILABLE', 'SQL is not available at the moment; try again', { cause: error })
}
