import { type ColumnarClient, ColumnarError, RESTART_PATIENCE_MS } from '../columnar/client.ts'
import { TENANT_WORKLOAD } from '../columnar/protocol.ts'
import type { SinkProgress } from '../columnar/sink.ts'
import { DEFAULT_QUERY_CAPS, type QueryCaps } from '../config.ts'
import { encodeCursor } from '../journal/cursor.ts'
import type { Caller } from '../keys/schema.ts'
import { EngineTime, Penalties, Places } from './caps.ts'
import type { AnswerCaps } from './catalogue.ts'
import { refuseTypes, STATEMENT_BYTES_MAX } from './guard.ts'
import { readJsonAnswer } from './json-answer.ts'
import { callersError, createQueryParser, type QueryParser } from './parser.ts'
import { WAIT_MAX_MS, waitUntilReadable } from './position.ts'
import { tooLarge, tooLong } from './problems.ts'
import { openResultStream } from './result-stream.ts'
import type { QueryAnswer, RunQuery } from './schema.ts'
import { scopeDatabase, scopedStatement, workspaceFilters } from './views.ts'

/** Tenant SQL (docs/specification.md#sql). */
export interface Analytics {
  /**
   * Answers one SELECT over the caller's own workspace, in JSON.
   * @throws ApiError VALIDATION_ERROR for a query that is wrong or not allowed, RATE_LIMITED when too many of the
   *   workspace's run already, UNAVAILABLE when ClickHouse is away
   */
  run(caller: Caller, request: JsonQuery, signal: AbortSignal): Promise<QueryAnswer>
  /**
   * The same in any format, as it comes: the answer is not held anywhere, so it may be large.
   * @throws as {@link run}, for what goes wrong before there is a first piece of it
   */
  stream(caller: Caller, request: StreamQuery, signal: AbortSignal): Promise<StreamedAnswer>
  /**
   * Whether `query` may be run at all; what it refers to is only looked up when it is.
   * @throws ApiError VALIDATION_ERROR for a query that does not parse or is not allowed, UNAVAILABLE
   */
  check(query: string, signal: AbortSignal): Promise<void>
  /** What the engine says of a query before it is run. */
  readonly parser: QueryParser
  /** What one query may use. */
  readonly caps: AnswerCaps
  /** How long an answer may keep a client waiting for its next byte. */
  readonly idleSeconds: number
}

/** A query whose answer is JSON. */
export type JsonQuery = Omit<RunQuery, 'format'>

/** A query whose answer is streamed. */
export interface StreamQuery extends JsonQuery {
  /** ClickHouse's name of the format. */
  readonly outputFormat: string
  /** Settings of the output, known to be harmless. */
  readonly outputSettings?: Readonly<Record<string, string>>
  /** Values of placeholders in ClickHouse's text form, beside `params`. */
  readonly parameters?: Readonly<Record<string, string>>
  /** The format is one document, which the engine makes as a whole: it holds no more than a JSON answer may. */
  readonly isDocument?: boolean
  /** Rows to leave it at. */
  readonly rows?: number
  /** How long the engine may work on it, if that is less than the cap. */
  readonly seconds?: number
}

export interface StreamedAnswer {
  /** Everything accepted up to this position was readable. */
  readonly completeThrough: string
  /** Errors with an ApiError when the answer breaks off. */
  readonly body: ReadableStream<Uint8Array>
}

export interface AnalyticsDeps {
  readonly client: ColumnarClient
  /** How far SQL has come behind the journal. */
  readonly sink: SinkProgress
  /** The configuration's defaults unless given. */
  readonly caps?: QueryCaps
  /** Workspaces whose queries are refused for a while. */
  readonly penalties?: Penalties
}

const DISK_BYTES_MAX = 2 * 2 ** 30
/** The engine ends a query at its cap by itself, or is restarted; this much later it counts as one that does not answer. */
const PATIENCE_SECONDS = 8
/** Bun allows no more. */
const IDLE_SECONDS_MAX = 255

export function createAnalytics(deps: AnalyticsDeps): Analytics {
  const { client, sink, caps = DEFAULT_QUERY_CAPS, penalties = new Penalties(caps.penaltySeconds) } = deps
  const parser = createQueryParser(client, caps)
  const places = new Places(caps.atOnce)
  // A query may be asked again of an engine that has been restarted.
  const silenceMs = WAIT_MAX_MS + RESTART_PATIENCE_MS + 2 * (caps.seconds + PATIENCE_SECONDS) * 1000
  const take = ({ workspaceId }: Caller) => {
    penalties.check(workspaceId)
    return places.take(workspaceId)
  }

  /** What goes to the engine. @throws ApiError */
  const prepare = async (caller: Caller, request: JsonQuery & Pick<StreamQuery, 'parameters'>, signal: AbortSignal) => {
    if (request.wait_for !== undefined) await waitUntilReadable(sink, request.wait_for, signal)
    const query = await parser.check(request.query, signal)
    refuseTypes(query.typeParameters, request)
    return {
      completeThrough: encodeCursor(sink.epoch, sink.loadedSeq()),
      statement: (rows?: number) => scopedStatement(query, client.database, caller.workspaceId, rows),
    }
  }

  const answer = async (caller: Caller, request: JsonQuery, signal: AbortSignal): Promise<QueryAnswer> => {
    const { statement, completeThrough } = await prepare(caller, request, signal)
    const startedAt = performance.now()
    // One row more than may be: it tells that there are more.
    const text = await client.queryText(statement(caps.rows + 1), 'JSON', {
      params: request.params,
      settings: sessionSettings(client.database, caller.workspaceId, caps),
      database: scopeDatabase(client.database),
      quotaKey: caller.workspaceId,
      timeoutMs: (caps.seconds + PATIENCE_SECONDS) * 1000,
      signal,
    })
    const { columns, rows, rowCount, truncated } = readJsonAnswer(text, caps.rows)
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
    const { rows, isDocument = false, seconds = caps.seconds } = request
    const engineSeconds = Math.min(seconds, caps.seconds)
    const limits: QueryCaps = {
      ...caps,
      seconds: caps.streamSeconds,
      resultBytes: isDocument ? caps.resultBytes : caps.streamBytes,
    }
    const settings = { ...sessionSettings(client.database, caller.workspaceId, limits), ...request.outputSettings }
    const sql = isDocument
      ? refusingRows(statement(Math.min(rows ?? caps.rows + 1, caps.rows + 1)), caps.rows)
      : statement(rows)
    const body = await openResultStream({
      open: (ended) =>
        client.stream(sql, request.outputFormat, {
          params: request.params,
          parameters: request.parameters,
          settings,
          database: scopeDatabase(client.database),
          quotaKey: caller.workspaceId,
          signal: ended,
        }),
      signal,
      engineTime: (onSpent) => new EngineTime(engineSeconds * 1000, onSpent),
      tooLong: tooLong(engineSeconds),
      seconds: caps.streamSeconds,
      explain: (error) => (hasMoreRows(error) ? tooLarge(`${caps.rows} rows`) : callersError(error, limits)),
      onEnd,
    })
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
        throw callersError(error, caps)
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

/** Fails when there are more rows, where they cannot be counted in what the engine sends. */
function refusingRows(statement: string, rows: number): string {
  return `SELECT * FROM (${statement}) WHERE throwIf(rowNumberInAllBlocks() >= ${rows}, '${MORE_ROWS}') = 0`
}

function hasMoreRows(error: unknown): boolean {
  return error instanceof ColumnarError && error.message.startsWith(MORE_ROWS)
}

const MORE_ROWS = 'more rows than a document may have'

/** Third layer around tenant SQL: a session that can only read, sees its own rows and may not use much. */
export function sessionSettings(
  database: string,
  workspaceId: string,
  caps: Pick<QueryCaps, 'seconds' | 'memoryBytes' | 'resultBytes'> = DEFAULT_QUERY_CAPS,
): Record<string, string | number> {
  return {
    workload: TENANT_WORKLOAD,
    readonly: 1,
    additional_table_filters: workspaceFilters(database, workspaceId),
    max_execution_time: caps.seconds,
    max_memory_usage: caps.memoryBytes,
    max_temporary_data_on_disk_size_for_query: DISK_BYTES_MAX,
    max_result_bytes: caps.resultBytes,
    result_overflow_mode: 'throw',
    max_query_size: STATEMENT_BYTES_MAX,
    // The order of the caller's query is the order of the answer, although it is a subquery of ours.
    query_plan_remove_redundant_sorting: 0,
    // Values found by a JSON path may be of any type; comparing and grouping by them is what they are for.
    allow_suspicious_types_in_group_by: 1,
    allow_suspicious_types_in_order_by: 1,
    // {"a": 1, "a": 2} was accepted as a payload, so it must not break a query.
    type_json_skip_duplicated_paths: 1,
    // Text is text, whichever way it is read: a date is one only if the query says so.
    input_format_try_infer_dates: 0,
    input_format_try_infer_datetimes: 0,
    date_time_output_format: 'iso',
    date_time_input_format: 'best_effort',
    cast_string_to_date_time_mode: 'best_effort',
  }
}

/** The names of those: nobody else sets them. */
export const SESSION_SETTINGS: ReadonlySet<string> = new Set(
  Object.keys(sessionSettings('default', '00000000-0000-0000-0000-000000000000')),
)
