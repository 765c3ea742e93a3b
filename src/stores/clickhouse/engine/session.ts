import { ClickHouseFailure } from '../protocol.ts'
import { quote, quoteIdentifier } from '../quoting.ts'
import type { Connect, EngineConnection, Native, NativeResult } from './addon.ts'

/**
 * The class of a statement. The service's statements (`load`: INSERTs with data, `service`: all others) have their own
 * limits and threads, so that tenants' queries cannot delay them.
 */
export type Lane = 'tenant' | 'service' | 'load'

/** One statement with its session settings. */
export interface Job {
  readonly lane: Lane
  readonly text: string
  /** The data of an INSERT whose text ends with its FORMAT. */
  readonly data?: { readonly file: string; readonly bytes: number } | undefined
  readonly database: string
  readonly queryId: string
  readonly format: string
  readonly settings: Readonly<Record<string, string>>
  readonly parameters: Readonly<Record<string, string>>
}

/** Default settings of every session; a request can override them. */
const SESSION_SETTINGS = {
  // chDB accepts `1+1` as SELECT 1+1; a ClickHouse server does not.
  implicit_select: '0',
  // Deduplication requires that a repeated INSERT forms the same blocks.
  input_format_parallel_parsing: '0',
  // Starting its threads takes longer than formatting a short result (measured: 0.75 of 1.5 ms for `SELECT 1`).
  output_format_parallel_formatting: '0',
  // For ClickHouse's own tools only; chDB enables them.
  allow_introspection_functions: '0',
  // The engine keeps no idle threads, so it would start one for each part of a table.
  max_threads_for_indexes: '1',
  // Skip indexes are applied once, before reading. During the read, each thread would evaluate them for its own ranges, which
  // took a search for one run in 10 million events a third more CPU time.
  use_skip_indexes_on_data_read: '0',
}

/** `chdb_query_class` of statements that only read. */
const CLASS_READ = 0
/** `chdb_query_class` of statements that write outside the engine, or act on the session or on other queries. */
const CLASS_CONTROL = 3

/**
 * Runs one statement in a session and gives its result.
 * @throws ClickHouseFailure
 */
export type Ask = (connection: EngineConnection, text: string, format: string) => Promise<Uint8Array<ArrayBuffer>>

/** Runs statements on a pool thread. */
export function onPool(native: Native): Ask {
  return async (connection, text, format) => (await query(native, connection, text, format)).bytes
}

/** Runs statements on the calling thread, which blocks meanwhile. Only for text results. */
export function onThisThread(native: Native): Ask {
  return async (connection, text, format) => {
    try {
      return new Uint8Array(Buffer.from(native.QueryWithConnection(connection, text, format), 'utf8'))
    } catch (error) {
      throw engineFailureOf(error)
    }
  }
}

/**
 * Opens a session with the job's settings, database and parameters. The query id is stored in `log_comment`, the only
 * setting that can hold it.
 *
 * @throws ClickHouseFailure with the engine's code and message
 */
export async function openSession(native: Native, connect: Connect, job: Job, ask: Ask): Promise<EngineConnection> {
  const connection = await connectWith(connect, job, native, ask)
  try {
    await useAndBind(connection, job, ask)
    return connection
  } catch (error) {
    native.CloseConnection(connection)
    throw error
  }
}

async function connectWith(connect: Connect, job: Job, native: Native, ask: Ask): Promise<EngineConnection> {
  try {
    return connect({ ...SESSION_SETTINGS, ...job.settings, log_comment: job.queryId })
  } catch (cause) {
    const plain = connect({})
    try {
      // An invalid value fails the connection without a reason; SET reports the reason.
      const settings = Object.entries(job.settings).map(([name, value]) => `\`${name}\` = ${quote(value)}`)
      if (settings.length > 0) await ask(plain, `SET ${settings.join(', ')}`, 'Null')
    } finally {
      native.CloseConnection(plain)
    }
    throw cause
  }
}

/**
 * Refuses multiple statements and INTO OUTFILE. The classifier runs on the pool that tenants' statements use, so it is
 * called only if the text might contain either.
 *
 * @throws ClickHouseFailure
 */
export async function refuseBadStatement(native: Native, connection: EngineConnection, text: string): Promise<void> {
  const isPlain = /^\s*\w/.test(text) && !/;\s*\S|\bOUTFILE\b/i.test(text)
  if (!isPlain) await classify(native, connection, text)
}

/**
 * Refuses multiple statements and INTO OUTFILE, which the engine would execute although a server must not.
 *
 * @returns whether the statement is known to only read
 * @throws ClickHouseFailure
 */
export async function classify(native: Native, connection: EngineConnection, text: string): Promise<boolean> {
  const { statementCount, queryClass } = await native.DurableClassifyAsync(connection, text, 'default')
  if (statementCount > 1) {
    throw new ClickHouseFailure(62, 'SYNTAX_ERROR', 'Syntax error (Multi-statements are not allowed).')
  }
  if (statementCount === 0 && /^(\s|--[^\n]*(\n|$)|\/\*[\s\S]*?\*\/)*$/.test(text)) {
    throw new ClickHouseFailure(62, 'SYNTAX_ERROR', 'Syntax error: Empty query.')
  }
  if (queryClass === CLASS_CONTROL && /\bOUTFILE\b/i.test(text)) {
    throw new ClickHouseFailure(48, 'NOT_IMPLEMENTED', 'INTO OUTFILE is not allowed.')
  }
  return statementCount === 1 && queryClass === CLASS_READ
}

async function useAndBind(connection: EngineConnection, job: Job, ask: Ask): Promise<void> {
  const parameters = Object.entries(job.parameters).map(([name, value]) => {
    if (!/^\w+$/.test(name)) throw new ClickHouseFailure(36, 'BAD_ARGUMENTS', `Bad parameter name: ${name}`)
    return `param_${name} = ${quote(value)}`
  })
  const statements = [
    ...(job.database === 'default' ? [] : [`USE ${quoteIdentifier(job.database)}`]),
    ...(parameters.length === 0 ? [] : [`SET ${parameters.join(', ')}`]),
  ]
  if (statements.length > 0) await ask(connection, statements.join('; '), 'Null')
}

/** @throws ClickHouseFailure */
export async function query(
  native: Native,
  connection: EngineConnection,
  text: string,
  format: string,
): Promise<NativeResult> {
  try {
    return await native.QueryAsyncConnection(connection, text, format)
  } catch (error) {
    throw engineFailureOf(error)
  }
}

export function engineFailureOf(error: unknown): ClickHouseFailure {
  if (error instanceof ClickHouseFailure) return error
  return ClickHouseFailure.fromText(error instanceof Error ? error.message : String(error))
}
