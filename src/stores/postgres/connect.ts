import { Socket } from 'node:net'
import postgres from 'postgres'
import { ApiError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { encodeJson, RawJson } from '../../base/raw-json.ts'

const FOREIGN_KEY_VIOLATION = '23503'
const UNIQUE_VIOLATION = '23505'

/** Error codes of the library and the operating system. */
const CONNECTION_CODES = new Set([
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

const UNAVAILABLE_SQLSTATES = [
  '08', // connection exceptions
  '53', // out of disk space, memory or connections
  '57P', // shutting down, starting up
  '58', // an I/O error
  '57014', // statement timeout
  '25P0', // idle in transaction timeout
  '25006', // a standby: read only
  '40001', // serialization failure
  '40P01', // deadlock
]
const CONNECTIONS_MAX = 12
const STATEMENT_TIMEOUT_MS = 10_000
const ROWS_PER_SWEEP = 10_000
const CONNECT_TIMEOUT_MS = 10_000
/** Idle connections are closed to release their memory. Shorter than the silence timeout, which closes with an error. */
const IDLE_TIMEOUT_MS = 10_000
const SILENCE_FACTOR = 1.5
/** The server ends a session that has been idle for this many times as long as the pool keeps one. */
const IDLE_FACTOR = 3
/** Whoever holds a lock of a session may not count on it after as long without a statement. */
export const IDLE_SESSION_MS = IDLE_FACTOR * IDLE_TIMEOUT_MS
const RECONNECT_DELAY_SECONDS = 0.025

/** TypeScript types of these column types, in both directions: see {@link connectPostgres}. */
interface Types extends Record<string, unknown> {
  bigint: number
  json: unknown
}
export type Sql = postgres.Sql<Types>
export type TransactionSql = postgres.TransactionSql<Types>
/** A part of a statement. */
export type Fragment = postgres.Fragment

interface ConnectOptions {
  readonly log: Log
  /** Maximum number of connections. */
  readonly max?: number
  /** Statement timeout in milliseconds, enforced by the server. */
  readonly statementTimeoutMs?: number
  /** Called when a connection is opened (1) or closed (-1). */
  readonly onConnection?: (change: 1 | -1) => void
}

/**
 * A connection pool for `url`, which may name a unix socket like libpq's URLs: `postgres://u:p@localhost/db?host=/dir`.
 * Connects on first use and reconnects automatically. Every statement has two deadlines: the server's statement timeout,
 * and a timeout on a silent connection for a server that does not respond at all.
 *
 * Columns: `timestamptz` is `Date`; `bigint` is `number` (a value past 2^53 is an error); `json` is {@link RawJson}, the
 * text as it was stored. Parameters for `json`: a RawJson, or any value that JSON can represent.
 */
export function connectPostgres(url: string, options: ConnectOptions): Sql {
  const { log, max = CONNECTIONS_MAX, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options
  const { plainUrl, socketDir } = splitSocketDir(url)
  const idleMs = Math.min(IDLE_TIMEOUT_MS, statementTimeoutMs)
  const settings: postgres.Options<{ bigint: postgres.PostgresType<number>; json: postgres.PostgresType<unknown> }> = {
    ...(socketDir === undefined ? {} : { host: socketDir }),
    max,
    idle_timeout: idleMs / 1000,
    connect_timeout: Math.min(CONNECT_TIMEOUT_MS, statementTimeoutMs) / 1000,
    backoff: () => RECONNECT_DELAY_SECONDS,
    onnotice: (notice) => log.debug('postgres notice', { notice: notice.message }),
    connection: {
      application_name: 'agent-run-service',
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: statementTimeoutMs,
      // The pool closes idle connections before. A process that is frozen or cut off closes none, and the server would keep
      // what its session has locked for two hours.
      idle_session_timeout: idleMs * IDLE_FACTOR,
      TimeZone: 'UTC',
      // Every predicate has an index. Plans that were made for empty tables are kept while the tables grow: sequential
      // scans then cost half of the throughput of run ends (measured) until the next ANALYZE.
      enable_seqscan: 'off',
    },
    types: {
      bigint: { to: 20, from: [20], parse: safeInteger, serialize: String },
      json: { to: 114, from: [114, 3802], parse: (text: string) => new RawJson(text), serialize: encodeJson },
    },
  }
  // The library has no timeout for an unresponsive server. Its types lack the `socket` option.
  const socket = (parsed: ParsedOptions) => openSocket(parsed, statementTimeoutMs * SILENCE_FACTOR, options)
  return postgres(plainUrl, Object.assign(settings, { socket }))
}

/**
 * Like the pool, but with one connection, for constant background work: on the pool it would use all connections in
 * turn, so that none is idle long enough to be closed. The library's LISTEN does the same.
 */
export function singleConnection(pool: Sql): Sql {
  return postgres({ ...pool.options, max: 1 } as never) as unknown as Sql
}

/** Runs `work` in a transaction: committed when it resolves, rolled back when it throws. */
export function inTransaction<T>(sql: Sql, work: (tx: TransactionSql) => Promise<T>): Promise<T> {
  // The library's types lose the column types on the way, and take results that are arrays for lists of promises.
  return sql.begin((tx) => work(tx as unknown as TransactionSql)) as Promise<T>
}

/** Deletes rows in short statements. @param deleteSome deletes at most `limit` of them @returns how many were deleted */
export async function sweepRows(
  deleteSome: (limit: number) => PromiseLike<{ readonly count: number }>,
): Promise<number> {
  for (let swept = 0; ; ) {
    const { count } = await deleteSome(ROWS_PER_SWEEP)
    swept += count
    if (count < ROWS_PER_SWEEP) return swept
  }
}

/**
 * A member of rows as a parameter, an array of JSON. A single value is passed as it is: in the text of an array it would be
 * escaped, and so copied several times, which takes long for megabytes.
 */
export function jsonArray<Name extends string>(
  sql: Sql | TransactionSql,
  rows: readonly { readonly [Member in Name]: RawJson | null }[],
  name: Name,
) {
  const values = rows.map((row) => row[name])
  return values.length === 1 ? sql`array[${values[0]}::json]` : sql`${values}::json[]`
}

/** Runs `work` in a transaction that is rolled back: it has no effect, but throws what `work` throws. */
export async function withoutEffect(sql: Sql, work: (tx: TransactionSql) => Promise<unknown>): Promise<void> {
  const done = new Error('rolled back')
  await inTransaction(sql, async (tx) => {
    await work(tx)
    throw done
  }).catch((error: unknown) => {
    if (error !== done) throw error
  })
}

/**
 * The error for the client when Postgres is temporarily unable to serve the statement: UNAVAILABLE, with the original
 * error as its cause. Null for any other error. This is the only place that makes the distinction.
 */
export function unavailableOf(error: unknown): ApiError | null {
  // A resource was deleted during the call, with its workspace. A repeated call gets the proper error.
  if (codeOf(error) === FOREIGN_KEY_VIOLATION)
    return new ApiError('UNAVAILABLE', 'a resource that this call refers to is being deleted; try again', {
      cause: error,
    })
  if (!isUnavailable(error)) return null
  return new ApiError('UNAVAILABLE', 'the database is not available at the moment; try again', { cause: error })
}

/** Whether a statement failed because of the values it was given (SQLSTATE class 22), so that it always fails. */
export function isBadData(error: unknown): boolean {
  return /^22\w{3}$/.test(codeOf(error) ?? '')
}

/** {@link isBadData}, or because of what the values would make of a row: a limit (class 54), a null or a failed check. */
export function isPoison(error: unknown): boolean {
  return isBadData(error) || /^(54\w{3}|23502|23514)$/.test(codeOf(error) ?? '')
}

/** Whether a statement failed because a unique index already has its value, such as a name that is taken. */
export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === UNIQUE_VIOLATION
}

/** Whether a statement failed because another row refers to the one that it deletes, or because the one it refers to is gone. */
export function isForeignKeyViolation(error: unknown): boolean {
  return codeOf(error) === FOREIGN_KEY_VIOLATION
}

/** Whether a statement failed because of the state of the server or network, so that it may succeed later. */
export function isUnavailable(error: unknown): boolean {
  const code = codeOf(error)
  if (code === undefined) return false
  return (
    CONNECTION_CODES.has(code) || UNAVAILABLE_SQLSTATES.some((prefix) => code.length === 5 && code.startsWith(prefix))
  )
}

/** The error code of the library, the operating system or the server; undefined for any other error. */
function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

interface ParsedOptions {
  readonly path: string | false
  readonly host: readonly string[]
  readonly port: readonly number[]
  /** Null for a connection that waits for notifications and may be silent for days. */
  readonly idle_timeout: number | null
}

/**
 * Connects after this has returned: only then does the library listen for errors, and the operating system may refuse
 * immediately. Data that the library writes meanwhile is sent once the connection is open.
 */
function openSocket(options: ParsedOptions, silenceMs: number, { onConnection }: ConnectOptions) {
  const [host = 'localhost'] = options.host
  const socket = new Socket()
  setImmediate(() => {
    if (options.path) socket.connect(options.path)
    else socket.connect(options.port[0] ?? 5432, host)
  })
  if (options.idle_timeout !== null) {
    socket.setTimeout(silenceMs, () => socket.destroy(silenceError(silenceMs)))
  }
  if (onConnection !== undefined) {
    socket.once('connect', () => {
      onConnection(1)
      socket.once('close', () => onConnection(-1))
    })
  }
  // TLS verifies the certificate against this host.
  return Object.assign(socket, { host })
}

function silenceError(silenceMs: number): Error {
  return Object.assign(new Error(`no response from Postgres for ${silenceMs} ms`), { code: 'ETIMEDOUT' })
}

function safeInteger(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(`a bigint value exceeds the safe integer range: ${text}`)
}

/** The library does not support `?host=/dir` and would send it to the server. */
function splitSocketDir(url: string): { plainUrl: string; socketDir: string | undefined } {
  const parsed = new URL(url)
  const host = parsed.searchParams.get('host')
  if (host === null || !host.startsWith('/')) return { plainUrl: url, socketDir: undefined }
  parsed.searchParams.delete('host')
  return { plainUrl: parsed.href, socketDir: host }
}
