import { ApiError } from '../base/errors.ts'
import { type ColumnarClient, ColumnarError, ColumnarUnavailable } from '../clickhouse/client.ts'
import { type CheckedQuery, createGuard, normalFormOf, PARSER_SETTINGS } from './guard.ts'
import { atCharacters, explainFailure } from './problems.ts'
import type { QueryCaps } from './query-caps.ts'
import { TextCache } from './text-cache.ts'

/** A setting of the engine. */
export interface EngineSetting {
  readonly name: string
  readonly type: string
  readonly default: string
  readonly isObsolete: boolean
}

/** Parses queries with the engine. Results are cached, because they depend only on the text. */
export interface QueryParser {
  /** @throws ApiError VALIDATION_ERROR for a query that does not parse or is not allowed, UNAVAILABLE */
  check(query: string, signal: AbortSignal): Promise<CheckedQuery>
  /**
   * The query in the engine's normal form: on one line, without comments.
   * @throws ApiError VALIDATION_ERROR for a query that does not parse, UNAVAILABLE
   */
  normalForm(query: string, signal: AbortSignal): Promise<string>
  /** The version of the engine. @throws ApiError UNAVAILABLE */
  version(signal: AbortSignal): Promise<string>
  /** All settings of the engine, by name. @throws ApiError UNAVAILABLE */
  settings(signal: AbortSignal): Promise<ReadonlyMap<string, EngineSetting>>
}

export function createQueryParser(client: ColumnarClient, caps: QueryCaps): QueryParser {
  const guard = createGuard(client, (error) => explainFailure(error, caps))
  // A check takes two round trips, as long as a short query itself.
  const passed = new TextCache<CheckedQuery>()
  const normalForms = new TextCache<string>()
  const versions = new TextCache<string>()
  const settings = new TextCache<ReadonlyMap<string, EngineSetting>>()

  const askVersion = async (signal: AbortSignal): Promise<string> => {
    const options = { settings: PARSER_SETTINGS, signal }
    const [row] = await client.query<{ version: string }>('SELECT version() AS version', options)
    return row.version
  }
  const askSettings = async (signal: AbortSignal) => {
    const sql = 'SELECT name, type, default, is_obsolete AS isObsolete FROM system.settings'
    const rows = await client.query<Omit<EngineSetting, 'isObsolete'> & { isObsolete: number }>(sql, {
      settings: { readonly: 1 },
      signal,
    })
    return new Map(rows.map((row) => [row.name, { ...row, isObsolete: row.isObsolete === 1 }]))
  }
  const translated = async <T>(query: string, answer: Promise<T>): Promise<T> => {
    try {
      return await answer
    } catch (error) {
      throw atCharacters(toCallersError(error, caps), query)
    }
  }

  return {
    check: (query, signal) => passed.of(query, () => translated(query, guard.check(query, signal))),
    normalForm: (query, signal) => normalForms.of(query, () => translated(query, normalFormOf(client, query, signal))),
    version: (signal) => versions.of('', () => translated('', askVersion(signal))),
    settings: (signal) => settings.of('', () => translated('', askSettings(signal))),
  }
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
