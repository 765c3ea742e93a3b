import { createLog } from '../../src/log.ts'
import { connectPostgres, type Sql } from '../../src/postgres/connect.ts'
import { migratePostgres } from '../../src/postgres/migrate.ts'
import { SHARED_POSTGRES, startTestPostgres } from './stores.ts'
import { atEnd, shared } from './teardown.ts'

export interface FreshDatabase {
  /** For `connectPostgres` or a service's `DATABASE_URL`. */
  readonly url: string
  /** A small pool on it, as the service's own. */
  readonly sql: Sql
}

const log = createLog('error')
/** The embedded server goes as a whole; on another one we clear up after us. */
const isForeign = process.env.DATABASE_URL !== undefined

/**
 * A database of its own for one test or one file, migrated and empty, in some milliseconds: a copy of a template. On the
 * Postgres that the processes of this test run share, else on that of `DATABASE_URL`, else on an embedded one of this process.
 */
export async function freshDatabase(): Promise<FreshDatabase> {
  const { admin, template } = await sharedServer()
  return onNewDatabase(admin, `template ${template}`)
}

/** The same without migrations: for tests of the migrations themselves. */
export async function emptyDatabase(): Promise<FreshDatabase> {
  const { admin } = await sharedServer()
  return onNewDatabase(admin, '')
}

/** A copy of a database, as a backup of it would be. Nobody may be connected to it at the moment. */
export async function copyDatabase(url: string): Promise<string> {
  const { admin } = await sharedServer()
  const copy = await onNewDatabase(admin, `template ${new URL(url).pathname.slice(1)}`)
  return copy.url
}

interface Server {
  readonly url: string
  readonly sql: Sql
}

async function onNewDatabase(admin: Server, clause: string): Promise<FreshDatabase> {
  const name = newName()
  await admin.sql.unsafe(`create database ${name} ${clause}`)
  const url = withDatabase(admin.url, name)
  const sql = connectPostgres(url, { log, max: 4 })
  atEnd(async () => {
    await sql.end({ timeout: 1 })
    if (isForeign) await admin.sql.unsafe(`drop database if exists ${name} with (force)`)
  })
  return { url, sql }
}

const sharedServer = shared(startServer)

async function startServer(): Promise<{ admin: Server; template: string }> {
  const url = process.env[SHARED_POSTGRES] ?? process.env.DATABASE_URL ?? (await startTestPostgres())
  const sql = connectPostgres(url, { log, max: 4 })
  atEnd(() => sql.end({ timeout: 1 }))
  const template = newName()
  await sql.unsafe(`create database ${template}`)
  atEnd(async () => {
    if (isForeign) await sql.unsafe(`drop database if exists ${template} with (force)`)
  })
  await migratePostgres(withDatabase(url, template), log)
  return { admin: { url, sql }, template }
}

function newName(): string {
  return `test_${crypto.randomUUID().replaceAll('-', '')}`
}

function withDatabase(url: string, name: string): string {
  const parsed = new URL(url)
  parsed.pathname = `/${name}`
  return parsed.href
}
