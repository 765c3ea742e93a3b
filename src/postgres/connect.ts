import { Socket } from 'node:net'
import postgres from 'postgres'
import { ApiError } from '../http/errors.ts'
import { encodeJson, RawJson } from '../http/raw-json.ts'
import type { Log } from '../log.ts'

/** What columns of these types are in TypeScript, in both directions: see {@link connectPostgres}. */
interface Types extends Record<string, unknown> {
  bigint: number
  json: unknown
}
export type Sql = postgres.Sql<Types>
export type TransactionSql = postgres.TransactionSql<Types>

export interface ConnectOptions {
  readonly log: Log
  /** Most connections at a time. */
  readonly max?: number
  /** Longest a statement may run, milliseconds; the server ends it then. */
  readonly statementTimeoutMs?: number
  /** Told of each connection that is made (1) or ends (-1). */
  readonly onConnection?: (change: 1 | -1) => void
}

const CONNECTIONS_MAX = 12
const STATEMENT_TIMEOUT_MS = 10_000
const CONNECT_TIMEOUT_MS = 5_000
/** A connection nobody uses is closed, which gives its memory back. Shorter than the time after which silence is death. */
const IDLE_TIMEOUT_MS = 10_000
const SILENCE_FACTOR = 1.5
const RECONNECT_DELAY_SECONDS = 0.025

/**
 * A pool of connections to `url`, which may name a unix socket as libpq's URLs do: `postgres://u:p@localhost/db?host=/dir`.
 * Connects on first use, and again after the server was away. Every statement has a deadline: the server's own, and,
 * for a server that says nothing at all any more, one on the silence of the connection.
 *
 * Columns: `timestamptz` is `Date`; `bigint` is `number` (a value past 2^53 is an error, none of ours gets there); `json`
 * is {@link RawJson}, its text as it was stored. Parameters for `json`: a RawJson, or any value that JSON can say.
 */
export function connectPostgres(url: string, options: ConnectOptions): Sql {
  const { log, max = CONNECTIONS_MAX, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options
  const { plainUrl, socketDir } = splitSocketDir(url)
  const settings: postgres.Options<{ bigint: postgres.PostgresType<number>; json: postgres.PostgresType<unknown> }> = {
    ...(socketDir === undefined ? {} : { host: socketDir }),
    max,
    idle_timeout: Math.min(IDLE_TIMEOUT_MS, statementTimeoutMs) / 1000,
    connect_timeout: Math.min(CONNECT_TIMEOUT_MS, statementTimeoutMs) / 1000,
    backoff: () => RECONNECT_DELAY_SECONDS,
    onnotice: (notice) => log.debug('postgres notice', { notice: notice.message }),
    connection: {
      application_name: 'agent-run-service',
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: statementTimeoutMs,
      TimeZone: 'UTC',
      // Every predicate of ours has an index. Plans are made when tables are empty and kept while they grow: a scan of the
      // whole table, right at first, then cost half of the throughput of run ends (measured) until the next analysis.
      enable_seqscan: 'off',
    },
    types: {
      bigint: { to: 20, from: [20], parse: safeInteger, serialize: String },
      json: { to: 114, from: [114, 3802], parse: (text: string) => new RawJson(text), serialize: encodeJson },
    },
  }
  // The library has no deadline of its own on what the server takes. Its types do not know this option.
  const socket = (parsed: ParsedOptions) => openSocket(parsed, statementTimeoutMs * SILENCE_FACTOR, options)
  return postgres(plainUrl, Object.assign(settings, { socket }))
}

/**
 * Like the pool, but of one connection, for work that goes on all the time: on the pool it would keep every connection
 * there is from being idle, and so from being closed. The library's own LISTEN does the same.
 */
export function singleConnection(pool: Sql): Sql {
  return postgres({ ...pool.options, max: 1 } as never) as unknown as Sql
}

/** Runs `work` in a transaction: committed when it resolves, rolled back when it throws. */
export function inTransaction<T>(sql: Sql, work: (tx: TransactionSql) => Promise<T>): Promise<T> {
  // The library's types lose the column types on the way, and take results that are arrays for lists of promises.
  return sql.begin((tx) => work(tx as unknown as TransactionSql)) as Promise<T>
}

/**
 * The error that a client gets when Postgres cannot do its work at the moment: UNAVAILABLE, with the real one as its
 * cause. Null for any other error. The one place that tells the two apart.
 */
export function unavailableOf(error: unknown): ApiError | null {
  if (isBeingDeleted(error))
    return new ApiError('UNAVAILABLE', 'something this refers to is being deleted; try again', { cause: error })
  if (!isUnavailable(error)) return null
  return new ApiError('UNAVAILABLE', 'the database is not available at the moment; try again', { cause: error })
}

/** What was there when the call was let in is gone, with its workspace: repeated, the call is told so. */
function isBeingDeleted(error: unknown): boolean {
  return error instanceof Error && (error as Error & { code?: unknown }).code === FOREIGN_KEY_VIOLATION
}

const FOREIGN_KEY_VIOLATION = '23503'

/** Whether a statement failed because of the server's or the network's state, so that the same one may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as Error & { code?: unknown }
  if (typeof code !== 'string') return false
  return (
    CONNECTION_CODES.has(code) || UNAVAILABLE_SQLSTATES.some((prefix) => code.length === 5 && code.startsWith(prefix))
  )
}

/** Of the library and of the operating system. */
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
  '53', // out of disk, memory, connections
  '57P', // shutting down, starting up
  '58', // an I/O error
  '57014', // past its deadline
  '25P0', // left idle in a transaction past its deadline
  '25006', // a standby: read only
  '40001', // lost a race with another transaction
  '40P01',
]

interface ParsedOptions {
  readonly path: string | false
  readonly host: readonly string[]
  readonly port: readonly number[]
  /** Null for a connection that waits for notifications, and so may be silent for days. */
  readonly idle_timeout: number | null
}

/**
 * Connects a moment later: the library listens for errors only after this has returned, and the operating system may
 * refuse at once. What the library writes meanwhile is sent when the connection stands.
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
  // What TLS checks the certificate against.
  return Object.assign(socket, { host })
}

function silenceError(silenceMs: number): Error {
  return Object.assign(new Error(`Postgres said nothing for ${silenceMs} ms`), { code: 'ETIMEDOUT' })
}

function safeInteger(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(`a bigint of the database does not fit a number: ${text}`)
}

/** The library does not know `?host=/dir` and would send it to the server. */
function splitSocketDir(url: string): { plainUrl: string; socketDir: string | undefined } {
  const parsed = new URL(url)
  const host = parsed.searchParams.get('host')
  if (host === null || !host.startsWith('/')) return { plainUrl: url, socketDir: undefined }
  parsed.searchParams.delete('host')
  return { plainUrl: parsed.href, socketDir: host }
}
