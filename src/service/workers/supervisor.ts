import { existsSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { systemClock } from '../../base/clock.ts'
import { markPartitioned, openDataDir } from '../../base/data-dir.ts'
import { mint } from '../../base/ids.ts'
import { Metrics } from '../../base/metrics.ts'
import { Teardown } from '../../base/teardown.ts'
import { newEpoch } from '../../stores/journal/journal.ts'
import { NodeStore, PartitionStore } from '../../tenants/partitions/shared/tables.ts'
import { bootstrapWorkspace } from '../../tenants/workspaces/bootstrap.ts'
import { sweepSnapshots } from '../backup/snapshot.ts'
import type { Config } from '../config/config.ts'
import type { Service, ServiceOptions } from '../lifecycle.ts'
import { checkPort, urlAt } from '../ops/listen.ts'
import { startStores } from '../pipeline/stores.ts'
import { highestSeq } from '../store-marks/columnar-marks.ts'
import { isMarkedRestored, journalName, markRestored, readJournalId } from '../store-marks/mark-file.ts'
import { WorkerPool } from './pool.ts'

type Options = Pick<ServiceOptions, 'log' | 'progress'>

/** Connections of each worker to the embedded Postgres. */
const CONNECTIONS_PER_WORKER = 24
/** Connections of the supervisor and of commands. */
const FURTHER_CONNECTIONS = 40
/** How long a worker may take to start before the others take over its partitions. */
const STARTING_MS = 30_000
const SECRET_BYTES = 32

/**
 * Starts the service as several processes that share a data directory, its stores and a port
 * (docs/architecture.md#several-processes-on-one-machine). This process holds the lock and runs the stores; it serves no requests.
 *
 * @throws StartError for problems that the operator can fix
 */
export function startWorkers(config: Config, options: Options): Promise<Service> {
  return Teardown.ifStartFails(options.log, (teardown) => start(config, options, teardown))
}

async function start(config: Config, { log, progress }: Options, teardown: Teardown): Promise<Service> {
  const dataDir = openDataDir(config.dataDir)
  teardown.add('data directory', dataDir.release)
  const port = await checkPort(config)
  await sweepSnapshots(config.dataDir)
  const outdated = Promise.withResolvers<void>()
  const count = config.workers
  const pool = new WorkerPool({
    register: (instanceId, previousId) => nodes.replace({ instanceId, url: '', version }, previousId, STARTING_MS),
    onOutdated: outdated.resolve,
    log,
  })
  const { sql, columnar, postgresUrl, clickhouseUrl } = await startStores(config, {
    log,
    progress,
    metrics: new Metrics(),
    teardown,
    onStuckQuery: (workspaceId) => pool.broadcast({ type: 'stuck', workspaceId }),
    connections: FURTHER_CONNECTIONS + count * CONNECTIONS_PER_WORKER,
  })
  const nodes = new NodeStore(sql)
  const home = readJournalId(config.dataDir)
  const partitions = await new PartitionStore(sql).create({
    count: config.partitions,
    home,
    epochOf: newEpoch,
    highestSeq: () => highestSeq(columnar),
  })
  markPartitioned(config.dataDir)
  shareRestoredMark(config.dataDir, partitions)
  const first = await bootstrapWorkspace({ sql, clock: systemClock, mint, key: config.bootstrapWorkspaceKey })
  const { version } = packageJson
  const instanceIds = Array.from({ length: count }, () => crypto.randomUUID())
  const starting = instanceIds.map((instanceId) => ({ instanceId, url: '', version }))
  await nodes.replaceAll(starting, dataDir.previousInstanceId, STARTING_MS)
  const secret = Buffer.from(crypto.getRandomValues(new Uint8Array(SECRET_BYTES))).toString('base64url')
  teardown.add('workers', () => pool.stop())
  await progress.during(`starting ${count} workers`, () =>
    pool.start({ port, databaseUrl: postgresUrl, clickhouseUrl, partitions, secret }, instanceIds),
  )
  return {
    url: urlAt(config.host, port),
    isFirstStart: first.workspaceId !== null,
    freshKey: first.freshKey,
    isKeyIgnored: first.keyIgnored,
    outdated: outdated.promise,
    stop: () => teardown.run(),
  }
}

/** A restored data directory is marked; this marks each partition's log, which then begins a new epoch. */
function shareRestoredMark(dataDir: string, partitions: number): void {
  if (!isMarkedRestored(dataDir)) return
  for (let partition = 1; partition < partitions; partition++) {
    const name = journalName(partition)
    if (existsSync(join(dataDir, name))) markRestored(dataDir, name)
  }
}
