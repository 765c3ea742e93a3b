import { tryDataDir } from '../../base/data-dir.ts'
import type { Log } from '../../base/log.ts'
import type { Metrics } from '../../base/metrics.ts'
import type { Progress } from '../../base/progress.ts'
import { StartError } from '../../base/start-error.ts'
import type { Teardown } from '../../base/teardown.ts'
import { type ColumnarBackend, remoteClickHouse } from '../../stores/clickhouse/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../stores/clickhouse/client.ts'
import { startEmbeddedClickHouse } from '../../stores/clickhouse/engine/supervisor.ts'
import { migrateClickHouse } from '../../stores/clickhouse/migrate.ts'
import { connectPostgres, isUnavailable, type Sql } from '../../stores/postgres/connect.ts'
import { embeddedPostgresBeside, hasEmbeddedPostgres, startEmbeddedPostgres } from '../../stores/postgres/embedded.ts'
import { migratePostgres, withMigrationLock } from '../../stores/postgres/migrate.ts'
import type { Config } from '../config/config.ts'

interface StoresDeps {
  readonly log: Log
  readonly progress: Progress
  readonly metrics: Metrics
  readonly teardown: Teardown
  /** Called with a workspace whose query forced a restart of the embedded ClickHouse. */
  readonly onStuckQuery: (workspaceId: string) => void
  /** How many connections the embedded Postgres accepts. Default: enough for one process. */
  readonly connections?: number
  /** Called when both stores are starting in their own processes, so that this one has time for something else. */
  readonly onLaunched?: () => void
}

interface Launch {
  /** Called when this store is starting in another process, perhaps several times. */
  readonly onLaunched: () => void
}

/** Connections to stores that are up and migrated. */
export interface Stores {
  readonly sql: Sql
  /** A connection outside the pool, so that a busy pool does not delay the key lease. */
  readonly heartbeat: Sql
  /** For separate connections. Contains a password. */
  readonly postgresUrl: string
  /** For other processes of the service. Contains a password. */
  readonly clickhouseUrl: string
  readonly columnar: ColumnarClient
}

/** How long to wait at start for an external server, which may have been started at the same time. */
const REMOTE_PATIENCE_MS = 30_000
const RETRY_INTERVAL_MS = 250
const END_TIMEOUT_SECONDS = 2
const COMMAND_CONNECTIONS_MAX = 2
const NEVER = new AbortController().signal

/** Chooses, starts and migrates Postgres and ClickHouse, both at once. @throws StartError */
export async function startStores(config: Config, deps: StoresDeps): Promise<Stores> {
  // If one fails to start, do not wait for the other.
  const failing = new AbortController()
  const orFail = (error: unknown) => {
    failing.abort(error)
    throw error
  }
  const launched = new Set<string>()
  const onLaunched = (store: string) => () => {
    if (launched.add(store).size === 2) deps.onLaunched?.()
  }
  const starting = startPostgres(config, { ...deps, onLaunched: onLaunched('Postgres') }, failing.signal)
  const results = await Promise.allSettled([
    starting.catch(orFail),
    startClickHouse(
      config,
      { ...deps, onLaunched: onLaunched('ClickHouse') },
      failing.signal,
      async () => (await starting).clients.postgresUrl,
    ).catch(orFail),
  ] as const)
  // A store that has started must be stopped, even if the other one fails. Both stop at the same time.
  deps.teardown.add('stores', () =>
    Promise.all(results.map((result) => (result.status === 'fulfilled' ? result.value.stop() : undefined))),
  )
  const [postgres, clickhouse] = results
  if (postgres.status === 'rejected' || clickhouse.status === 'rejected') throw failing.signal.reason
  const { client: columnar, url: clickhouseUrl } = clickhouse.value
  return { ...postgres.value.clients, columnar, clickhouseUrl }
}

/** Starts or connects to Postgres, and migrates it. */
async function startPostgres(
  config: Config,
  { log, progress, metrics, connections: accepted, onLaunched }: StoresDeps & Launch,
  failing: AbortSignal,
) {
  await using opened = new AsyncDisposableStack()
  if (config.databaseUrl !== undefined) onLaunched()
  const server =
    config.databaseUrl === undefined
      ? await progress.during('starting Postgres', (onProgress) =>
          startEmbeddedPostgres({
            dataDir: config.dataDir,
            log,
            onProgress,
            onLaunched,
            ...(accepted === undefined ? {} : { connections: accepted }),
          }),
        )
      : { url: config.databaseUrl, stop: async () => {} }
  opened.defer(() => server.stop())
  let connections = 0
  const onConnection = (change: number) => {
    connections += change
  }
  metrics.gauge('postgres_connections', 'Open connections to Postgres.', () => connections)
  const sql = connectPostgres(server.url, { log, onConnection })
  const heartbeat = connectPostgres(server.url, { log, max: 1, onConnection })
  opened.defer(async () => {
    await Promise.all([sql, heartbeat].map((pool) => pool.end({ timeout: END_TIMEOUT_SECONDS })))
  })
  if (config.databaseUrl !== undefined)
    await progress.during('waiting for DATABASE_URL', () => waitUntilReachable(sql, failing))
  await progress.during('migrating Postgres', () => migratePostgres(server.url, log))
  const started = opened.move()
  return { clients: { sql, heartbeat, postgresUrl: server.url }, stop: () => started.disposeAsync() }
}

/**
 * Connects a command on the service's machine to Postgres: to the operator's server, to the embedded server of the running
 * service, or, if none is running, to an embedded server that runs as long as the command, under the lock of its directory.
 *
 * @returns `isAlone`: no service can be using the database at the same time
 * @throws StartError when there is no database, or it was never set up
 */
export async function openPostgres(config: Config, { log, progress }: Pick<StoresDeps, 'log' | 'progress'>) {
  await using opened = new AsyncDisposableStack()
  const { isAlone, url } = await locatePostgres(config, { log, progress }, opened)
  const sql = connectPostgres(url, { log, max: COMMAND_CONNECTIONS_MAX })
  opened.defer(() => sql.end({ timeout: END_TIMEOUT_SECONDS }))
  const what = config.databaseUrl === undefined ? 'the database in DATA_DIR' : 'DATABASE_URL'
  await progress.during(`waiting for ${what}`, () => waitUntilReachable(sql, NEVER, what))
  const [{ exists }] = await sql<[{ exists: boolean }]>`select to_regclass('store_marks') is not null as exists`
  if (!exists) throw new StartError(`${what} has not been set up yet: start the service once`)
  const resources = opened.move()
  return { sql, isAlone, close: () => resources.disposeAsync() }
}

/** Finds the server that a command uses, or starts it. What has to be closed afterwards is added to `opened`. */
async function locatePostgres(
  { databaseUrl, dataDir }: Config,
  { log, progress }: Pick<StoresDeps, 'log' | 'progress'>,
  opened: AsyncDisposableStack,
) {
  if (databaseUrl !== undefined) return { isAlone: false, url: databaseUrl }
  if (!hasEmbeddedPostgres(dataDir))
    throw new StartError(
      `there is no database in DATA_DIR ${dataDir}: set DATA_DIR or DATABASE_URL as for the service, and start it once`,
    )
  const lock = tryDataDir(dataDir)
  if (lock === null) {
    const { url, close } = await embeddedPostgresBeside(dataDir)
    opened.defer(close)
    return { isAlone: false, url }
  }
  opened.defer(() => lock.release())
  const { url, stop } = await progress.during('starting Postgres', (onProgress) =>
    startEmbeddedPostgres({ dataDir, log, onProgress }),
  )
  opened.defer(stop)
  return { isAlone: true, url }
}

/** Waits until the server answers. @throws StartError; its message does not contain the URL, which has a password */
async function waitUntilReachable(sql: Sql, failing: AbortSignal, what = 'DATABASE_URL'): Promise<void> {
  const deadline = performance.now() + REMOTE_PATIENCE_MS
  for (;;) {
    try {
      await sql`select 1`
      return
    } catch (cause) {
      failing.throwIfAborted()
      if (isUnavailable(cause) && performance.now() < deadline) await Bun.sleep(RETRY_INTERVAL_MS)
      else throw new StartError(`${what} cannot be used: ${(cause as Error).message}`, { cause })
    }
  }
}

/** Starts or connects to ClickHouse, and migrates it. @param postgresUrl resolves once Postgres has started */
async function startClickHouse(
  config: Config,
  deps: StoresDeps & Launch,
  failing: AbortSignal,
  postgresUrl: () => Promise<string>,
) {
  const { log, progress } = deps
  await using opened = new AsyncDisposableStack()
  const backend = await progress.during('starting ClickHouse', () => openBackend(config, deps, failing))
  opened.defer(() => backend.stop())
  const client = createColumnarClient(backend)
  opened.defer(() => client.close())
  const migrate = () => migrateClickHouse(client, log)
  await progress.during('migrating ClickHouse', async () =>
    // Other processes may be starting on the same server.
    config.clickhouseUrl === undefined ? migrate() : withMigrationLock(await postgresUrl(), log, migrate),
  )
  const started = opened.move()
  return { client, url: config.clickhouseUrl ?? urlOf(backend), stop: () => started.disposeAsync() }
}

function urlOf({ url, username, password, database }: ColumnarBackend): string {
  const withUser = Object.assign(new URL(url), { username, password })
  return new URL(database, withUser).href
}

async function openBackend(config: Config, deps: StoresDeps & Launch, failing: AbortSignal): Promise<ColumnarBackend> {
  const { clickhouseCluster, clickhouseUrl, dataDir, logLevel, queries } = config
  const { log, metrics, onStuckQuery, onLaunched } = deps
  if (clickhouseUrl === undefined) {
    const restarts = metrics.counter('clickhouse_stuck_total', 'Restarts of ClickHouse to stop a query.').at()
    const onStuck = (workspaceIds: readonly string[]) => {
      restarts.value++
      for (const workspaceId of workspaceIds) onStuckQuery(workspaceId)
    }
    return startEmbeddedClickHouse({ dataDir, log, logLevel, statementsPerKey: queries.atOnce, onStuck, onLaunched })
  }
  onLaunched()
  const backend = remoteClickHouse(clickhouseUrl, clickhouseCluster)
  try {
    await backend.whenReady(AbortSignal.any([failing, AbortSignal.timeout(REMOTE_PATIENCE_MS)]))
  } catch (cause) {
    throw new StartError('CLICKHOUSE_URL cannot be used: the server does not answer', { cause })
  }
  return backend
}
