import { createLog } from '../../src/base/log.ts'
import { connectPostgres, type Sql } from '../../src/stores/postgres/connect.ts'
import { newDatabaseName, SHARED_POSTGRES, startPostgresTemplate } from './stores.ts'
import { atEnd, shared } from './teardown.ts'

export interface FreshDatabase {
  /** For `connectPostgres` or a service's `DATABASE_URL`. */
  readonly url: string
  /** A small pool on it, like the service's own. */
  readonly sql: Sql
}

const log = createLog('error')
/** An embedded server is deleted as a whole; on an external one the databases are dropped. */
const isExternal = process.env.DATABASE_URL !== undefined

/**
 * Its own database for one test or one file, migrated and empty, within some milliseconds: a copy of a template. On the
 * Postgres that the processes of this test run share, or that of `DATABASE_URL`, or an embedded one of this process.
 */
export async function freshDatabase(): Promise<FreshDatabase> {
  const { admin, template } = await sharedServer()
  return onNewDatabase(admin, `template ${template}`)
}

/** The same without migrations, for tests of the migrations themselves. */
export async function emptyDatabase(): Promise<FreshDatabase> {
  const { admin } = await sharedServer()
  return onNewDatabase(admin, '')
}

/** A copy of a database, like a backup of it. There must be no connection to it. */
export async function copyDatabase(url: string): Promise<string> {
  const { admin } = await sharedServer()
  const copy = await onNewDatabase(admin, `template ${new URL(url).pathname.slice(1)}`)
  return copy.url
}

/**
 * Puts a clock that can be moved before that of the database: `now()` of connections that are opened later includes the column
 * `ahead` of the table `clock`.
 * @returns a function that moves it by some milliseconds
 */
export async function movableClock(url: string): Promise<(byMs: number) => Promise<void>> {
  const sql = connectPostgres(url, { log, max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  await sql`create table clock (ahead interval not null)`
  await sql`insert into clock values ('0')`
  for (const name of ['now', 'clock_timestamp'])
    await sql.unsafe(`create function public.${name}() returns timestamptz language sql volatile as
      'select pg_catalog.${name}() + ahead from public.clock'`)
  await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set search_path = public, pg_catalog`)
  return async (byMs) => {
    await sql`update clock set ahead = ahead + ${byMs} * interval '1 millisecond'`
  }
}

interface Server {
  readonly url: string
  readonly sql: Sql
}

async function onNewDatabase(admin: Server, clause: string): Promise<FreshDatabase> {
  const name = newDatabaseName()
  await admin.sql.unsafe(`create database ${name} ${clause}`)
  const url = withDatabase(admin.url, name)
  const sql = connectPostgres(url, { log, max: 4 })
  atEnd(async () => {
    await sql.end({ timeout: 1 })
    if (isExternal) await admin.sql.unsafe(`drop database if exists ${name} with (force)`)
  })
  return { url, sql }
}

const sharedServer = shared(connectServer)

async function connectServer(): Promise<{ admin: Server; template: string }> {
  const template = new URL(process.env[SHARED_POSTGRES] ?? (await startPostgresTemplate()))
  // A database cannot be copied while anything is connected to it.
  const url = process.env.DATABASE_URL ?? withDatabase(template.href, 'postgres')
  const sql = connectPostgres(url, { log, max: 4 })
  atEnd(() => sql.end({ timeout: 1 }))
  return { admin: { url, sql }, template: template.pathname.slice(1) }
}

function withDatabase(url: string, name: string): string {
  const parsed = new URL(url)
  parsed.pathname = `/${name}`
  return parsed.href
}
