import { gzipSync } from 'node:zlib'
import { ApiError } from '../../base/errors.ts'
import type { BodyReader } from '../../base/http/body.ts'
import { EXCEPTION_TAG_HEADER, exceptionBlock, mintExceptionTag } from '../../stores/clickhouse/exception-block.ts'
import {
  acceptsGzip,
  answerHeaders,
  ClickHouseFailure,
  failureResponse,
  readCredentials,
  readStatement,
  type Statement,
} from '../../stores/clickhouse/protocol.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Analytics, StreamQuery } from './analytics.ts'
import { refusalOf } from './clickhouse-errors.ts'
import { readRequest } from './clickhouse-request.ts'
import { withJsonTail } from './json-tail.ts'
import { QUERY_LENGTH_MAX } from './schema.ts'

export interface ClickHouseEndpointDeps {
  readonly guards: Guards
  readonly reader: BodyReader
  readonly analytics: Analytics
}

/**
 * Answers a request of ClickHouse's HTTP interface, so that ClickHouse clients and tools can connect to a workspace with
 * any user name and the workspace key as the password. Keys, rate limits, guard and caps are those of
 * `POST /api/v1/query`. Errors use ClickHouse's format.
 *
 * @param headers the response headers; rate limit headers are added to them
 */
type ClickHouseEndpoint = (request: Request, headers: Record<string, string | number>) => Promise<Response>

const ACCESS = { audience: 'workspace', budget: 'queries', role: 'admin' } as const
const LINGER_MS = 2_000

export function createClickHouseEndpoint({ guards, reader, analytics }: ClickHouseEndpointDeps): ClickHouseEndpoint {
  const { parser } = analytics

  const receive = async (request: Request, headers: Record<string, string | number>) => {
    const token = passwordOf(request)
    const { caller, body } = await guards.receive(request, headers, ACCESS, { token })
    try {
      return { caller, body: withBody(request, reader.inflate(request, body)) }
    } catch (error) {
      throw unreadable(error)
    } finally {
      body.hold.release()
    }
  }

  const answer = async (caller: Caller, statement: Statement, request: StreamQuery, signal: AbortSignal) => {
    const { body: plain } = await analytics.stream(caller, request, signal)
    const { outputFormat: format, query } = request
    const { version } = await parser.engine(signal)
    const tag = mintExceptionTag()
    const body = reportingFailure(
      withJsonTail(plain, { format, query, settings: statement.settings }),
      (error) => exceptionBlock(tag, refusalOf(error, query).failure, version),
      statement.acceptsGzip,
    )
    const headers = { ...answerHeaders(statement.queryId, format), [EXCEPTION_TAG_HEADER]: tag }
    return new Response(body, { headers: statement.acceptsGzip ? { ...headers, 'Content-Encoding': 'gzip' } : headers })
  }

  const fail = async (error: ApiError | ClickHouseFailure, request: Request, query?: string, queryId?: string) => {
    const { failure, status, headers } = refusalOf(error, query)
    const { version } = await parser.engine(request.signal).catch(() => ({ version: '' }))
    const response = failureResponse(failure, version, queryId)
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
    if (!acceptsGzip(request)) return new Response(response.body, { status, headers: response.headers })
    response.headers.set('Content-Encoding', 'gzip')
    return new Response(gzipSync(await response.bytes()), { status, headers: response.headers })
  }

  return async (request, headers) => {
    const { signal } = request
    let queryId: string | undefined
    let query: string | undefined
    try {
      const { caller, body } = await receive(request, headers)
      const statement = await readStatement(body, () => Bun.randomUUIDv7())
      queryId = shownId(statement.queryId)
      query = statement.text
      refuseUnparsable(query)
      const normalForm = await parser.normalForm(query, signal)
      const translated = readRequest(statement, normalForm, await parser.engine(signal))
      query = translated.query
      return await answer(caller, { ...statement, queryId }, translated, signal)
    } catch (error) {
      if (error instanceof ApiError || error instanceof ClickHouseFailure) return fail(error, request, query, queryId)
      throw error
    }
  }
}

/** @throws ClickHouseFailure */
function refuseUnparsable(query: string): void {
  if (query.length > QUERY_LENGTH_MAX)
    throw new ClickHouseFailure(62, 'SYNTAX_ERROR', `Max query size exceeded: ${QUERY_LENGTH_MAX} characters`)
  // The engine could parse it only with its data.
  if (/^\s*INSERT\b/i.test(query)) throw new ClickHouseFailure(164, 'READONLY', 'only SELECT is allowed')
}

/** An unreadable body is a bad argument. Other validation errors are reported to ClickHouse clients as denied access. */
function unreadable(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'VALIDATION_ERROR') return error
  return new ClickHouseFailure(36, 'BAD_ARGUMENTS', error.message)
}

/** The key, from where ClickHouse clients put passwords; undefined if the guard should look for it itself. */
function passwordOf(request: Request): string | undefined {
  if (/^Bearer /i.test(request.headers.get('authorization') ?? '')) return undefined
  return readCredentials(request).password || undefined
}

/** The request with its body inflated. */
function withBody(request: Request, body: Uint8Array): Request {
  const { url } = request
  const headers = new Headers(request.headers)
  headers.delete('content-encoding')
  headers.delete('content-length')
  return body.length === 0
    ? new Request(url, { headers })
    : new Request(url, { method: 'POST', headers, body: body as Uint8Array<ArrayBuffer> })
}

/** The query id is only returned to the client, since two tenants may use the same one. */
function shownId(id: string): string {
  return /^[!-~]{1,200}$/.test(id) ? id : Bun.randomUUIDv7()
}

/**
 * Appends the error to a response that fails midway, and then aborts the connection, so that clients do not take the
 * response for a complete one.
 */
function reportingFailure(
  answer: ReadableStream<Uint8Array>,
  encodeError: (error: ApiError) => Uint8Array,
  isGzip: boolean,
): ReadableStream<Uint8Array> {
  let failure: unknown
  const reported = pulling(answer, async (reader, controller) => {
    try {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    } catch (error) {
      failure = error
      // Without any byte there would be no status either: the connection would only be reset.
      controller.enqueue(encodeError(error instanceof ApiError ? error : new ApiError('INTERNAL', 'internal error')))
      controller.close()
    }
  })
  return pulling(isGzip ? reported.pipeThrough(gzip()) : reported, async (reader, controller) => {
    const { done, value } = await reader.read()
    if (!done) return controller.enqueue(value)
    if (failure === undefined) return controller.close()
    // Time to send the rest: anything unsent when the stream errors is lost, including the reason.
    await Bun.sleep(LINGER_MS)
    controller.error(failure)
  })
}

function gzip() {
  return new CompressionStream('gzip') as ReadableWritablePair<Uint8Array, Uint8Array>
}

/** A stream that takes each chunk from `source` when its own reader wants one. */
function pulling(
  source: ReadableStream<Uint8Array>,
  pull: (
    reader: ReadableStreamDefaultReader<Uint8Array>,
    controller: ReadableStreamDefaultController<Uint8Array>,
  ) => Promise<void>,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream(
    { pull: (controller) => pull(reader, controller), cancel: (reason) => reader.cancel(reason) },
    { highWaterMark: 0 },
  )
}
