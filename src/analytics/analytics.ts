import { type ColumnarClient, ColumnarError, RESTART_PATIENCE_MS } from '../clickhouse/client.ts'
import { encodeCursor } from '../journal/cursor.ts'
import type { Caller } from '../keys/schema.ts'
import type { Partitions } from '../partitions/partition.ts'
import { EngineTime, Penalties, QuerySlots } from './caps.ts'
import type { AnswerCaps } from './catalogue.ts'
import { refuseTypes } from './guard.ts'
import { readJsonAnswer } from './json-answer.ts'
import { createQueryParser, type QueryParser, toCallersError } from './parser.ts'
import { WAIT_MAX_MS, waitUntilReadable } from './position.ts'
import { tooLarge, tooLong } from './problems.ts'
import { DEFAULT_QUERY_CAPS, type QueryCaps } from './query-caps.ts'
import { openResultStream } from './result-stream.ts'
import type { QueryAnswer, RunQuery } from './schema.ts'
import { sessionSettings } from './session-settings.ts'
import { scopeDatabase, scopedStatement } from './views.ts'

/** Tenant SQL (docs/specification.md#sql). */
export interface Analytics {
  /**
   * Runs one SELECT over the caller's own workspace and returns JSON.
   * @throws ApiError VALIDATION_ERROR for a query that is invalid or not allowed, RATE_LIMITED at the workspace's query
   *   concurrency limit, UNAVAILABLE when ClickHouse is unavailable
   */
  run(caller: Caller, request: JsonQuery, signal: AbortSignal): Promise<QueryAnswer>
  /**
   * Like {@link run}, but streams the answer in any format. It is not buffered, so it may be large.
   * @throws as {@link run}, for failures before the answer starts
   */
  stream(caller: Caller, request: StreamQuery, signal: AbortSignal): Promise<StreamedAnswer>
  /**
   * Checks whether `query` is allowed. Names in it are resolved only when it runs.
   * @throws ApiError VALIDATION_ERROR for a query that does not parse or is not allowed, UNAVAILABLE
   */
  check(query: string, signal: AbortSignal): Promise<void>
  /** Parses queries without running them. */
  readonly parser: QueryParser
  /** Resource limits of a query. */
  readonly caps: AnswerCaps
  /** How long a client may wait for the next byte of an answer. */
  readonly idleSeconds: number
}

/** A query whose answer is JSON. */
export type JsonQuery = Omit<RunQuery, 'format'>

/** A query whose answer is streamed. */
export interface StreamQuery extends JsonQuery {
  /** ClickHouse's name of the format. */
  readonly outputFormat: string
  /** Output settings, all from the allow-list. */
  readonly outputSettings?: Readonly<Record<string, string>>
  /** Values of placeholders in ClickHouse's text form, beside `params`. */
  readonly parameters?: Readonly<Record<string, string>>
  /** The engine builds this format in memory as one document, so the limits of a JSON answer apply. */
  readonly isDocument?: boolean
  /** Maximum of rows. */
  readonly rows?: number
  /** Time limit of the engine, if lower than the cap. */
  readonly seconds?: number
}

interface StreamedAnswer {
  /** Everything accepted up to this position was readable by the query. */
  readonly completeThrough: string
  /** Errors with an ApiError when the query fails midway. */
  readonly body: ReadableStream<Uint8Array>
}

interface AnalyticsDeps {
  readonly client: ColumnarClient
  readonly partitions: Partitions
  /** Defaults to the configuration's defaults. */
  readonly caps?: QueryCaps
  /** Tracks workspaces whose queries are refused for a while. */
  readonly penalties?: Penalties
}

/** The engine ends a query at its time limit or is restarted. If neither happens within this time, it is unavailable. */
const GRACE_SECONDS = 8
/** Bun's maximum. */
const IDLE_SECONDS_MAX = 255
const MORE_ROWS = 'more rows than a document may have'

export function createAnalytics(deps: AnalyticsDeps): Analytics {
  const { client, partitions, caps = DEFAULT_QUERY_CAPS, penalties = new Penalties(caps.penaltySeconds) } = deps
  const parser = createQueryParser(client, caps)
  const slots = new QuerySlots(caps.atOnce)
  // Twice the time, because a query is repeated after a restart of the engine.
  const silenceMs = WAIT_MAX_MS + RESTART_PATIENCE_MS + 2 * (caps.seconds + GRACE_SECONDS) * 1000
  const take = ({ workspaceId }: Caller) => {
    penalties.check(workspaceId)
    return slots.take(workspaceId)
  }

  /** Checks a query and builds its statement. @throws ApiError */
  const prepare = async (caller: Caller, request: JsonQuery & Pick<StreamQuery, 'parameters'>, signal: AbortSignal) => {
    const { loading } = partitions.of(caller)
    if (request.wait_for !== undefined) await waitUntilReadable(loading, request.wait_for, signal)
    const query = await parser.check(request.query, signal)
    refuseTypes(query.typeParameters, request)
    return {
      completeThrough: encodeCursor(loading.epoch, loading.loadedSeq()),
      statement: (rows?: number) => scopedStatement(query, client.database, caller.workspaceId, rows),
    }
  }

  const answer = async (caller: Caller, request: JsonQuery, signal: AbortSignal): Promise<QueryAnswer> => {
    const { statement, completeThrough } = await prepare(caller, request, signal)
    const startedAt = performance.now()
    // One row more than allowed, to detect that there are more.
    const text = await client.queryText(statement(caps.rows + 1), 'JSON', {
      params: request.params,
      settings: sessionSettings(client.database, caller.workspaceId, caps),
      database: scopeDatabase(client.database),
      quotaKey: caller.workspaceId,
      timeoutMs: (caps.seconds + GRACE_SECONDS) * 1000,
      signal,
    })
    const { columns, rows, rowCount, truncated } = await readJsonAnswer(text, caps.rows)
    return {
      columns,
      rows,
      row_count: rowCount,
      truncated,
      statistics: {
        elapsed_ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
        rows_read: rowCount,
        bytes_read: Buffer.byteLength(rows.text),
      },
      complete_through: completeThrough,
    }
  }

  const open = async (caller: Caller, request: StreamQuery, signal: AbortSignal, onEnd: () => void) => {
    const { statement, completeThrough } = await prepare(caller, request, signal)
    const body = await openBody({ client, caps, workspaceId: caller.workspaceId, statement, request, signal, onEnd })
    return { completeThrough, body }
  }

  return {
    parser,
    idleSeconds: Math.min(IDLE_SECONDS_MAX, silenceMs / 1000),
    caps: {
      seconds: caps.seconds,
      memory_bytes: caps.memoryBytes,
      rows: caps.rows,
      result_bytes: caps.resultBytes,
      at_once: caps.atOnce,
    },
    check: async (query, signal) => {
      await parser.check(query, signal)
    },
    async run(caller, request, signal) {
      const leave = take(caller)
      try {
        return await answer(caller, request, signal)
      } catch (error) {
        throw toCallersError(error, caps)
      } finally {
        leave()
      }
    },
    async stream(caller, request, signal) {
      const leave = take(caller)
      try {
        return await open(caller, request, signal, leave)
      } catch (error) {
        leave()
        throw error
      }
    },
  }
}

interface BodyOptions {
  readonly client: ColumnarClient
  readonly caps: QueryCaps
  readonly workspaceId: string
  /** The statement of the query, with at most so many rows. */
  readonly statement: (rows?: number) => string
  readonly request: StreamQuery
  readonly signal: AbortSignal
  readonly onEnd: () => void
}

/** Runs a query and streams its result within the limits of the answer's format. */
function openBody(options: BodyOptions): Promise<ReadableStream<Uint8Array>> {
  const { client, caps, workspaceId, statement, request, signal, onEnd } = options
  const { rows, isDocument = false, seconds = caps.seconds } = request
  const engineSeconds = Math.min(seconds, caps.seconds)
  const limits: QueryCaps = {
    ...caps,
    seconds: caps.streamSeconds,
    resultBytes: isDocument ? caps.resultBytes : caps.streamBytes,
  }
  const settings = { ...sessionSettings(client.database, workspaceId, limits), ...request.outputSettings }
  const sql = isDocument
    ? refusingRows(statement(Math.min(rows ?? caps.rows + 1, caps.rows + 1)), caps.rows)
    : statement(rows)
  return openResultStream({
    open: (ended) =>
      client.stream(sql, request.outputFormat, {
        params: request.params,
        parameters: request.parameters,
        settings,
        database: scopeDatabase(client.database),
        quotaKey: workspaceId,
        signal: ended,
      }),
    signal,
    engineTime: (onSpent) => new EngineTime(engineSeconds * 1000, onSpent),
    tooLong: tooLong(engineSeconds),
    seconds: caps.streamSeconds,
    explain: (error) => (hasMoreRows(error) ? tooLarge(`${caps.rows} rows`) : toCallersError(error, limits)),
    onEnd,
  })
}

/** Makes the query fail if it has more rows; for formats in which the rows cannot be counted while streaming. */
function refusingRows(statement: string, rows: number): string {
  return `SELECT * FROM (${statement}) WHERE throwIf(rowNumberInAllBlocks() >= ${rows}, '${MORE_ROWS}') = 0`
}

function hasMoreRows(error: unknown): boolean {
  return error instanceof ColumnarError && error.message.startsWith(MORE_ROWS)
}
