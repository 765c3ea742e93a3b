import { ClickHouseFailure } from '../protocol.ts'
import { type EngineLocation, loadAddon } from './addon.ts'
import { IdleSessions } from './idle-sessions.ts'
import { createPoolLowering, LOW_NICE } from './nice.ts'
import { type Job, onPool, openSession, query, refuseBadStatement } from './session.ts'
import { streamSettings } from './stitch.ts'
import { type EngineStream, Threads } from './threads.ts'

/** The engine in this process: see {@link openEngine}. */
export type Engine = ReturnType<typeof openEngine>

interface ChdbResult {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Statistics for tenants' responses; 0 for statements of the service. */
  readonly rowsRead: number
  readonly bytesRead: number
  readonly elapsedSeconds: number
}

/**
 * Larger loads run at low priority. They occur under heavy ingest, when acknowledgements come first. At a normal rate
 * loads are small and should be visible in SQL quickly.
 */
const BULK_BYTES = 1024 * 1024

/** How often to lower the priority of new pool threads. */
const LOWERING_INTERVAL_MS = 500

const KILL = {
  lane: 'service',
  database: 'default',
  queryId: '',
  format: 'Null',
  settings: {},
  parameters: {},
} as const

/** Formats that the engine's synchronous call would corrupt, because it returns text. */
const BINARY_FORMAT = /^(Native|RowBinary|Parquet|Arrow|ORC|Avro|Protobuf|MsgPack|BSON|Npy|CapnProto)/

/**
 * Opens the engine on a directory, which it locks. Tenants' statements run on the pool at low priority; the service's run
 * on separate threads at normal priority, except bulk loads. A session runs one statement at a time, and only reads with
 * the same settings and database share one: see {@link IdleSessions}.
 *
 * @throws Error when the directory is in use or not readable, or this platform has no engine
 */
export function openEngine(place: EngineLocation) {
  const own = new Threads(place, 0)
  // A thread starts while the engine does, because the service's first statements follow at once.
  own.prepare()
  const { native, connect } = loadAddon(place)
  // Kept open, because the engine shuts down with its last connection.
  const keeper = connect({})
  const version = native.QueryWithConnection(keeper, 'SELECT version()', 'TabSeparated').trim()
  const settingNames = new Set(
    native.QueryWithConnection(keeper, 'SELECT name FROM system.settings', 'TabSeparated').trim().split('\n'),
  )
  const bulk = new Threads(place, LOW_NICE)
  const killers = new Threads(place, 0)
  const streams = new Threads(place, LOW_NICE)

  const lowerPool = createPoolLowering()
  lowerPool()
  setInterval(lowerPool, LOWERING_INTERVAL_MS).unref()

  const refuseUnknownSettings = ({ settings }: Job) => {
    for (const name of Object.keys(settings)) if (!settingNames.has(name)) throw unknownSetting(name)
  }

  const sessions = new IdleSessions(
    (job) => openSession(native, connect, job, onPool(native)),
    (connection) => native.CloseConnection(connection),
  )
  const runOnPool = (job: Job): Promise<ChdbResult> =>
    sessions.during(job, async (connection) => {
      await refuseBadStatement(native, connection, job.text)
      const { bytes, rowsRead, bytesRead, elapsed } = await query(native, connection, job.text, job.format)
      return { bytes, rowsRead, bytesRead, elapsedSeconds: elapsed }
    })

  return {
    version,
    /**
     * Runs exactly one statement.
     * @throws ClickHouseFailure with the engine's code and message
     */
    async run(job: Job): Promise<ChdbResult> {
      refuseUnknownSettings(job)
      if (job.lane === 'tenant' || (job.lane === 'service' && BINARY_FORMAT.test(job.format))) return runOnPool(job)
      const startedAt = performance.now()
      const bytes = await ((job.data?.bytes ?? 0) > BULK_BYTES ? bulk : own).run(job)
      return { bytes, rowsRead: 0, bytesRead: 0, elapsedSeconds: (performance.now() - startedAt) / 1000 }
    },
    /**
     * Runs exactly one statement and streams its result.
     * @returns undefined, without having run anything, if its result cannot be streamed: use `run`
     * @throws ClickHouseFailure
     */
    async stream(job: Job): Promise<EngineStream | undefined> {
      refuseUnknownSettings(job)
      return streams.stream({ ...job, settings: { ...streamSettings(job.format), ...job.settings } })
    },
    /** Cancels the running statement of that id, if there is one. */
    async kill(queryId: string): Promise<void> {
      const text = `KILL QUERY WHERE Settings['log_comment'] ${sessions.toKill(queryId)} ASYNC`
      await killers.run({ ...KILL, text })
    },
  }
}

function unknownSetting(name: string): ClickHouseFailure {
  return new ClickHouseFailure(
    115,
    'UNKNOWN_SETTING',
    `Setting ${name} is neither a builtin setting nor started with the prefix 'SQL_' registered for user-defined settings.`,
  )
}
