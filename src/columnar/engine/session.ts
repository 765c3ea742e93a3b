import { ClickHouseFailure } from '../protocol.ts'
import type { Connect, Connection, Native, NativeResult } from './addon.ts'

/** One statement and what it runs with. */
export interface Job {
  readonly text: string
  /** File with the data of an INSERT whose text ends with its FORMAT. */
  readonly dataFile?: string
  readonly database: string
  readonly queryId: string
  readonly format: string
  readonly settings: Readonly<Record<string, string>>
  readonly parameters: Readonly<Record<string, string>>
}

/** What every session of ours starts with, unless a request says otherwise. */
const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  // `1+1` is not a statement on a server; chDB lets it pass for SELECT 1+1.
  implicit_select: '0',
  // Blocks of an INSERT must come out the same way each time, or a deduplication token would not recognise a repeat.
  input_format_parallel_parsing: '0',
  // Only for the tools of ClickHouse itself; chDB turns it on.
  allow_introspection_functions: '0',
}

/** `chdb_query_class` of statements that only read. */
const CLASS_READ = 0
/** Of those that write outside the engine, or act on the session or on other queries. */
const CLASS_CONTROL = 3

/**
 * A session with the job's settings, database and parameters, for exactly one statement. The query id goes into
 * `log_comment`, the one place a session can carry it.
 *
 * @returns also whether the statement only reads
 * @throws ClickHouseFailure with the engine's code and message
 */
export async function openSession(
  native: Native,
  connect: Connect,
  job: Job,
): Promise<{ connection: Connection; isRead: boolean }> {
  const connection = await connectWith(native, connect, job)
  try {
    const isRead = await refuseBadStatement(native, connection, job.text)
    await useAndBind(native, connection, job)
    return { connection, isRead }
  } catch (error) {
    native.CloseConnection(connection)
    throw error
  }
}

async function connectWith(native: Native, connect: Connect, job: Job): Promise<Connection> {
  try {
    return connect({ ...SESSION_SETTINGS, ...job.settings, log_comment: job.queryId })
  } catch (cause) {
    const plain = connect({})
    try {
      // A bad value fails the connection without a reason; SET tells it.
      const settings = Object.entries(job.settings).map(([name, value]) => `\`${name}\` = ${quote(value)}`)
      if (settings.length > 0) await query(native, plain, `SET ${settings.join(', ')}`, 'Null')
    } finally {
      native.CloseConnection(plain)
    }
    throw cause
  }
}

/** The engine runs every statement of a text and may write files as a client would: neither is for a server. */
async function refuseBadStatement(native: Native, connection: Connection, text: string): Promise<boolean> {
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

async function useAndBind(native: Native, connection: Connection, job: Job): Promise<void> {
  const parameters = Object.entries(job.parameters).map(([name, value]) => {
    if (!/^\w+$/.test(name)) throw new ClickHouseFailure(36, 'BAD_ARGUMENTS', `Bad parameter name: ${name}`)
    return `param_${name} = ${quote(value)}`
  })
  const statements = [
    ...(job.database === 'default' ? [] : [`USE ${quoteIdentifier(job.database)}`]),
    ...(parameters.length === 0 ? [] : [`SET ${parameters.join(', ')}`]),
  ]
  if (statements.length > 0) await query(native, connection, statements.join('; '), 'Null')
}

/** @throws ClickHouseFailure */
export async function query(
  native: Native,
  connection: Connection,
  text: string,
  format: string,
): Promise<NativeResult> {
  try {
    return await native.QueryAsyncConnection(connection, text, format)
  } catch (error) {
    throw failureOf(error)
  }
}

export function failureOf(error: unknown): ClickHouseFailure {
  if (error instanceof ClickHouseFailure) return error
  return ClickHouseFailure.fromText(error instanceof Error ? error.message : String(error))
}

export function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0')}'`
}

function quoteIdentifier(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}
