import { type ColumnarClient, ColumnarError, ColumnarUnavailable } from '../columnar/client.ts'
import type { QueryCaps } from '../config.ts'
import { ApiError } from '../http/errors.ts'
import type { EngineSetting } from './clickhouse-settings.ts'
import { type CheckedQuery, createGuard, normalFormOf, PARSER_SETTINGS } from './guard.ts'
import { atCharacters, explainFailure } from './problems.ts'
import { Remembered } from './remembered.ts'

/** What the engine says of the text of a query. Remembered, because nothing else than the text decides it. */
export interface QueryParser {
  /** @throws ApiError VALIDATION_ERROR for a query that does not parse or is not allowed, UNAVAILABLE */
  check(query: string, signal: AbortSignal): Promise<CheckedQuery>
  /**
   * The query on one line, without comments, as the engine prints what it understood.
   * @throws ApiError VALIDATION_ERROR for a query that does not parse, UNAVAILABLE
   */
  normalForm(query: string, signal: AbortSignal): Promise<string>
  /** Of the engine. @throws ApiError UNAVAILABLE */
  version(signal: AbortSignal): Promise<string>
  /** Every setting that the engine has, by its name. @throws ApiError UNAVAILABLE */
  settings(signal: AbortSignal): Promise<ReadonlyMap<string, EngineSetting>>
}

export function createQueryParser(client: ColumnarClient, caps: QueryCaps): QueryParser {
  const guard = createGuard(client, (error) => explainFailure(error, caps))
  // Asking takes two round trips, as long as a short query itself.
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
 * What a caller is told of a failure; what is none of the engine's stays as it is.
 * @param caps that held for what failed
 */
export function callersError(error: unknown, caps: QueryCaps): unknown {
  if (error instanceof ColumnarError) return explainFailure(error, caps)
  if (!(error instanceof ColumnarUnavailable)) return error
  return new ApiError('UNAVAILABLE', 'SQL is not available at the moment; try again', { cause: error })
}
