import { type ColumnarClient, ColumnarError, ColumnarUnavailable } from '../columnar/client.ts'
import type { QueryCaps } from '../config.ts'
import { ApiError } from '../http/errors.ts'
import { type CheckedQuery, createGuard, normalFormOf, PARSER_SETTINGS } from './guard.ts'
import { atCharacters, explainFailure } from './problems.ts'
import { Remembered } from './remembered.ts'

/** A setting of the engine. */
export interface EngineSetting {
  readonly name: string
  readonly type: string
  readonly default: string
  readonly isObsolete: boolean
}

/** What the engine says about the text of a query. Results are cached: they depend on the text alone. */
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
  const passed = new Remembered<CheckedQuery>()
  const normalForms = new Remembered<string>()
  const versions = new Remembered<string>()
  const settings = new Remembered<ReadonlyMap<string, EngineSetting>>()

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
  const told = async <T>(query: string, answer: Promise<T>): Promise<T> => {
    try {
      return await answer
    } catch (error) {
      throw atCharacters(callersError(error, caps), query)
    }
  }

  return {
    check: (query, signal) => passed.of(query, () => told(query, guard.check(query, signal))),
    normalForm: (query, signal) => normalForms.of(query, () => told(query, normalFormOf(client, query, signal))),
    version: (signal) => versions.of('', () => told('', askVersion(signal))),
    settings: (signal) => settings.of('', () => told('', askSettings(signal))),
  }
}

/**
 * Turns a failure of the engine into the caller's error; returns any other error unchanged.
 * @param caps the caps of the query that failed
 */
export function callersError(error: unknown, caps: QueryCaps): unknown {
  if (error instanceof ColumnarError) return explainFailure(error, caps)
  if (!(error instanceof ColumnarUnavailable)) return error
  return new ApiError('UNAVAILABLE', 'SQL is not available at the moment; try again', { cause: error })
}
