import { ServiceError } from '../../client/errors.ts'
import type { components } from '../../client/generated/api.ts'
import { Client } from '../../client/index.ts'
import { CliError } from '../shared/error.ts'
import { keyRejected, unreachable } from '../shared/failures.ts'
import type { Format } from './args.ts'
import { type QueryResult, readResult } from './result.ts'

/** Values of `{name:Type}` placeholders. The service converts text to the type. */
export type Params = Readonly<Record<string, unknown>>

export interface QueryRequest {
  readonly query: string
  /** May contain values that the query does not use. */
  readonly params: Params
}

/** Tables and example queries. */
export type Schema = Pick<components['schemas']['QueryCatalogue'], 'tables' | 'examples'>

interface SqlServiceOptions {
  readonly url: string
  readonly key: string
  readonly waitFor: string | number | undefined
}

export type SqlService = ReturnType<typeof createSqlService>

/** The service's SQL API (docs/specification.md#sql). Errors of the service, and its absence, are CliErrors. */
export function createSqlService({ url, key, waitFor }: SqlServiceOptions) {
  const client = new Client({ url, key })
  const call = async (path: string, body: object | undefined, signal?: AbortSignal, query = ''): Promise<Response> => {
    try {
      return await client.send({ path, body, signal })
    } catch (error) {
      signal?.throwIfAborted()
      throw error instanceof ServiceError ? explain(error, url, query) : unreachable(url, error)
    }
  }
  const post = ({ query, params }: QueryRequest, format: Format, signal?: AbortSignal): Promise<Response> => {
    const body = { query, params, format, ...(waitFor !== undefined && { wait_for: waitFor }) }
    return call('/api/v1/query', body, signal, query)
  }
  return {
    /** @throws CliError; the reason of `signal` when it aborts */
    async query(request: QueryRequest, signal?: AbortSignal): Promise<QueryResult> {
      const response = await post(request, 'json', signal)
      return readResult(await complete(response.text(), signal))
    },
    /** The result in the given format. The stream throws a CliError if the connection is lost. */
    async download(request: QueryRequest, format: Format, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
      const response = await post(request, format, signal)
      return chunks(response, signal)
    },
    /** Null if the service does not describe its tables. */
    async schema(): Promise<Schema | null> {
      const response = await call('/api/v1/query/schema', undefined).catch((error: CliError) => {
        if (error.cause instanceof ServiceError && error.cause.status === 404) return null
        throw error
      })
      if (response === null) return null
      const { data } = (await complete(response.json())) as { data: Schema }
      return data
    },
  }
}

async function* chunks(response: Response, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
  for (;;) {
    const { done, value } = await complete(reader.read(), signal)
    if (done) return
    yield value
  }
}

async function complete<T>(part: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await part
  } catch (error) {
    signal?.throwIfAborted()
    throw new CliError(
      `the connection was lost during the response: ${error instanceof Error ? error.message : error}`,
      1,
      { cause: error },
    )
  }
}

/** @param query the query that the message may be about */
function explain(refusal: ServiceError, url: string, query: string): CliError {
  const { status, code, detail, retryAfterMs } = refusal
  const cause = { cause: refusal }
  if (code === undefined)
    return new CliError(`${url} responded with status ${status}: is it the URL of the service?`, 1, cause)
  if (status === 401) return keyRejected(url, refusal)
  if (status === 400)
    return new CliError(pointOut(refusal.param === 'query' ? refusal.problems[0]!.message : detail, query), 1, cause)
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
