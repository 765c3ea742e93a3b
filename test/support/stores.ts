import { startEmbeddedClickHouse } from '../../src/columnar/engine/supervisor.ts'
import { createLog } from '../../src/log.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded.ts'
import { atEnd, temporaryDirectory } from './teardown.ts'

/** Where all test processes of one run find the stores that they share; set by `test/main.ts`. */
export const SHARED_POSTGRES = 'TEST_POSTGRES_URL'
export const SHARED_CLICKHOUSE = 'TEST_CLICKHOUSE_URL'

const log = createLog('error')

/**
 * An embedded Postgres for tests, not durable.
 * @returns its URL; the server stops with the tests of this process
 */
export async function startTestPostgres(): Promise<string> {
  const postgres = await startEmbeddedPostgres({ dataDir: await temporaryDirectory(), log, durable: false })
  atEnd(() => postgres.stop())
  return postgres.url
}

/**
 * An embedded ClickHouse for tests.
 * @returns its URL with user and password; the engine stops with the tests of this process
 */
export async function startTestClickHouse(): Promise<string> {
  const backend = await startEmbeddedClickHouse({
    dataDir: await temporaryDirectory(),
    log,
    logLevel: 'error',
    statementsPerKey: 100,
  })
  atEnd(() => backend.stop())
  const url = new URL(backend.url)
  url.username = backend.username
  url.password = backend.password
  return url.href
}
