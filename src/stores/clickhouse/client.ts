import type { ClickHouseSettings } from '@clickhouse/client'
import { parameterText, piecesOf } from './answer-stream.ts'
import type { ColumnarBackend } from './backend.ts'
import { createGate } from './gate.ts'
import { ClickHouseFailure } from './protocol.ts'

const QUERY_TIMEOUT_MS = 30_000
const INSERT_TIMEOUT_MS = 120_000
const PROBE_TIMEOUT_MS = 5_000
/** Reads, and likewise other statements; further ones wait. Loads and streams are limited elsewhere. */
const CALLS_AT_ONCE = 32
/** Each call has a deadline of its own; that of a migration is the longest. */
const SOCKET_TIMEOUT_MS = 3_600_000
const PIECE_BYTES_MIN = 64 * 1024
/** How long reads wait for an engine that is being restarted. */
export const RESTART_PATIENCE_MS = 10_000
const RESTART_POLL_MS = 100
/** A read that has seen this many restarts may be causing them. */
const RESTARTS_MAX = 2

/**
 * Makes a repeated insert recognisable: one thread reads the blocks and always combines them in the same way, whatever
 * the server's profile says. `async_insert` would respond before the rows are stored. Unknown columns are skipped. A repeat
 * also reaches the table's materialized views, because their targets may lack the rows; each skips those that it has.
 */
const INSERT_SETTINGS = {
  async_insert: 0,
  wait_end_of_query: 1,
  insert_deduplicate: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  materialized_views_ignore_errors: 0,
  max_insert_threads: '1',
  max_threads: 1,
  input_format_parallel_parsing: 0,
  input_format_skip_unknown_fields: 1,
  // The word index is built in the background: see the migrations.
  exclude_materialize_skip_indexes_on_insert: 'said',
  min_insert_block_size_rows: '1048576',
  min_insert_block_size_bytes: '268435456',
} as const

/**
 * Settings of what may write on a cluster. An insert is acknowledged once a majority of the replicas has it, because the
 * journal then drops the rows. Quorums of concurrent inserts are independent: every partition has a sink, and with
 * `insert_quorum_parallel = 0` each table would refuse all inserts but one at a time.
 */
const CLUSTER_SETTINGS = {
  insert_quorum: 'auto',
  insert_quorum_parallel: 1,
  // Shorter than the client's deadline, so that the server names the reason.
  insert_quorum_timeout: 60_000,
} as const

/** Settings of every query. */
const CLIENT_SETTINGS = { output_format_json_quote_64bit_integers: 0 } as const

/** Error codes caused by the server's state, not by the statement. */
const ABORTED = 236
const NO_DATA_TO_INSERT = 108
const TRANSIENT_CODES = new Set([
  202, // TOO_MANY_SIMULTANEOUS_QUERIES
  209, // SOCKET_TIMEOUT
  210, // NETWORK_ERROR
  225, // NO_ZOOKEEPER
  ABORTED, // the server is shutting down
  242, // TABLE_IS_READ_ONLY
  243, // NOT_ENOUGH_SPACE
  244, // UNEXPECTED_ZOOKEEPER_ERROR
  252, // TOO_MANY_PARTS
  285, // TOO_FEW_LIVE_REPLICAS
  286, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
  319, // UNKNOWN_STATUS_OF_INSERT
  341, // UNFINISHED: a replica that is down still has to delete
  999, // KEEPER_EXCEPTION
])

/** The service's ClickHouse client. Every call has a deadline and throws {@link ColumnarError} or {@link ColumnarUnavailable}. */
export interface ColumnarClient {
  /** The database that unqualified names mean. */
  readonly database: string
  /** See {@link ColumnarBackend.cluster}. */
  readonly cluster?: string | undefined
  /**
   * Loads rows into a table; resolves once they are durable.
   *
   * @param blocks pieces of one or more `Native` blocks, in order; a few tens of MB at most. Columns missing in a block get
   *   their defaults; columns missing in the table are ignored
   * @param token identifies this load: repeating it with the same blocks changes nothing
   * @param beforeEnd called when all blocks were sent. The load counts only once its end is sent, too; if this throws, nothing
   *   is stored
   */
  insertNative(
    table: string,
    blocks: readonly Uint8Array[],
    token: string,
    signal?: AbortSignal,
    beforeEnd?: () => Promise<void>,
  ): Promise<void>
  /** Rows of a SELECT (without FORMAT), 64-bit integers as numbers. */
  query<Row>(sql: string, options?: QueryOptions): Promise<Row[]>
  /** The result of a SELECT (without FORMAT) as text. */
  queryText(
    sql: string,
    format: 'JSON' | 'JSONCompact' | 'JSONEachRow' | 'TabSeparated',
    options?: QueryOptions,
  ): Promise<string>
  /**
   * Streams the result of a SELECT (without FORMAT) in any of ClickHouse's formats. Resolves when the first piece is
   * available; ending the iteration early ends the query. The iteration throws like every call here if the result is
   * interrupted. The caller sets the deadline with the signal.
   */
  stream(sql: string, format: string, options: StreamedQueryOptions): Promise<AsyncGenerator<Uint8Array, void, void>>
  /** The unparsed result of any statement, tab-separated unless the statement names a format. */
  statementText(sql: string, options?: QueryOptions): Promise<string>
  /** A statement without a result, such as DDL. */
  command(sql: string, options?: QueryOptions): Promise<void>
  /** Loads an empty set of rows, to check that loading works. */
  probeLoading(): Promise<void>
  close(): Promise<void>
}

interface QueryOptions {
  /** Values of `{name:Type}` placeholders. */
  readonly params?: Readonly<Record<string, unknown>> | undefined
  readonly settings?: Readonly<Record<string, string | number>>
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
  /** Replaces the client's database for this statement. */
  readonly database?: string
  /** The workspace that the statement runs for: see `Statement.quotaKey`. */
  readonly quotaKey?: string
}

export interface StreamedQueryOptions extends Omit<QueryOptions, 'timeoutMs'> {
  readonly signal: AbortSignal
  /** Additional placeholder values, already in ClickHouse's text form. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
}

/** ClickHouse refused the statement: retrying it unchanged will not help. */
export class ColumnarError extends Error {
  constructor(
    /** ClickHouse's number for the error, such as 60. */
    readonly code: number,
    /** Its name, such as `UNKNOWN_TABLE`. */
    readonly type: string,
    message: string,
  ) {
    super(message)
    this.name = 'ColumnarError'
  }
}

/** ClickHouse did not respond or is overloaded: the same call may succeed later. */
export class ColumnarUnavailable extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'ColumnarUnavailable'
  }
}

/** @param database the backend's own, unless given */
export function createColumnarClient(backend: ColumnarBackend, database = backend.database): ColumnarClient {
  const { cluster } = backend
  const clusterSettings = cluster === undefined ? {} : CLUSTER_SETTINGS
  const official = officialClient(backend)
  const reads = createGate(CALLS_AT_ONCE, Number.POSITIVE_INFINITY)

  const settingsOf = ({ quotaKey, settings, database: own = database }: QueryOptions) => ({
    database: own,
    ...CLIENT_SETTINGS,
    ...(quotaKey === undefined ? {} : { quota_key: quotaKey }),
    ...settings,
  })
  const queryText: ColumnarClient['queryText'] = (sql, format, options = {}) => {
    // The HTTP status then reports errors; the result is buffered anyway.
    const search = { ...settingsOf(options), default_format: format, wait_end_of_query: 1 }
    return throughRestarts(backend, options.signal, () =>
      within(options.timeoutMs ?? QUERY_TIMEOUT_MS, options.signal, (signal) =>
        reads.run(signal, async () => (await post(backend, search, bodyOf(sql, options), signal)).text()),
      ),
    )
  }
  const statementText = (sql: string, options: QueryOptions = {}) =>
    within(options.timeoutMs ?? QUERY_TIMEOUT_MS, options.signal, (signal) => {
      const settings: ClickHouseSettings = { ...clusterSettings, ...settingsOf(options), wait_end_of_query: 1 }
      return official.text(sql, { ...options.params }, settings, signal)
    })

  const load = (
    table: string,
    blocks: readonly Uint8Array[],
    own: object,
    timeoutMs: number,
    signal?: AbortSignal,
    beforeEnd?: () => Promise<void>,
  ) =>
    within(timeoutMs, signal, async (abort) => {
      const search = {
        query: `INSERT INTO ${table} FORMAT Native`,
        database,
        ...INSERT_SETTINGS,
        ...clusterSettings,
        ...own,
      }
      await (await post(backend, search, streamOf(blocks, beforeEnd), abort)).text()
    })

  return {
    database,
    cluster,
    insertNative: (table, blocks, token, ...rest) =>
      load(table, blocks, { insert_deduplication_token: token }, INSERT_TIMEOUT_MS, ...rest),
    probeLoading: () =>
      load('events', [], {}, PROBE_TIMEOUT_MS).catch((error) => {
        if (!(error instanceof ColumnarError && error.code === NO_DATA_TO_INSERT)) throw error
      }),
    queryText,
    query: async <Row>(sql: string, options: QueryOptions = {}) => rowsOf<Row>(await queryText(sql, 'JSON', options)),
    stream: (sql, format, options) => {
      const { signal } = options
      const explain = (error: unknown) => (signal.aborted ? signal.reason : translate(error))
      const search = { ...settingsOf(options), default_format: format }
      return throughRestarts(backend, signal, () =>
        post(backend, search, bodyOf(sql, options), signal).then(
          (response) => piecesOf(response, explain),
          (error) => Promise.reject(explain(error)),
        ),
      )
    },
    statementText,
    command: async (sql, options) => {
      await statementText(sql, options)
    },
    close: () => official.close(),
  }
}

/** How much of each end of an answer that cannot be read is named. */
const SHOWN_LENGTH = 200

/** @throws Error that shows both ends of the answer if it is no JSON */
function rowsOf<Row>(text: string): Row[] {
  try {
    return (JSON.parse(text) as { data: Row[] }).data
  } catch (cause) {
    const ends = `${text.slice(0, SHOWN_LENGTH)} … ${text.slice(-SHOWN_LENGTH)}`
    throw new Error(`ClickHouse's answer of ${text.length} characters is no JSON: ${ends}`, { cause })
  }
}

/**
 * The official client for the backend's current URL, for statements other than loads and reads. It is imported
 * for the first of them, because that takes 50 ms and 13 MB.
 */
function officialClient(backend: ColumnarBackend) {
  const open = async () => {
    const { ClickHouseError, ClickHouseLogLevel, createClient } = await import('@clickhouse/client')
    const client = createClient({
      url: backend.url,
      username: backend.username,
      password: backend.password,
      max_open_connections: CALLS_AT_ONCE,
      request_timeout: SOCKET_TIMEOUT_MS,
      // A server may refuse long URLs.
      use_multipart_params_auto: true,
      // Errors are thrown, and logged by the caller without the statement's text.
      log: { level: ClickHouseLogLevel.OFF },
    })
    return { client, ClickHouseError }
  }
  let opened: ReturnType<typeof open> | undefined
  let { url } = backend
  const close = async () => {
    const closing = opened
    opened = undefined
    await (await closing)?.client.close()
  }
  return {
    /** @throws ClickHouseFailure an error of the server */
    async text(query: string, params: Record<string, unknown>, settings: ClickHouseSettings, signal: AbortSignal) {
      if (backend.url !== url) void close()
      url = backend.url
      opened ??= open()
      const { client, ClickHouseError } = await opened
      try {
        const sent = { query, query_params: params, clickhouse_settings: settings, abort_signal: signal }
        const { stream } = await client.exec(sent)
        return Buffer.concat(await stream.toArray()).toString('utf8')
      } catch (error) {
        if (!(error instanceof ClickHouseError)) throw error
        throw new ClickHouseFailure(Number(error.code), error.type ?? 'UNKNOWN_EXCEPTION', error.message)
      }
    },
    close,
  }
}

/** @throws the signal's reason, ColumnarError or ColumnarUnavailable */
async function within<T>(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    return await call(signal === undefined ? deadline : AbortSignal.any([deadline, signal]))
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw deadline.aborted
      ? new ColumnarUnavailable(`ClickHouse did not answer within ${timeoutMs} ms`, { cause: error })
      : translate(error)
  }
}

/**
 * Retries a read that met a restart of the engine: one that was interrupted before any of its result was returned, or
 * that could not begin.
 * @throws the error of `read` after too many restarts, or when one takes too long
 */
async function throughRestarts<T>(
  backend: Pick<ColumnarBackend, 'isRestarting'>,
  signal: AbortSignal | undefined,
  read: () => Promise<T>,
): Promise<T> {
  let restarts = 0
  let since = 0
  for (;;) {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof ColumnarUnavailable) || signal?.aborted) throw error
      const wasAborted = codeOf(error.cause) === ABORTED
      if (wasAborted && ++restarts > RESTARTS_MAX) throw error
      const isRestarting = restarts > 0 || backend.isRestarting
      if (since === 0) since = performance.now()
      if (performance.now() - since > RESTART_PATIENCE_MS) throw error
      await Bun.sleep(RESTART_POLL_MS)
      // A connection may be refused some moments before it is known that the engine has ended.
      if (!isRestarting && !backend.isRestarting) throw error
    }
  }
}

/**
 * Sends a load or a read. The official client takes three to five times the CPU time for either, because it goes through
 * `node:http`, and streams without backpressure.
 *
 * @throws ClickHouseFailure an error of the server; any other error means that it was not reached
 */
async function post(
  backend: ColumnarBackend,
  search: Readonly<Record<string, string | number>>,
  body: BodyInit,
  signal: AbortSignal,
): Promise<Response> {
  const parameters = Object.entries(search).map(([name, value]) => [name, String(value)])
  const response = await fetch(`${backend.url}/?${new URLSearchParams(parameters)}`, {
    method: 'POST',
    headers: { 'X-ClickHouse-User': backend.username, 'X-ClickHouse-Key': backend.password },
    body,
    signal,
    // The caller's deadline may be longer than Bun's.
    timeout: false,
  })
  if (response.ok) return response
  const text = await response.text()
  // Something between here and ClickHouse may have answered.
  throw /^Code: \d/.test(text) ? ClickHouseFailure.fromText(text) : new Error(text)
}

/** Placeholder values are fields of a form, because a server may refuse long URLs. */
function bodyOf(
  sql: string,
  { params = {}, parameters = {} }: QueryOptions & Pick<StreamedQueryOptions, 'parameters'>,
): BodyInit {
  const given = Object.entries(params).map(([name, value]) => [name, parameterText(value)])
  const texts = [...given, ...Object.entries(parameters)]
  if (texts.length === 0) return sql
  const body = new FormData()
  body.set('query', sql)
  for (const [name, value] of texts) body.set(`param_${name}`, value)
  return body
}

/**
 * Joins small blocks, because sending a piece takes far longer than copying it, and many commits have one event.
 * @param beforeEnd if it throws, the request is broken off without the chunk that ends it, so the server discards it
 */
function streamOf(blocks: readonly Uint8Array[], beforeEnd?: () => Promise<void>): ReadableStream<Uint8Array> {
  let next = 0
  return new ReadableStream({
    async pull(controller) {
      const first = next
      for (let bytes = 0; next < blocks.length && bytes < PIECE_BYTES_MIN; next++) bytes += blocks[next].length
      if (first === next) {
        await beforeEnd?.()
        controller.close()
      } else controller.enqueue(next - first === 1 ? blocks[first] : Buffer.concat(blocks.slice(first, next)))
    },
  })
}

function translate(error: unknown): Error {
  const code = codeOf(error)
  if (code === undefined) return new ColumnarUnavailable('ClickHouse is not reachable', { cause: error })
  const { message, type } = error as ClickHouseFailure
  return TRANSIENT_CODES.has(code)
    ? new ColumnarUnavailable(message.trim(), { cause: error })
    : new ColumnarError(code, type, message.trim())
}

/** The error code if ClickHouse reported the error; undefined otherwise. */
function codeOf(error: unknown): number | undefined {
  return error instanceof ClickHouseFailure ? error.code : undefined
}
