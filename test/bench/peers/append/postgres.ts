import { join } from 'node:path'
import { createLog } from '../../../../src/base/log.ts'
import { connectPostgres } from '../../../../src/stores/postgres/connect.ts'
import { startEmbeddedPostgres } from '../../../../src/stores/postgres/embedded.ts'
import { atEnd, temporaryDirectory } from '../../../support/teardown.ts'
import { type AppendPeer, connectionPlans } from './appender.ts'
import { callsOf } from './events.ts'

const CONNECTIONS = 100
const INSERT = 'insert into events (event) values ($1)'
const INSERT_MANY = 'insert into events (event) select value from json_array_elements($1::json)'

/** The Postgres that the project embeds, with its settings: a commit for each call. */
export const postgres: AppendPeer = {
  name: 'postgres',
  async start() {
    const log = createLog('error')
    const dataDir = await temporaryDirectory()
    const server = await startEmbeddedPostgres({ dataDir, log, connections: CONNECTIONS })
    atEnd(() => server.stop())
    const sql = connectPostgres(server.url, { log, max: 1 })
    await sql`create table events (
      seq bigint generated always as identity primary key, created_at timestamptz not null default now(), event jsonb not null)`
    // The load speaks the protocol on raw sockets; a password would only make that longer.
    await Bun.write(join(dataDir, 'postgres', 'cluster', 'pg_hba.conf'), 'local all all trust\n')
    await sql`select pg_reload_conf()`
    const [{ version }] = await sql<[{ version: string }]>`select current_setting('server_version') as version`
    const unix = join(new URL(server.url).searchParams.get('host')!, '.s.PGSQL.5432')
    const way = (name: string, eventsPerCall: number, request: (records: readonly object[]) => Buffer, text = '') => ({
      name,
      eventsPerCall,
      plan: (connections: number) => ({
        protocol: 'postgres' as const,
        target: { unix },
        connections: connectionPlans(
          connections,
          (index) => callsOf(index, eventsPerCall).map(request),
          () => greetingOf(text),
        ),
      }),
    })
    return {
      title: `Postgres ${version}`,
      durability: 'fsync and synchronous_commit on: synced before the acknowledgement; commits share syncs',
      sql: 'at once, as rows',
      ways: [
        way('COPY', 100, copyOf),
        way('INSERT of all rows', 100, (records) => execute(JSON.stringify(records)), INSERT_MANY),
        way('INSERT', 1, ([record]) => execute(JSON.stringify(record)), INSERT),
      ],
      async stored() {
        const [{ n }] = await sql<[{ n: number }]>`select count(*)::int as n from events`
        return n
      },
      async stop() {
        await sql.end({ timeout: 1 })
        await server.stop()
      },
    }
  },
}

function message(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)))
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

/** The startup message, and the prepared statement of the connection. */
function greetingOf(statement: string): Buffer {
  const startup = message('', Buffer.from([0, 3, 0, 0]), 'user\0service\0database\0postgres\0\0')
  if (statement === '') return startup
  return Buffer.concat([startup, message('P', 'add\0', statement, '\0', Buffer.from([0, 0]))])
}

/** Executes the prepared statement with one parameter, in text form. */
function execute(parameter: string): Buffer {
  const text = Buffer.from(parameter)
  const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 0])
  head.writeInt32BE(text.length, 4)
  return Buffer.concat([
    message('B', '\0add\0', head, text, Buffer.from([0, 0])),
    message('E', '\0', Buffer.from([0, 0, 0, 0])),
    message('S'),
  ])
}

/** Statement and data in one write: the server reads the data once it has begun the statement. */
function copyOf(records: readonly object[]): Buffer {
  const escaped = (record: object) => JSON.stringify(record).replaceAll('\\', '\\\\')
  const lines = records.map((record) => `${escaped(record)}\n`).join('')
  return Buffer.concat([message('Q', 'copy events (event) from stdin\0'), message('d', lines), message('c')])
}
