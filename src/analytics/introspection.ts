import { TABLES } from './views.ts'

const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/**
 * What tools ask a ClickHouse server about itself before they show anything: its version and name, and what tables
 * and columns it has. Such a query is rewritten to one over constants, and then goes through the guard like any other,
 * so that nothing depends on how well it is read here.
 *
 * @param query in the engine's normal form
 */
export function emulateServer(query: string, version: string): string {
  const command = query.startsWith('SELECT') || query.startsWith('WITH') ? query : commandAsSelect(query)
  return withSystemTables(withPlainNames(withConstants(command, version)))
}

/** The commands that list what there is. */
function commandAsSelect(query: string): string {
  const like = / LIKE ('(?:[^'\\]|\\.)*')$/.exec(query)
  const where = like === null ? '' : ` WHERE name LIKE ${like[1]}`
  const plain = like === null ? query : query.slice(0, like.index)
  if (plain === 'SHOW DATABASES') return `SELECT name FROM system.databases${where}`
  if (/^SHOW TABLES( FROM default)?$/.test(plain)) return `SELECT name FROM system.tables${where}`
  const described = /^DESCRIBE TABLE (?:default\.)?(\w+)$/.exec(query)?.[1]
  if (described !== undefined && described in TABLES) {
    return `SELECT name, type, default_type, default_expression, comment, codec_expression, ttl_expression FROM system.columns WHERE table = '${described}' ORDER BY position`
  }
  const asked = /^EXISTS TABLE (?:default\.)?(\w+)$/.exec(query)?.[1]
  return asked === undefined ? query : `SELECT ${asked in TABLES ? 1 : 0} AS result`
}

/** `SELECT version(), timezone() AS tz`: the columns keep their names. */
function withConstants(query: string, version: string): string {
  const values: Readonly<Record<string, string>> = { ...CONSTANTS, version: `'${version}'` }
  const items = query.startsWith('SELECT ') ? query.slice('SELECT '.length).split(', ') : []
  const constants = items.map((item) => {
    const [, name = '', alias] = /^(\w+)\(\)(?: AS (\w+|`[^`\\]+`))?$/.exec(item) ?? []
    return name in values ? `${values[name]} AS ${alias ?? `\`${name}()\``}` : undefined
  })
  return items.length > 0 && constants.every((each) => each !== undefined) ? `SELECT ${constants.join(', ')}` : query
}

const CONSTANTS: Readonly<Record<string, string>> = {
  currentDatabase: "'default'",
  database: "'default'",
  currentUser: "'default'",
  user: "'default'",
  hostName: "'agent-run-service'",
  displayName: "'agent-run-service'",
  timezone: "'UTC'",
  timeZone: "'UTC'",
  serverTimezone: "'UTC'",
  serverTimeZone: "'UTC'",
  uptime: 'toUInt32(1)',
}

/** `default.events` is `events`; also in a column's full name. */
function withPlainNames(query: string): string {
  return replaceUnquoted(query, /(?<![\w.])default\.(events|runs|tasks)(?!\w)/g, '$1')
}

function withSystemTables(query: string): string {
  const used = new Set<string>()
  const renamed = replaceUnquoted(query, /(?<![\w.])system\.(\w+)/g, (whole, table) => {
    if (!(table in SYSTEM_TABLES)) return whole
    used.add(table)
    return `system_${table}`
  })
  if (used.size === 0) return query
  const definitions = [...used].map((table) => `system_${table} AS (${SYSTEM_TABLES[table]})`).join(', ')
  if (renamed.startsWith('WITH ')) return `WITH ${definitions}, ${renamed.slice('WITH '.length)}`
  return `WITH ${definitions} ${renamed}`
}

/** Texts and quoted names stay as they are. */
function replaceUnquoted(
  text: string,
  pattern: RegExp,
  replacement: string | ((...match: string[]) => string),
): string {
  return text
    .split(/('(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)/s)
    .map((piece, i) => (i % 2 === 1 ? piece : piece.replace(pattern, replacement as string)))
    .join('')
}

const DATABASES = rows('name String, engine String, comment String, uuid String', [['default', 'Atomic', '', NIL_UUID]])

const TABLE_ROWS = rows(
  `database String, name String, uuid String, engine String, is_temporary UInt8, comment String, partition_key String,
   sorting_key String, primary_key String, sampling_key String, create_table_query String, engine_full String,
   total_rows Nullable(UInt64), total_bytes Nullable(UInt64)`,
  Object.keys(TABLES).map((table) => ['default', table, NIL_UUID, 'View', 0, '', '', '', '', '', '', '', null, null]),
)

const COLUMN_ROWS = rows(
  `database String, table String, name String, type String, position UInt64, default_kind String, default_type String,
   default_expression String, comment String, codec_expression String, ttl_expression String, is_in_partition_key UInt8,
   is_in_sorting_key UInt8, is_in_primary_key UInt8, is_in_sampling_key UInt8`,
  Object.entries(TABLES).flatMap(([table, { columns }]) =>
    columns.map(({ name, type }, i) => ['default', table, name, type, i + 1, '', '', '', '', '', '', 0, 0, 0, 0]),
  ),
)

/** What there is of `system`, as queries. */
const SYSTEM_TABLES: Readonly<Record<string, string>> = {
  databases: DATABASES,
  tables: TABLE_ROWS,
  columns: COLUMN_ROWS,
  // Asked for by drivers that want to know which settings they may send.
  settings:
    "SELECT '' AS name, '' AS value, '' AS description, '' AS type, toUInt8(0) AS changed, toUInt8(1) AS readonly WHERE 0",
}

/** @param structure `name Type` of each column, with commas in between */
function rows(structure: string, values: readonly (readonly (string | number | null)[])[]): string {
  const literal = (value: string | number | null) =>
    typeof value === 'string' ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'` : String(value ?? 'NULL')
  const columns = structure.split(/,\s+/).map((column) => column.trim().split(' '))
  const types = columns.map(([, type], i) => `c${i} ${type}`).join(', ')
  // The guard lets a column be called `database`, which is a function, too, where the query itself says so.
  const names = columns.map(([name], i) => `c${i} AS ${name}`).join(', ')
  const lines = values.map((line) => `(${line.map(literal).join(', ')})`).join(', ')
  return `SELECT ${names} FROM values('${types}', ${lines})`
}
