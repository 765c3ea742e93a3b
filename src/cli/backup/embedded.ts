import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { systemClock } from '../../base/clock.ts'
import { tryDataDir } from '../../base/data-dir.ts'
import type { Log } from '../../base/log.ts'
import { StartError } from '../../base/start-error.ts'
import { Teardown } from '../../base/teardown.ts'
import type { SnapshotDeps } from '../../service/backup/snapshot.ts'
import { createColumnarClient } from '../../stores/clickhouse/client.ts'
import { startEmbeddedClickHouse } from '../../stores/clickhouse/engine/supervisor.ts'
import { openLocalJournal } from '../../stores/journal/local/journal.ts'
import {
  type EmbeddedPostgres,
  embeddedPostgresBeside,
  hasEmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../stores/postgres/embedded.ts'

/**
 * Opens the stores of a data directory without migrating, loading or appending anything.
 * @param dataDir must not be in use by another process
 */
export function openStores(dataDir: string, log: Log) {
  return Teardown.ifStartFails(log, async (teardown) => {
    const postgres = await startEmbeddedPostgres({ dataDir, log })
    teardown.add('Postgres', postgres.stop)
    const backend = await startEmbeddedClickHouse({ dataDir, log, logLevel: 'error' })
    teardown.add('ClickHouse', () => backend.stop())
    const columnar = createColumnarClient(backend)
    teardown.add('ClickHouse client', columnar.close)
    const bytes = Number.MAX_SAFE_INTEGER
    const dir = join(dataDir, 'journal')
    const journal = await openLocalJournal({ dir, maxBytes: bytes, keepBytes: bytes, clock: systemClock, log })
    teardown.add('journal', () => journal.close())
    return { postgresUrl: postgres.url, columnar, journal, close: () => teardown.run() }
  })
}

/**
 * Opens the stores of a stopped service for a snapshot; locks its data directory until they are closed.
 * @throws StartError when there is nothing to back up, or a service is running
 */
export async function openStopped(dataDir: string, log: Log): Promise<SnapshotDeps & { close(): Promise<void> }> {
  if (!hasEmbeddedPostgres(dataDir))
    throw new StartError(`there is no service in DATA_DIR ${dataDir}: set DATA_DIR as for the service`)
  const lock = tryDataDir(dataDir)
  if (lock === null)
    throw new StartError(`a service uses DATA_DIR ${dataDir}, but does not respond: is it starting or stopping?`)
  const stores = await openStores(dataDir, log).catch((error) => {
    lock.release()
    throw error
  })
  return {
    ...stores,
    version: packageJson.version,
    dataDir,
    holdSink: async () => () => {},
    log,
    close: () => stores.close().finally(lock.release),
  }
}

/** Starts only Postgres, creating its database if there is none. */
export function startPostgres(dataDir: string, log: Log): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir, log })
}

/** The URL of a running service's Postgres. */
export function openEmbeddedPostgres(dataDir: string): Promise<{ url: string; close(): Promise<void> }> {
  return embeddedPostgresBeside(dataDir)
}
