import { WorkspaceSlots } from '../../base/workspace-slots.ts'
import { type ColumnarClient, ColumnarError, RESTART_PATIENCE_MS } from '../../stores/clickhouse/client.ts'
import { encodeCursor } from '../../stores/journal/cursor.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import type { Partitions } from '../../tenants/partitions/partition.ts'
import { AGENT_TABLES, type AgentVersionCopies } from './agent-versions.ts'
import { Penalties } from './caps.ts'
import { withFixedTime } from './fixed-time.ts'
import { type CheckedQuery, refuseValues } from './guard.ts'
import { readJsonAnswer } from './json-answer.ts'
import { QueryParser, toCallersError } from './parser.ts'
import { WAIT_MAX_MS, waitUntilReadable } from './position.ts'
import { tooLarge } from './problems.ts'
import { DEFAULT_QUERY_CAPS, type QueryCaps } from './query-caps.ts'
import { openResultStream } from './result-stream.ts'
import type { QueryAnswer, RunQuery } from './schema.ts'
import { sessionSettings } from './session-settings.ts'
import { scopeDatabase, scopedStatement } from './views.ts'

/** A query whose answer is JSON. */
type JsonQuery = Omit<RunQuery, 'format'>

/** A query whose answer is streamed. */
export interface StreamQuery extends JsonQuery {
  /** ClickHouse's name of the format. */
  readonly outputFormat: string
  /** Output settings, all from the allow-list. */
  readonly outputSettings?: Readonly<Record<string, string>> | undefined
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

/** The engine ends a query at its time limit or is restarted. If neither happens within this time, it is unavailable. */
const GRACE_SECONDS = 8
/** Bun's maximum. */
const IDLE_SECONDS_MAX = 255
const UNKNOWN_IDENTIFIER = 47
/** Answers of queries as of a time are parsed in one piece. */
const AS_OF_BYTES_MAX = 2 << 20
/** `latestAsOf` reads a table several times, which must see the same rows. */
const SAME_ROWS = { enable_shared_storage_snapshot_in_query: 1 }
const EXACT_NUMBERS = { output_format_json_quote_64bit_integers: 1, output_format_json_quote_decimals: 1 }
const MORE_ROWS = 'more rows than a document may have'

/** A query that sees only what was known at a time. */
interface AsOfQuery extends Pick<RunQuery, 'query' | 'params'> {
  /** Unix milliseconds. */
  readonly asOf: number
  /** Maximum of rows; more are an error. 0: only the columns are asked for. */
  readonly rows: number
}

/** An answer whose 64-bit integers and decimals are text. */
export interface CompactAnswer {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly unknown[])[]
}

/** Holds a query slot until it is disposed. One query at a time. */
export interface AsOfSession extends Disposable {
  /**
   * Runs a query that sees only what was known at its time, and whose `now()` is that time. So its answer does not depend on
   * when it is asked, once ClickHouse has everything that was accepted by then.
   * @throws ApiError as {@link Analytics.run}; VALIDATION_ERROR for functions whose results may differ
   */
  run(request: AsOfQuery, signal: AbortSignal): Promise<CompactAnswer>
}

/** Whose rows a query sees. */
type Tenant = Pick<Caller, 'workspaceId' | 'partition'>

/** A checked query. */
interface Prepared {
  readonly query: CheckedQuery
  /** The SQL of a query with the scope around it. @param rows maximum rows of its result */
  readonly statement: (query: CheckedQuery, rows?: number) => string
  readonly completeThrough: string
}

/** Tenant SQL (docs/sql.md). */
export class Analytics {
  /** Parses queries without running them. */
  readonly parser: QueryParser
  /** How long a client may wait for the next byte of an answer. */
  readonly idleSeconds: number
  private readonly slots: WorkspaceSlots

  /** @param penalties tracks workspaces whose queries are refused for a while */
  constructor(
    private readonly client: ColumnarClient,
    private readonly partitions: Partitions,
    /** Resource limits of a query. */
    readonly caps: QueryCaps = DEFAULT_QUERY_CAPS,
    private readonly penalties = new Penalties(caps.penaltySeconds),
    /** Undefined: the tables of agents are not updated before a query. */
    private readonly agentVersions?: Pick<AgentVersionCopies, 'update'>,
  ) {
    this.parser = new QueryParser(client, caps)
    this.slots = new WorkspaceSlots(caps.atOnce, { one: 'query', many: 'queries' })
    // Twice the time, because a query is repeated after a restart of the engine.
    const silenceMs = WAIT_MAX_MS + RESTART_PATIENCE_MS + 2 * (caps.seconds + GRACE_SECONDS) * 1000
    this.idleSeconds = Math.min(IDLE_SECONDS_MAX, silenceMs / 1000)
  }

  /**
   * Runs one SELECT over the caller's own workspace and returns JSON.
   * @param rowsMax rows of the answer, if fewer than the cap
   * @throws ApiError VALIDATION_ERROR for a query that is invalid or not allowed, RATE_LIMITED at the workspace's query
   *   concurrency limit, UNAVAILABLE when ClickHouse is unavailable
   */
  async run(
    caller: Caller,
    request: JsonQuery,
    signal: AbortSignal,
    rowsMax: number = this.caps.rows,
  ): Promise<QueryAnswer> {
    const leave = this.enter(caller)
    try {
      return await this.answer(caller, request, signal, Math.min(rowsMax, this.caps.rows))
    } catch (error) {
      throw toCallersError(error, this.caps)
    } finally {
      leave()
    }
  }

  /**
   * Like {@link run}, but streams the answer in any format. It is not buffered, so it may be large.
   * @throws as {@link run}, for failures before the answer starts
   */
  async stream(caller: Caller, request: StreamQuery, signal: AbortSignal): Promise<StreamedAnswer> {
    const leave = this.enter(caller)
    try {
      const prepared = await this.prepare(caller, request, signal)
      const { completeThrough } = prepared
      return { completeThrough, body: await this.open(caller, prepared, request, signal, leave) }
    } catch (error) {
      leave()
      throw error
    }
  }

  /**
   * Takes a query slot of a workspace for one query after the other, each as of a time of its own: see {@link AsOfSession}.
   * @throws ApiError RATE_LIMITED
   */
  asOf(tenant: Tenant): AsOfSession {
    const leave = this.enter(tenant)
    return {
      run: (request, signal) =>
        this.answerAsOf(tenant, request, signal).catch((error: unknown) => {
          throw toCallersError(error, this.caps)
        }),
      [Symbol.dispose]: leave,
    }
  }

  private async answerAsOf(tenant: Tenant, request: AsOfQuery, signal: AbortSignal): Promise<CompactAnswer> {
    const { client } = this
    const { params, asOf, rows } = request
    const query = await this.checked(tenant, request, signal)
    const caps = { ...this.caps, resultBytes: Math.min(this.caps.resultBytes, AS_OF_BYTES_MAX) }
    const { settings, ...session } = this.session(tenant, caps, query)
    const text = await retryWithAllColumns({ ...query, text: withFixedTime(query.text, asOf) }, (checked) =>
      client.queryText(
        scopedStatement(checked, client.database, tenant.workspaceId, { rows: rows && rows + 1, asOf }),
        'JSONCompact',
        {
          ...session,
          settings: { ...settings, ...EXACT_NUMBERS, ...SAME_ROWS },
          params,
          timeoutMs: (caps.seconds + GRACE_SECONDS) * 1000,
          signal,
        },
      ),
    )
    const { meta, data } = JSON.parse(text) as { meta: CompactAnswer['columns']; data: unknown[][] }
    if (data.length > rows) throw tooLarge(`${rows} rows`)
    return { columns: meta, rows: data }
  }

  private enter({ workspaceId }: Tenant): () => void {
    this.penalties.check(workspaceId)
    return this.slots.take(workspaceId)
  }

  /** Checks a query, and brings the tables that it reads up to date. @throws ApiError */
  private async checked(
    { workspaceId }: Tenant,
    request: Pick<StreamQuery, 'query' | 'params' | 'parameters'>,
    signal: AbortSignal,
  ): Promise<CheckedQuery> {
    const query = await this.parser.check(request.query, signal)
    refuseValues(query, request)
    if (query.tables.some((table) => AGENT_TABLES.has(table))) await this.agentVersions?.update(workspaceId, signal)
    return query
  }

  private session({ workspaceId }: Tenant, caps: QueryCaps, query: CheckedQuery) {
    const { database } = this.client
    const settings = sessionSettings(database, workspaceId, caps, query)
    return { settings, database: scopeDatabase(database), quotaKey: workspaceId }
  }

  /** Checks a query and builds its statement. @throws ApiError */
  private async prepare(
    caller: Caller,
    request: JsonQuery & Pick<StreamQuery, 'parameters'>,
    signal: AbortSignal,
  ): Promise<Prepared> {
    const { loading } = this.partitions.of(caller)
    if (request.wait_for !== undefined) await waitUntilReadable(loading, request.wait_for, signal)
    const query = await this.checked(caller, request, signal)
    return {
      query,
      completeThrough: encodeCursor(loading.epoch, loading.loadedSeq()),
      statement: (checked, rows) => scopedStatement(checked, this.client.database, caller.workspaceId, { rows }),
    }
  }

  private async answer(caller: Caller, request: JsonQuery, signal: AbortSignal, rowsMax: number): Promise<QueryAnswer> {
    const { client, caps } = this
    const { query, statement, completeThrough } = await this.prepare(caller, request, signal)
    const startedAt = performance.now()
    // One row more than allowed, to detect that there are more.
    const text = await retryWithAllColumns(query, (checked) =>
      client.queryText(statement(checked, rowsMax + 1), 'JSON', {
        ...this.session(caller, caps, query),
        params: request.params,
        timeoutMs: (caps.seconds + GRACE_SECONDS) * 1000,
        signal,
      }),
    )
    const { columns, rows, rowCount, truncated } = await readJsonAnswer(text, rowsMax)
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

  /**
   * Runs a query and streams its result within the limits of the answer's format, at most one chunk ahead of its reader.
   * The query ends when the reader or the client disconnects, or takes too long.
   *
   * @param onEnd called once when the stream has ended for any reason
   * @returns once the engine has started the answer
   * @throws ApiError for a failure before that
   */
  private async open(
    caller: Caller,
    { query, statement }: Prepared,
    request: StreamQuery,
    signal: AbortSignal,
    onEnd: () => void,
  ): Promise<ReadableStream<Uint8Array>> {
    const { client, caps } = this
    const { rows, isDocument = false } = request
    const engineSeconds = Math.min(request.seconds ?? caps.seconds, caps.seconds)
    const resultBytes = isDocument ? caps.resultBytes : caps.streamBytes
    const limits: QueryCaps = { ...caps, seconds: caps.streamSeconds, resultBytes }
    const session = this.session(caller, limits, query)
    const sql = (checked: CheckedQuery) =>
      isDocument
        ? refusingRows(statement(checked, Math.min(rows ?? caps.rows + 1, caps.rows + 1)), caps.rows)
        : statement(checked, rows)
    const explain = (error: unknown) =>
      hasMoreRows(error) ? tooLarge(`${caps.rows} rows`) : toCallersError(error, limits)
    return openResultStream(
      (ended) =>
        retryWithAllColumns(query, (checked) =>
          client.stream(sql(checked), request.outputFormat, {
            ...session,
            settings: { ...session.settings, ...request.outputSettings },
            params: request.params,
            parameters: request.parameters,
            signal: ended,
          }),
        ),
      { signal, engineSeconds, totalSeconds: caps.streamSeconds, explain, onEnd },
    )
  }
}

/**
 * Runs a query; again with all columns in its scope if it names an unknown one, so that the engine can suggest the right
 * one. The first attempt has failed in its analysis, so nothing was read.
 */
async function retryWithAllColumns<T>(query: CheckedQuery, run: (query: CheckedQuery) => Promise<T>): Promise<T> {
  try {
    return await run(query)
  } catch (error) {
    const isUnknown = error instanceof ColumnarError && error.code === UNKNOWN_IDENTIFIER
    if (!isUnknown || query.usesWholeRows) throw error
    return run({ ...query, usesWholeRows: true })
  }
}

/** Makes the query fail if it has more rows; for formats in which the rows cannot be counted while streaming. */
function refusingRows(statement: string, rows: number): string {
  return `SELECT * FROM (${statement}) WHERE throwIf(rowNumberInAllBlocks() >= ${rows}, '${MORE_ROWS}') = 0`
}

function hasMoreRows(error: unknown): boolean {
  return error instanceof ColumnarError && error.message.startsWith(MORE_ROWS)
}
