import { writeFormat } from '../../src/base/data-dir.ts'
import { createLog } from '../../src/base/log.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { startEmbeddedClickHouse } from '../../src/stores/clickhouse/engine/supervisor.ts'
import { migrateClickHouse } from '../../src/stores/clickhouse/migrate.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import { startEmbeddedPostgres } from '../../src/stores/postgres/embedded.ts'
import { migratePostgres } from '../../src/stores/postgres/migrate.ts'
import { atEnd, temporaryDirectory } from './teardown.ts'

/**
 * The variables with which `test/main.ts` tells all test processes of one run what they share: in each store a migrated,
 * empty database, which tests copy.
 */
export const SHARED_POSTGRES = 'TEST_POSTGRES_URL'
export const SHARED_CLICKHOUSE = 'TEST_CLICKHOUSE_URL'
/** A data directory with both embedded stores, migrated and stopped. */
export const SHARED_DATA_DIR = 'TEST_DATA_DIR'

const log = createLog('error')

/** @returns the URL of a database to copy, on the Postgres of `DATABASE_URL` or on an embedded one */
export async function startPostgresTemplate(): Promise<string> {
  const external = process.env.DATABASE_URL
  const server = external ?? (await startTestPostgres())
  const name = newDatabaseName()
  // No connection stays open: the simulation allows none to act later on its own.
  const run = async (statement: string) => {
    const sql = connectPostgres(server, { log, max: 1 })
    await sql.unsafe(statement).finally(() => sql.end({ timeout: 1 }))
  }
  await run(`create database ${name}`)
  // An embedded server is deleted as a whole.
  if (external !== undefined) atEnd(() => run(`drop database if exists ${name} with (force)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  await migratePostgres(url.href, log)
  return url.href
}

/** @returns the URL of a database to copy, on the ClickHouse of `CLICKHOUSE_URL` or on an embedded one */
export async function startClickHouseTemplate(): Promise<string> {
  const url = new URL(process.env.CLICKHOUSE_URL ?? (await startTestClickHouse()))
  url.pathname = `/${newDatabaseName()}`
  const client = createColumnarClient(remoteClickHouse(url.href))
  await migrateClickHouse(client, log)
  atEnd(() => client.command(`DROP DATABASE IF EXISTS ${client.database}`))
  return url.href
}

/**
 * Creates what a service creates in a new data directory, apart from its workspace: copying it takes a fraction of the time.
 * @returns its path
 */
export async function createDataDirTemplate(): Promise<string> {
  const dataDir = await temporaryDirectory()
  writeFormat(dataDir)
  const [postgres, clickhouse] = await Promise.all([
    startEmbeddedPostgres({ dataDir, log }),
    startEmbeddedClickHouse({ dataDir, log, logLevel: 'error' }),
  ])
  const client = createColumnarClient(clickhouse)
  await Promise.all([migratePostgres(postgres.url, log), migrateClickHouse(client, log)])
  await Promise.all([postgres.stop(), clickhouse.stop()])
  return dataDir
}

/** A new data directory for a service with embedded stores: a copy of the shared one, if there is one. */
export async function freshDataDir(): Promise<string> {
  const path = await temporaryDirectory()
  const template = process.env[SHARED_DATA_DIR]
  if (template !== undefined) await Bun.$`cp -a ${template}/. ${path}`.quiet()
  return path
}

export function newDatabaseName(): string {
  return `test_${crypto.randomUUID().replaceAll('-', '')}`
}

/**
 * An embedded Postgres for tests, not durable.
 * @returns its URL; the server stops with the tests of this process
 */
async function startTestPostgres(): Promise<string> {
  const postgres = await startEmbeddedPostgres({
    dataDir: await temporaryDirectory(),
    log,
    durable: false,
    connections: 500,
  })
  atEnd(() => postgres.stop())
  return postgres.url
}

/**
 * An embedded ClickHouse for tests.
 * @returns its URL with user and password; the engine stops with the tests of this process
 */
async function startTestClickHouse(): Promise<string> {
  const backend = await startEmbeddedClickHouse({
    dataDir: await temporaryDirectory(),
    log,
    logLevel: 'error',
    statementsPerKey: 100,
    // Many files share this engine: none may make it restart, not even on a busy machine.
    tenantStuckAfter: { busyMs: 60_000, latestMs: 60_000 },
  })
  atEnd(() => backend.stop())
  const url = new URL(backend.url)
  url.username = backend.username
  url.password = backend.password
  return url.href
}
