import { type ColumnarBackend, remoteClickHouse } from '../../src/columnar/backend.ts'
import { type ColumnarClient, createColumnarClient } from '../../src/columnar/client.ts'
import { startEmbeddedClickHouse } from '../../src/columnar/engine/supervisor.ts'
import { migrateClickHouse } from '../../src/columnar/migrate.ts'
import { createLog } from '../../src/log.ts'
import { atEnd, temporaryDirectory } from './teardown.ts'

export interface FreshColumnarDatabase {
  /** For a service's `CLICKHOUSE_URL`. */
  readonly url: string
  readonly client: ColumnarClient
  readonly backend: ColumnarBackend
}

const log = createLog('error')
let shared: Promise<ColumnarBackend> | undefined

/**
 * A ClickHouse database of its own for one test or one file, migrated and empty: on the server of `CLICKHOUSE_URL` where
 * that is set, else on an embedded engine that all tests of the process share.
 */
export async function freshColumnarDatabase(): Promise<FreshColumnarDatabase> {
  shared ??= startBackend()
  const backend = await shared
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  const client = createColumnarClient(backend, name)
  await migrateClickHouse(client, log)
  atEnd(async () => {
    await client.command(`DROP DATABASE IF EXISTS ${name}`)
    await client.close()
  })
  return { url: urlOf(backend, name), client, backend }
}

async function startBackend(): Promise<ColumnarBackend> {
  const url = process.env.CLICKHOUSE_URL
  const backend =
    url === undefined
      ? await startEmbeddedClickHouse({ dataDir: await temporaryDirectory(), log, logLevel: 'error' })
      : remoteClickHouse(url)
  atEnd(() => backend.stop())
  return backend
}

function urlOf(backend: ColumnarBackend, database: string): string {
  const url = new URL(backend.url)
  url.username = backend.username
  url.password = backend.password
  url.pathname = `/${database}`
  return url.href
}
