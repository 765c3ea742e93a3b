import { timingSafeEqual } from 'node:crypto'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../../base/log.ts'
import { EXCEPTION_TAG_HEADER, exceptionBlock, mintExceptionTag } from '../exception-block.ts'
import {
  answerHeaders,
  authenticationFailed,
  ClickHouseFailure,
  failureResponse,
  outputFormat,
  readCredentials,
  readStatement,
  resultTooLarge,
  type Statement,
  TENANT_WORKLOAD,
} from '../protocol.ts'
import type { Engine } from './chdb.ts'
import type { Lanes } from './lanes.ts'
import { QueryDeadline, type StuckAfter } from './query-deadline.ts'
import { engineFailureOf, type Job, type Lane } from './session.ts'
import type { Statements } from './statements.ts'
import { createStitcher } from './stitch.ts'
import type { EngineStream } from './threads.ts'

interface AnswerContext {
  readonly engine: Engine
  readonly lanes: Lanes
  readonly statements: Statements
  /** Directory for the data of inserts while they run. */
  readonly uploads: string
  readonly password: string
  readonly tenantStuckAfter: StuckAfter
  readonly log: Log
}

/** The service's statements are known to end, and some wait for merges. */
const SERVICE_STUCK_AFTER = { busyMs: 30_000, latestMs: 30_000 }

const CANCELLED = new ClickHouseFailure(394, 'QUERY_WAS_CANCELLED', 'Query was cancelled.')

/** The engine's own limit is a fallback for a KILL that fails, because it may silently drop the last blocks. */
const ENGINE_GRACE_SECONDS = 5

/** Handles a request of ClickHouse's HTTP protocol. Errors become responses. */
export async function answer(request: Request, context: AnswerContext): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  if (request.method === 'GET' && (pathname === '/ping' || search === '')) return new Response('Ok.\n')
  let queryId: string | undefined
  try {
    const { username, password } = readCredentials(request)
    if (!sameText(password, context.password)) throw authenticationFailed(username)
    const statement = await readStatement(request, () => Bun.randomUUIDv7())
    queryId = statement.queryId
    return await context.statements.during(statement.quotaKey, () => carryOut(request, statement, context))
  } catch (error) {
    if (!(error instanceof ClickHouseFailure)) context.log.error('engine request failed', { error })
    return failureResponse(engineFailureOf(error), context.engine.version, queryId)
  }
}

async function carryOut(request: Request, statement: Statement, context: AnswerContext): Promise<Response> {
  const format = outputFormat(statement.text, statement.defaultFormat)
  const streamed = isStreamed(statement, format) ? await stream(request, statement, format, context) : undefined
  if (streamed !== undefined) return streamed
  const place = { lane: laneOf(statement), quotaKey: statement.quotaKey }
  return context.lanes.run(place, request.signal, () => execute(request, statement, format, context))
}

function laneOf({ hasData, settings }: Statement): Lane {
  if (settings.workload === TENANT_WORKLOAD) return 'tenant'
  return hasData ? 'load' : 'service'
}

function deadlineOf(statement: Statement, { engine, statements, tenantStuckAfter }: AnswerContext): QueryDeadline {
  const { queryId, quotaKey } = statement
  return new QueryDeadline(
    () => engine.kill(queryId),
    laneOf(statement) === 'tenant' ? tenantStuckAfter : SERVICE_STUCK_AFTER,
    (wasBusy) => statements.stuck(quotaKey, wasBusy),
  )
}

async function execute(
  request: Request,
  statement: Statement,
  format: string,
  context: AnswerContext,
): Promise<Response> {
  const { engine, uploads } = context
  const data = statement.hasData ? await receive(request, uploads) : undefined
  const deadline = deadlineOf(statement, context)
  try {
    deadline.limit(secondsOf(statement))
    // An INSERT with received data continues after its client disconnects: a repeat is then recognised and cheap.
    if (data === undefined) deadline.follow(request.signal)
    const result = await deadline.during(() => engine.run({ ...jobOf(statement, format), data }))
    // The engine enforces this limit only when it serves clients directly.
    refuseTooLarge(statement, result.bytes.length)
    const headers = answerHeaders(statement.queryId, format, result)
    return new Response(result.bytes, { headers })
  } finally {
    deadline.end()
    if (data !== undefined) rmSync(data.file, { force: true })
  }
}

/** Results with totals or extremes are not streamed: they follow the rows in a form that cannot be joined. */
function isStreamed({ text, hasData, waitsForEnd, settings }: Statement, format: string): boolean {
  if (hasData || waitsForEnd || createStitcher(format) === undefined) return false
  return (
    !/\bTOTALS\b/i.test(text) && (settings.extremes ?? '0') === '0' && !('output_format_json_array_of_rows' in settings)
  )
}

/**
 * Responds with the first bytes of the result and sends the rest as the client reads.
 * @returns undefined, without having run anything, if the statement has no result to stream
 */
function stream(
  request: Request,
  statement: Statement,
  format: string,
  context: AnswerContext,
): Promise<Response | undefined> {
  const { engine, lanes, log } = context
  const answered = Promise.withResolvers<Response | undefined>()
  const deadline = deadlineOf(statement, context)
  const run = async () => {
    let result: EngineStream | undefined
    try {
      deadline.limit(secondsOf(statement))
      deadline.follow(request.signal)
      await deadline.during(async () => {
        result = await engine.stream(jobOf(statement, format))
      })
      if (result === undefined) return answered.resolve(undefined)
      const tag = mintExceptionTag()
      const { body, finished } = await send(result, deadline, statement, tag, engine.version)
      const headers = { ...answerHeaders(statement.queryId, format), [EXCEPTION_TAG_HEADER]: tag }
      answered.resolve(new Response(body, { headers }))
      const failure = await finished
      if (failure !== undefined) log.debug('a streamed result failed', { code: failure.code, type: failure.type })
    } finally {
      if (result !== undefined) await deadline.close(result)
    }
  }
  void lanes
    .run({ lane: 'stream', quotaKey: statement.quotaKey }, request.signal, run)
    .catch(answered.reject)
    .finally(() => deadline.end())
  return answered.promise
}

/**
 * The body of a streamed response, once its first bytes are there, so that an early failure gets its own response.
 *
 * @returns also a promise of the failure after the response had begun, if any
 * @throws ClickHouseFailure
 */
async function send(result: EngineStream, deadline: QueryDeadline, statement: Statement, tag: string, version: string) {
  const finished = Promise.withResolvers<ClickHouseFailure | undefined>()
  // A reader may stall: its query ends at its deadline all the same.
  void deadline.cancelled.then(finished.resolve)
  let sentBytes = 0
  const next = async () => {
    const piece = await deadline.during(() => result.next())
    sentBytes += piece?.length ?? 0
    refuseTooLarge(statement, sentBytes)
    return piece
  }
  let first = await next()
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const piece = first ?? (await next())
      first = undefined
      if (piece !== undefined) return controller.enqueue(piece)
      controller.close()
      finished.resolve(undefined)
    } catch (error) {
      // The exception block marks the result as incomplete. Aborting the connection as well could lose the block.
      const failure = engineFailureOf(error)
      controller.enqueue(exceptionBlock(tag, failure, version))
      controller.close()
      finished.resolve(failure)
    }
  }
  const body = new ReadableStream({ pull, cancel: () => deadline.cancel(CANCELLED) }, { highWaterMark: 0 })
  return { body, finished: finished.promise }
}

function secondsOf({ settings }: Statement): number {
  return Number(settings.max_execution_time ?? 0)
}

function jobOf(statement: Statement, format: string): Job {
  const { settings } = statement
  const seconds = secondsOf(statement)
  const limited = seconds > 0 ? { ...settings, max_execution_time: String(seconds + ENGINE_GRACE_SECONDS) } : settings
  return { ...statement, lane: laneOf(statement), settings: limited, database: statement.database ?? 'default', format }
}

function refuseTooLarge({ settings }: Statement, bytes: number): void {
  const max = Number(settings.max_result_bytes ?? 0)
  if (max > 0 && bytes > max) throw resultTooLarge(max)
}

/**
 * Writes the data of an INSERT to a file, because the engine reads binary formats only from files. It is written on this
 * thread, because the pool's threads have a lower priority: see `nice.ts`.
 */
async function receive(request: Request, uploads: string): Promise<Required<Job>['data']> {
  const path = join(uploads, Bun.randomUUIDv7())
  const file = openSync(path, 'wx', 0o600)
  let bytes = 0
  try {
    for await (const chunk of request.body ?? []) {
      for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at)
      bytes += chunk.length
    }
    return { file: path, bytes }
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/** Compares in constant time. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
