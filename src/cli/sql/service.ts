import { elements, member, members } from '../../base/json-parts.ts'
import { ServiceError } from '../../client/errors.ts'
import { Client } from '../../client/index.ts'
import { CliError } from '../shared/error.ts'
import { keyRejected, unreachable } from '../shared/failures.ts'
import type { Grid } from '../shared/table.ts'
import type { Format, SqlOptions } from './args.ts'

/**
 * The service's SQL API (docs/sql.md).
 *
 * @returns a function that runs a query and returns the bytes of its result. Errors of the service, its absence and a lost
 * connection are CliErrors; when `signal` aborts, its reason is thrown.
 */
export function createSqlService({ url, key, params, waitFor }: SqlOptions) {
  const client = new Client({ url, key })
  return async (query: string, format: Format, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> => {
    const body = { query, params, format, ...(waitFor !== undefined && { wait_for: waitFor }) }
    try {
      return chunks(await client.send({ path: '/api/v1/query', body, signal }), signal)
    } catch (error) {
      signal?.throwIfAborted()
      throw error instanceof ServiceError ? explain(error, url, query) : unreachable(url, error)
    }
  }
}

async function* chunks({ body }: Response, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (error) {
    signal?.throwIfAborted()
    const reason = error instanceof Error ? error.message : error
    throw new CliError(`the connection was lost during the response: ${reason}`, 1, { cause: error })
  }
}

/** `data` of `POST /api/v1/query` in the format json (docs/sql.md#formats). */
export interface QueryResult extends Grid {
  /** The original text. */
  readonly json: string
  readonly truncated: boolean
  /** Duration at the service, and size of the rows. */
  readonly statistics: { readonly elapsed_ms: number; readonly bytes_read: number }
  readonly complete_through: string
}

/**
 * @param envelope the body of the response; numbers keep their original digits
 * @throws SyntaxError for invalid JSON
 */
export function readResult(envelope: string): QueryResult {
  const { data } = JSON.parse(envelope) as { data: Omit<QueryResult, 'json' | 'rows'> }
  const json = member(envelope, 'data') ?? '{}'
  const rows = elements(member(json, 'rows') ?? '[]')
  return { ...data, json, rows: rows.map((row) => members(row).map(([, value]) => cellOf(value))) }
}

function cellOf(json: string): string | null {
  if (json === 'null') return null
  return json.startsWith('"') ? (JSON.parse(json) as string) : json
}

/** @param query the query that the message may be about */
function explain(refusal: ServiceError, url: string, query: string): CliError {
  const { status, code, detail, param, problems, retryAfterMs } = refusal
  const cause = { cause: refusal }
  if (code === undefined)
    return new CliError(`${url} responded with status ${status}: is it the URL of the service?`, 1, cause)
  if (status === 401) return keyRejected(url, refusal)
  if (status === 400) return new CliError(pointOut(param === 'query' ? problems[0]!.message : detail, query), 1, cause)
  const later = retryAfterMs === undefined ? '' : `\nTry again in ${retryAfterMs / 1000} s.`
  return new CliError(`${detail} (${code})${later}`, 1, cause)
}

/** Characters of the line shown on either side of the position. */
const SHOWN_MAX = 50

/** Shows the position that an error message names below the line of the query. `position 15` counts characters from 1. */
export function pointOut(message: string, query: string): string {
  const position = Number(/\bposition (\d+)/.exec(message)?.[1])
  const characters = [...query]
  if (!(position >= 1 && position <= characters.length + 1)) return message
  const before = characters.slice(0, position - 1).join('')
  const lineStart = before.lastIndexOf('\n') + 1
  const line = query.slice(lineStart).split('\n', 1)[0]!.replaceAll('\t', ' ')
  const at = before.length - lineStart
  const from = Math.max(0, at - SHOWN_MAX)
  const indent = ' '.repeat(Bun.stringWidth(line.slice(from, at)))
  return `${message}\n  ${line.slice(from, at + SHOWN_MAX)}\n  ${indent}^`
}
