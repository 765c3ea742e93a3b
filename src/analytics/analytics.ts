import { type ColumnarClient, ColumnarError, ColumnarUnavailable } from '../columnar/client.ts'
import type { SinkProgress } from '../columnar/sink.ts'
import { ApiError, invalid } from '../http/errors.ts'
import { RawJson } from '../http/raw-json.ts'
import { encodeCursor } from '../journal/cursor.ts'
import type { Caller } from '../keys/schema.ts'
import type { AnswerCaps } from './catalogue.ts'
import { createGuard } from './guard.ts'
import { waitUntilReadable } from './position.ts'
import { explainFailure, type QueryCaps } from './problems.ts'
import type { QueryAnswer, RunQuery } from './schema.ts'
import { scopeDatabase, scopedStatement, workspaceFilters } from './views.ts'

/** Tenant SQL (contract section 7). */
export interface Analytics {
  /**
   * Answers one SELECT over the caller's own workspace.
   * @throws ApiError VALIDATION_ERROR for a query that is wrong or not allowed, RATE_LIMITED when too many of the
   *   workspace's run already, UNAVAILABLE when ClickHouse is away
   */
  run(caller: Caller, request: RunQuery, signal: AbortSignal): Promise<QueryAnswer>
  /**
   * Whether `query` may be run at all; what it refers to is only looked up when it is.
   * @throws ApiError VALIDATION_ERROR for a query that does not parse or is not allowed, UNAVAILABLE
   */
  check(query: string, signal: AbortSignal): Promise<void>
  /** What one query may use. */
  readonly caps: AnswerCaps
}

export interface AnalyticsDeps {
  readonly client: ColumnarClient
  /** How far SQL has come behind the journal. */
  readonly sink: SinkProgress
}

const CAPS: QueryCaps = { seconds: 10, memoryBytes: 2 ** 30 }
const ROWS_MAX = 10_000
const RESULT_BYTES_MAX = 32 * 2 ** 20
const DISK_BYTES_MAX = 2 * 2 ** 30
const AT_ONCE_PER_WORKSPACE = 3
/** The engine ends a query at its cap by itself; this one is for an engine that does not answer. */
const DEADLINE_MS = (CAPS.seconds + 5) * 1000

export function createAnalytics({ client, sink }: AnalyticsDeps): Analytics {
  const guard = createGuard(client, (error) => explainFailure(error, CAPS))
  const running = new Map<string, number>()

  const answer = async ({ workspaceId }: Caller, request: RunQuery, signal: AbortSignal): Promise<QueryAnswer> => {
    if (request.wait_for !== undefined) await waitUntilReadable(sink, request.wait_for)
    const query = await guard.check(request.query, signal)
    const completeThrough = encodeCursor(sink.epoch, sink.loadedSeq())
    const startedAt = performance.now()
    const text = await client.queryText(scopedStatement(query, client.database, workspaceId, ROWS_MAX + 1), 'JSON', {
      params: request.params,
      settings: sessionSettings(client.database, workspaceId),
      database: scopeDatabase(client.database),
      timeoutMs: DEADLINE_MS,
      signal,
    })
    const { columns, rows, rowCount, truncated } = readAnswer(text)
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

  return {
    caps: {
      seconds: CAPS.seconds,
      memory_bytes: CAPS.memoryBytes,
      rows: ROWS_MAX,
      result_bytes: RESULT_BYTES_MAX,
      at_once: AT_ONCE_PER_WORKSPACE,
    },
    async check(query, signal) {
      try {
        await guard.check(query, signal)
      } catch (error) {
        throw translate(error)
      }
    },
    async run(caller, request, signal) {
      if ((request.format ?? 'json') !== 'json') throw invalid('format', 'expected json, the only format so far')
      const { workspaceId } = caller
      const others = running.get(workspaceId) ?? 0
      if (others >= AT_ONCE_PER_WORKSPACE) {
        throw new ApiError('RATE_LIMITED', `${others} queries of this workspace are running: wait for one to end`, {
          retryAfterSeconds: 1,
        })
      }
      running.set(workspaceId, others + 1)
      try {
        return await answer(caller, request, signal)
      } catch (error) {
        throw translate(error)
      } finally {
        const left = (running.get(workspaceId) ?? 1) - 1
        if (left === 0) running.delete(workspaceId)
        else running.set(workspaceId, left)
      }
    },
  }
}

/** Third layer around tenant SQL: a session that can only read, sees its own rows and may not use much. */
export function sessionSettings(database: string, workspaceId: string): Record<string, string | number> {
  return {
    readonly: 1,
    additional_table_filters: workspaceFilters(database, workspaceId),
    max_execution_time: CAPS.seconds,
    max_memory_usage: CAPS.memoryBytes,
    max_temporary_data_on_disk_size_for_query: DISK_BYTES_MAX,
    max_result_bytes: RESULT_BYTES_MAX,
    result_overflow_mode: 'throw',
    max_query_size: 2_000_000,
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

/** Takes the engine's `JSON` apart without parsing the rows: their text is the answer's. */
function readAnswer(text: string) {
  const dataAt = text.indexOf(DATA_HEAD)
  const dataEnd = text.lastIndexOf(DATA_TAIL)
  const head = text.slice(0, dataAt).trimEnd().replace(/,$/, '')
  const { meta } = JSON.parse(`${head}}`) as { meta: { name: string; type: string }[] }
  const { rows: count } = JSON.parse(`{${text.slice(dataEnd + DATA_TAIL.length)}`) as { rows: number }
  const rows = text.slice(dataAt + DATA_HEAD.length, dataEnd)
  const truncated = count > ROWS_MAX
  return {
    columns: meta,
    rows: new RawJson(`[${compact(truncated ? rows.slice(0, rows.lastIndexOf(NEXT_ROW)) : rows)}]`),
    rowCount: Math.min(count, ROWS_MAX),
    truncated,
  }
}

/** Line breaks and tabs are escaped inside of strings: those that stand here are the engine's layout. */
function compact(rows: string): string {
  return rows.replace(/[\n\t]+/g, '')
}

/** A line break is escaped inside of strings, so these mean what they say; rows stand two tabs in, their parts further. */
const DATA_HEAD = '\t"data":\n\t['
const DATA_TAIL = '\n\t],\n'
const NEXT_ROW = ',\n\t\t{'

function translate(error: unknown): unknown {
  if (error instanceof ColumnarError) return explainFailure(error, CAPS)
  if (error instanceof ColumnarUnavailable) {
    return new ApiError('UNAVAILABLE', 'SQL is not available just now', { cause: error })
  }
  return error
}
