import { ClickHouseFailure } from '../protocol.ts'
import { type Connection, type EnginePlace, engineLibrary, loadAddon, type Native } from './addon.ts'
import { failureOf, type Job, openSession, query, quote } from './session.ts'
import { streamSettings } from './stitch.ts'
import { createStreams, type EngineStream } from './streams.ts'
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
  /**
   * Runs exactly one statement and hands out its result as it comes.
   * @returns undefined, without having run anything, if it has no result that can be had so: {@link run} it
   * @throws ClickHouseFailure
   */
  stream(job: Job): Promise<EngineStream | undefined>
  /** Cancels the running statement of that id, if there is one. */
  kill(queryId: string): Promise<void>
}

export interface Outcome {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly rowsRead: number
  readonly bytesRead: number
  readonly rowsWritten: number
  readonly bytesWritten: number
  readonly elapsedSeconds: number
}

/**
 * Opens the engine on a directory, which it locks.
 * @throws Error when the directory is in use or not readable, or this platform has no engine
 */
export function openEngine(place: EnginePlace): Engine {
  const { native, connect } = loadAddon(place)
  // Never closed: the engine ends with its last connection, and so with the process.
  const keeper = connect({})
  const version = native.QueryWithConnection(keeper, 'SELECT version()', 'TabSeparated').trim()
  const settingNames = new Set(
    native.QueryWithConnection(keeper, 'SELECT name FROM system.settings', 'TabSeparated').trim().split('\n'),
  )
  const streams = createStreams(place)

  trimCode(engineLibrary())

  const refuseUnknownSettings = ({ settings }: Job) => {
    for (const name of Object.keys(settings)) if (!settingNames.has(name)) throw unknownSetting(name)
  }

  return {
    version,
    async run(job) {
      refuseUnknownSettings(job)
      const { connection } = await openSession(native, connect, job)
      try {
        if (job.dataFile === undefined) return await select(native, connection, job)
        return await insertFile(native, connection, job.text, job.dataFile)
      } finally {
        native.CloseConnection(connection)
      }
    },
    async stream(job) {
      refuseUnknownSettings(job)
      return streams.open({ ...job, settings: { ...streamSettings(job.format), ...job.settings } })
    },
    kill: async (queryId) => {
      await query(native, keeper, `KILL QUERY WHERE Settings['log_comment'] = ${quote(queryId)} ASYNC`, 'Null')
    },
  }
}

async function select(native: Native, connection: Connection, job: Job): Promise<Outcome> {
  const result = await query(native, connection, job.text, job.format)
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

function unknownSetting(name: string): ClickHouseFailure {
  return new ClickHouseFailure(
    115,
    'UNKNOWN_SETTING',
    `Setting ${name} is neither a builtin setting nor started with the prefix 'SQL_' registered for user-defined settings.`,
  )
}
