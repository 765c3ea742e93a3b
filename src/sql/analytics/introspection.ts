import { NIL_UUID } from '../../base/ids.ts'
import { lookup } from '../../base/lookup.ts'
import { quote, replaceUnquoted } from '../../stores/clickhouse/quoting.ts'
import { TABLES } from './tables.ts'

/** A setting that requests may give, with its default value. */
export interface TakenSetting {
  readonly name: string
  readonly type: string
  readonly value: string
}

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

/** A `system` table that ClickHouse clients see: metadata of the tenant's tables, or numbers. */
interface SystemTable {
  readonly engine: string
  /** The columns as `name Type`, separated by commas. */
  readonly structure: string
  /** Its rows, or a query for them. */
  readonly contents: string | ((settings: readonly TakenSetting[]) => readonly (readonly unknown[])[])
}

/** Unlimited, as in ClickHouse. */
const NUMBERS: SystemTable = {
  engine: 'SystemNumbers',
  structure: 'number UInt64',
  contents: 'SELECT number FROM numbers(18446744073709551615)',
}

const SYSTEM_TABLES: ReadonlyMap<string, SystemTable> = lookup<SystemTable>({
  databases: {
    engine: 'SystemDatabases',
    structure: 'name String, engine String, comment String, uuid String',
    contents: () => ['default', 'system'].map((name) => [name, 'Atomic', '', NIL_UUID]),
  },
  tables: {
    engine: 'SystemTables',
    structure: `database String, name String, uuid String, engine String, is_temporary UInt8, comment String,
      partition_key String, sorting_key String, primary_key String, sampling_key String, create_table_query String,
      engine_full String, total_rows Nullable(UInt64), total_bytes Nullable(UInt64)`,
    contents: () =>
      everyTable().map(({ database, table, engine }) => {
        return [database, table, NIL_UUID, engine, 0, '', '', '', '', '', '', '', null, null]
      }),
  },
  columns: {
    engine: 'SystemColumns',
    structure: `database String, table String, name String, type String, position UInt64, default_kind String,
      default_type String, default_expression String, comment String, codec_expression String, ttl_expression String,
      is_in_partition_key UInt8, is_in_sorting_key UInt8, is_in_primary_key UInt8, is_in_sampling_key UInt8`,
    contents: () =>
      everyTable().flatMap(({ database, table, columns }) =>
        columns.map(([name, type], i) => [database, table, name, type, i + 1, '', '', '', '', '', '', 0, 0, 0, 0]),
      ),
  },
  // Drivers query this to find out which settings they may send.
  settings: {
    engine: 'SystemSettings',
    structure: 'name String, value String, changed UInt8, description String, readonly UInt8, type String',
    contents: (settings) => settings.map(({ name, value, type }) => [name, value, 0, '', 0, type]),
  },
  one: { engine: 'SystemOne', structure: 'dummy UInt8', contents: 'SELECT toUInt8(0) AS dummy' },
  numbers: NUMBERS,
  numbers_mt: NUMBERS,
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

const PLAIN_NAMES = new RegExp(`(?<![\\w.])default\\.(${[...TABLES.keys()].join('|')})(?!\\w)`, 'g')

/** Replaces `default.events` with `events`, also in qualified column names. */
function withPlainNames(query: string): string {
  return replaceUnquoted(query, PLAIN_NAMES, '$1')
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
  const list = [...definitions].map(([name, table]) => `${name} AS (${contentsOf(table, server.settings)})`)
  return `WITH ${list.join(', ')} SELECT * FROM (${renamed})`
}

/** A query for the contents of a `system` table. */
function contentsOf(name: string, settings: readonly TakenSetting[]): string {
  const { structure, contents } = SYSTEM_TABLES.get(name)!
  if (typeof contents === 'string') return contents
  const literal = (value: unknown) => (typeof value === 'string' ? quote(value) : String(value ?? 'NULL'))
  const columns = columnsOf(structure)
  const types = columns.map(([, type], i) => `c${i} ${type}`).join(', ')
  // `database` is also a function; the guard allows it as a column name only if the query defines it as an alias.
  const names = columns.map(([column], i) => `c${i} AS ${column}`).join(', ')
  const rows = contents(settings).map((row) => `(${row.map(literal).join(', ')})`)
  return `SELECT ${names} FROM values('${types}', ${rows.join(', ')})`
}

function everyTable() {
  const ours = [...TABLES].map(([table, { columns }]) => {
    return { database: 'default', table, engine: 'View', columns: columns.map(({ name, type }) => [name, type]) }
  })
  const system = [...SYSTEM_TABLES].map(([table, { structure, engine }]) => {
    return { database: 'system', table, engine, columns: columnsOf(structure) }
  })
  return [...ours, ...system]
}

function columnsOf(structure: string): string[][] {
  return structure.split(/,\s+/).map((column) => column.trim().split(' '))
}
