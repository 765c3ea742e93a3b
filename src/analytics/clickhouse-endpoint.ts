import { gzipSync } from 'node:zlib'
import { ApiError } from '../base/errors.ts'
import { EXCEPTION_TAG_HEADER, exceptionBlock, mintExceptionTag } from '../clickhouse/exception-block.ts'
import {
  acceptsGzip,
  answerHeaders,
  ClickHouseFailure,
  failureResponse,
  readCredentials,
  readStatement,
  type Statement,
} from '../clickhouse/protocol.ts'
import type { BodyReader } from '../http/body.ts'
import type { Guards } from '../keys/guards.ts'
import type { Caller } from '../keys/schema.ts'
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

const LINGER_MS = 2_000

export function createClickHouseEndpoint({ guards, reader, analytics }: ClickHouseEndpointDeps): ClickHouseEndpoint {
  const { parser } = analytics
  const ask = async (statement: Statement, signal: AbortSignal): Promise<ParsedStatement> => {
    if (statement.text.length > QUERY_LENGTH_MAX) throw tooLong()
    // Refused here, because the engine could parse it only with its data.
    if (/^\s*INSERT\b/i.test(statement.text)) throw new ClickHouseFailure(164, 'READONLY', 'only SELECT is allowed')
    const [version, settings] = await Promise.all([parser.version(signal), parser.settings(signal)])
    const normalForm = await parser.normalForm(statement.text, signal)
    return { request: readRequest(statement, normalForm, { version, settings }), version }
  }

  const answer = async (
    caller: Caller,
    statement: Statement,
    { request, version }: ParsedStatement,
    signal: AbortSignal,
  ) => {
    const { body: plain } = await analytics.stream(caller, request, signal)
    const { outputFormat: format, query } = request
    const body = withJsonTail(plain, { format, query, settings: statement.settings })
    const tag = mintExceptionTag()
    const headers: Record<string, string> = {
      ...answerHeaders(statement.queryId, format),
      [EXCEPTION_TAG_HEADER]: tag,
    }
    const reported = reportingFailure(body, (error) => exceptionBlock(tag, refusalOf(error, query).failure, version))
    if (!statement.acceptsGzip) return new Response(cutOff(reported.body, reported), { headers })
    headers['Content-Encoding'] = 'gzip'
    return new Response(cutOff(reported.body.pipeThrough(new CompressionStream('gzip')), reported), { headers })
  }

  const receive = async (request: Request, headers: Record<string, string | number>) => {
    const token = passwordOf(request)
    const { caller, body } = await guards.receive(request, headers, 'workspace', 'queries', { token })
    try {
      return { caller, body: withBody(request, reader.inflate(request, body)) }
    } catch (error) {
      throw unreadable(error)
    } finally {
      body.hold.release()
    }
  }

  const fail = async (error: ApiError | ClickHouseFailure, { request, query, queryId }: Failed): Promise<Response> => {
    const { failure, status, headers } = refusalOf(error, query)
    const version = await parser.version(request.signal).catch(() => '')
    const response = failureResponse(failure, version, queryId)
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
    if (!acceptsGzip(request)) return new Response(response.body, { status, headers: response.headers })
    response.headers.set('Content-Encoding', 'gzip')
    return new Response(gzipSync(await response.bytes()), { status, headers: response.headers })
  }

  return async (request, headers) => {
    let queryId: string | undefined
    let query: string | undefined
    try {
      const { caller, body } = await receive(request, headers)
      const statement = await readStatement(body, () => Bun.randomUUIDv7())
      queryId = shownId(statement.queryId)
      query = statement.text
      const parsed = await ask(statement, request.signal)
      query = parsed.request.query
      return await answer(caller, { ...statement, queryId }, parsed, request.signal)
    } catch (error) {
      if (error instanceof ApiError || error instanceof ClickHouseFailure)
        return fail(error, { request, query, queryId })
      throw error
    }
  }
}

/** An unreadable body is a bad argument. Other validation errors are reported to ClickHouse clients as denied access. */
function unreadable(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'VALIDATION_ERROR') return error
  return new ClickHouseFailure(36, 'BAD_ARGUMENTS', error.message)
}

/** A parsed statement. */
interface ParsedStatement {
  readonly request: StreamQuery
  readonly version: string
}

/** What is known of a request that failed. */
interface Failed {
  readonly request: Request
  readonly query: string | undefined
  readonly queryId: string | undefined
}

function tooLong(): ClickHouseFailure {
  return new ClickHouseFailure(62, 'SYNTAX_ERROR', `Max query size exceeded: ${QUERY_LENGTH_MAX} characters`)
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

interface ReportedFailure {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>
  /** Why the body ended early, if it did. */
  failure: unknown
}

/** Appends the error to a response that fails midway. */
function reportingFailure(
  answer: ReadableStream<Uint8Array>,
  encodeError: (error: ApiError) => Uint8Array,
): ReportedFailure {
  const reader = answer.getReader()
  const reported: ReportedFailure = {
    failure: undefined,
    body: new ReadableStream(
      {
        async pull(controller) {
          try {
            const { done, value } = await reader.read()
            if (done) controller.close()
            else controller.enqueue(value as Uint8Array<ArrayBuffer>)
          } catch (error) {
            reported.failure = error
            if (error instanceof ApiError) controller.enqueue(encodeError(error) as Uint8Array<ArrayBuffer>)
            controller.close()
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    ),
  }
  return reported
}

/** Aborts the connection at the end of a response that failed, so that clients do not take it for a complete one. */
function cutOff(body: ReadableStream<Uint8Array>, reported: ReportedFailure): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        if (reported.failure === undefined) return controller.close()
        // Time to send the rest: anything unsent when the stream errors is lost, including the reason.
        await Bun.sleep(LINGER_MS)
        controller.error(reported.failure)
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
