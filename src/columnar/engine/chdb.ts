import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { resolveLibchdb } from 'chdb/libchdb'
import { ClickHouseFailure } from '../protocol.ts'
import { trimCode } from './trim.ts'

/**
 * The engine in this process. One session a statement: settings, parameters and the current database of a request
 * end with it.
 */
export interface Engine {
  readonly version: string
  /**
   * Runs exactly one statement.
   * @throws ClickHouseFailure with the engine's code and message
   */
  run(job: Job): Promise<Outcome>
  /** Cancels the running statement of that id, if there is one. */
  kill(queryId: string): Promise<void>
}

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

export interface Outcome {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly rowsRead: number
  readonly bytesRead: number
  readonly rowsWritten: number
  readonly bytesWritten: number
  readonly elapsedSeconds: number
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

/**
 * Opens the engine on a directory, which it locks.
 * @throws Error when the directory is in use or not readable, or this platform has no engine
 */
export function openEngine(directory: string, configFile: string): Engine {
  const library = realpathSync(resolveLibchdb().path)
  // The addon itself, not the package's `Session`: that one runs parameterised queries one at a time and hides the
  // classifier that tells how many statements a text holds.
  const native = createRequire(import.meta.url)(join(dirname(library), 'chdb_node.node')) as Native
  const connect = (settings: Readonly<Record<string, string>>): Connection =>
    native.CreateConnection(directory, [
      `--config-file=${configFile}`,
      ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
    ])
  // Never closed: the engine ends with its last connection, and so with the process.
  const keeper = connect({})
  const version = native.QueryWithConnection(keeper, 'SELECT version()', 'TabSeparated').trim()
  const settingNames = new Set(
    native.QueryWithConnection(keeper, 'SELECT name FROM system.settings', 'TabSeparated').trim().split('\n'),
  )

  trimCode(library)

  async function run(job: Job): Promise<Outcome> {
    for (const name of Object.keys(job.settings)) if (!settingNames.has(name)) throw unknownSetting(name)
    const connection = await openSession(native, connect, job)
    try {
      await refuseBadStatement(native, connection, job.text)
      await useAndBind(native, connection, job)
      if (job.dataFile === undefined) return await select(native, connection, job)
      return await insertFile(native, connection, job.text, job.dataFile)
    } finally {
      native.CloseConnection(connection)
    }
  }

  return {
    version,
    run,
    kill: async (queryId) => {
      await query(native, keeper, `KILL QUERY WHERE Settings['log_comment'] = ${quote(queryId)} ASYNC`, 'Null')
    },
  }
}

/** A session with the job's settings. The query id goes into `log_comment`, the one place a session can carry it. */
async function openSession(native: Native, connect: Connect, job: Job): Promise<Connection> {
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
async function refuseBadStatement(native: Native, connection: Connection, text: string): Promise<void> {
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

async function select(native: Native, connection: Connection, job: Job): Promise<Outcome> {
  const result = await query(native, connection, job.text, job.format)
  // The engine knows this limit only where it serves clients by itself.
  const bytesMax = Number(job.settings.max_result_bytes ?? 0)
  if (bytesMax > 0 && result.bytes.length > bytesMax) {
    throw new ClickHouseFailure(396, 'TOO_MANY_ROWS_OR_BYTES', `Limit for result exceeded, max bytes: ${bytesMax}`)
  }
  return {
    bytes: result.bytes,
    rowsRead: result.rowsRead,
    bytesRead: result.bytesRead,
    rowsWritten: 0,
    bytesWritten: 0,
    elapsedSeconds: result.elapsed,
  }
}

/** Reads the data as a ClickHouse client does with `FROM INFILE`: any format, defaults for missing columns, one block after the other. */
async function insertFile(native: Native, connection: Connection, text: string, file: string): Promise<Outcome> {
  const normal = await query(native, connection, `SELECT formatQuerySingleLine(${quote(text)})`, 'TSVRaw')
  const statement = Buffer.from(normal.bytes).toString('utf8').trim()
  const match = /^(.*?)( SETTINGS (?:(?!.* SETTINGS ).*?))? FORMAT (\w+)$/s.exec(statement)
  if (match === null) throw new ClickHouseFailure(62, 'SYNTAX_ERROR', 'Syntax error: expected INSERT … FORMAT name.')
  const [, into, settings = '', format] = match
  try {
    const infile = `${into} FROM INFILE ${quote(file)} COMPRESSION 'none'${settings} FORMAT ${format}`
    const result = await native.InsertRawAsyncConnection(connection, infile, Buffer.from('\n'), false)
    return {
      bytes: new Uint8Array(0),
      rowsRead: result.rowsWritten,
      bytesRead: result.bytesWritten,
      rowsWritten: result.rowsWritten,
      bytesWritten: result.bytesWritten,
      elapsedSeconds: result.elapsed,
    }
  } catch (error) {
    throw failureOf(error)
  }
}

async function query(native: Native, connection: Connection, text: string, format: string): Promise<NativeResult> {
  try {
    return await native.QueryAsyncConnection(connection, text, format)
  } catch (error) {
    throw failureOf(error)
  }
}

function failureOf(error: unknown): ClickHouseFailure {
  return ClickHouseFailure.fromText(error instanceof Error ? error.message : String(error))
}

function unknownSetting(name: string): ClickHouseFailure {
  return new ClickHouseFailure(
    115,
    'UNKNOWN_SETTING',
    `Setting ${name} is neither a builtin setting nor started with the prefix 'SQL_' registered for user-defined settings.`,
  )
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\0', '\\0')}'`
}

function quoteIdentifier(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}

/** `chdb_query_class` of statements that write outside the engine, or act on the session or on other queries. */
const CLASS_CONTROL = 3

type Connection = { readonly brand: unique symbol }
type Connect = (settings: Readonly<Record<string, string>>) => Connection

interface NativeResult {
  readonly bytes: Buffer<ArrayBuffer>
  readonly elapsed: number
  readonly rowsRead: number
  readonly bytesRead: number
}

/** The functions of the addon that we call. Promises settle when the engine is done, on a thread of the pool. */
interface Native {
  CreateConnection(path: string, args: readonly string[]): Connection
  CloseConnection(connection: Connection): void
  QueryWithConnection(connection: Connection, text: string, format: string): string
  QueryAsyncConnection(connection: Connection, text: string, format: string): Promise<NativeResult>
  InsertRawAsyncConnection(
    connection: Connection,
    prefix: string,
    data: Buffer,
    countLines: boolean,
  ): Promise<{ elapsed: number; rowsWritten: number; bytesWritten: number }>
  DurableClassifyAsync(
    connection: Connection,
    text: string,
    database: string,
  ): Promise<{ statementCount: number; queryClass: number }>
}
