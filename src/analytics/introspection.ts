import { lookup } from '../base/lookup.ts'
import type { TakenSetting } from './clickhouse-settings.ts'
import { replaceUnquoted } from './quoting.ts'
import { SYSTEM_TABLES, systemTable } from './system-tables.ts'
import { TABLES } from './tables.ts'

/** The server that a ClickHouse client sees. */
interface EmulatedServer {
  readonly version: string
  /** `default` or `system`: the database of unqualified names. */
  readonly database: string
  /** The rows of `system.settings`. */
  readonly settings: readonly TakenSetting[]
}

const CONSTANTS = lookup<string>({
  currentUser: "'default'",
  user: "'default'",
  hostName: "'agent-run-service'",
  displayName: "'agent-run-service'",
  timezone: "'UTC'",
  timeZone: "'UTC'",
  serverTimezone: "'UTC'",
  serverTimeZone: "'UTC'",
  uptime: 'toUInt32(1)',
})

/**
 * Emulates the metadata queries that tools send to a ClickHouse server: version and name, tables and columns, and the
 * `system` tables of numbers. Such a query is rewritten to one over constants and then passes the guard like any other,
 * so that security does not depend on this parser.
 *
 * @param query in the engine's normal form
 */
export function emulateServer(query: string, server: EmulatedServer): string {
  const command = query.startsWith('SELECT') || query.startsWith('WITH') ? query : commandAsSelect(query, server)
  return withSystemTables(withPlainNames(withConstants(command, server)), server)
}

/** Rewrites SHOW, DESCRIBE and EXISTS as SELECT. */
function commandAsSelect(query: string, { database }: EmulatedServer): string {
  const like = / LIKE ('(?:[^'\\]|\\.)*')$/.exec(query)
  const and = like === null ? '' : ` AND name LIKE ${like[1]}`
  const plain = like === null ? query : query.slice(0, like.index)
  if (plain === 'SHOW DATABASES') return `SELECT name FROM system.databases WHERE true${and}`
  const shown = /^SHOW TABLES(?: FROM (default|system))?$/.exec(plain)
  if (shown !== null) return `SELECT name FROM system.tables WHERE database = '${shown[1] ?? database}'${and}`
  const [, command, of = database, table = ''] =
    /^(DESCRIBE|EXISTS) TABLE (?:(default|system)\.)?(\w+)$/.exec(query) ?? []
  const exists = (of === 'system' ? SYSTEM_TABLES : TABLES).has(table)
  if (command === 'EXISTS') return `SELECT ${exists ? 1 : 0} AS result`
  if (command !== 'DESCRIBE' || !exists) return query
  return `SELECT name, type, default_type, default_expression, comment, codec_expression, ttl_expression FROM system.columns WHERE database = '${of}' AND table = '${table}' ORDER BY position`
}

/** Replaces calls in queries such as `SELECT version(), timezone() AS tz` by constants; the columns keep their names. */
function withConstants(query: string, { version, database }: EmulatedServer): string {
  const own = { version: `'${version}'`, currentDatabase: `'${database}'`, database: `'${database}'` }
  const values = new Map([...CONSTANTS, ...Object.entries(own)])
  const items = query.startsWith('SELECT ') ? query.slice('SELECT '.length).split(', ') : []
  const constants = items.map((item) => {
    const [, name = '', alias] = /^(\w+)\(\)(?: AS (\w+|`[^`\\]+`))?$/.exec(item) ?? []
    const value = values.get(name)
    return value === undefined ? undefined : `${value} AS ${alias ?? `\`${name}()\``}`
  })
  return items.length > 0 && constants.every((each) => each !== undefined) ? `SELECT ${constants.join(', ')}` : query
}

/** Replaces `default.events` with `events`, also in qualified column names. */
function withPlainNames(query: string): string {
  return replaceUnquoted(query, /(?<![\w.])default\.(events|runs|tasks)(?!\w)/g, '$1')
}

/**
 * Turns tables of `system` into common table expressions around the query. If the client's database is `system`, this
 * includes unqualified names; an unused table expression does no harm.
 */
function withSystemTables(query: string, server: EmulatedServer): string {
  const definitions = new Map<string, string>()
  const renamed = replaceUnquoted(query, /(?<![\w.])system\.(\w+)/g, (whole, table) => {
    if (!SYSTEM_TABLES.has(table)) return whole
    definitions.set(`system_${table}`, table)
    return `system_${table}`
  })
  if (server.database === 'system') {
    replaceUnquoted(query, /(?<![\w.])\w+(?![\w.(])/g, (name) => {
      if (SYSTEM_TABLES.has(name)) definitions.set(name, name)
      return name
    })
  }
  if (definitions.size === 0) return query
  const list = [...definitions].map(([name, table]) => `${name} AS (${systemTable(table, server.settings)})`)
  return `WITH ${list.join(', ')} SELECT * FROM (${renamed})`
}
