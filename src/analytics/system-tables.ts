import { lookup } from '../base/lookup.ts'
import type { TakenSetting } from './clickhouse-settings.ts'
import { quote } from './quoting.ts'
import { TABLES } from './tables.ts'

/** The `system` tables that ClickHouse clients see: metadata of the tenant's tables, and tables of numbers. */

interface SystemTable {
  /** The columns as `name Type`, separated by commas. */
  readonly structure: string
  readonly engine: string
  readonly query: (settings: readonly TakenSetting[]) => string
}

const NIL_UUID = '00000000-0000-0000-0000-000000000000'

const DATABASES = 'name String, engine String, comment String, uuid String'

const TABLES_STRUCTURE = `database String, name String, uuid String, engine String, is_temporary UInt8, comment String,
  partition_key String, sorting_key String, primary_key String, sampling_key String, create_table_query String,
  engine_full String, total_rows Nullable(UInt64), total_bytes Nullable(UInt64)`

const COLUMNS_STRUCTURE = `database String, table String, name String, type String, position UInt64, default_kind String,
  default_type String, default_expression String, comment String, codec_expression String, ttl_expression String,
  is_in_partition_key UInt8, is_in_sorting_key UInt8, is_in_primary_key UInt8, is_in_sampling_key UInt8`

const SETTINGS_STRUCTURE = 'name String, value String, changed UInt8, description String, readonly UInt8, type String'

/** Unlimited, as in ClickHouse. */
const NUMBERS: SystemTable = {
  structure: 'number UInt64',
  engine: 'SystemNumbers',
  query: () => 'SELECT number FROM numbers(18446744073709551615)',
}

export const SYSTEM_TABLES = lookup<SystemTable>({
  databases: {
    structure: DATABASES,
    engine: 'SystemDatabases',
    query: () =>
      rows(DATABASES, [
        ['default', 'Atomic', '', NIL_UUID],
        ['system', 'Atomic', '', NIL_UUID],
      ]),
  },
  tables: {
    structure: TABLES_STRUCTURE,
    engine: 'SystemTables',
    query: () =>
      rows(
        TABLES_STRUCTURE,
        everyTable().map(({ database, table, engine }) => {
          return [database, table, NIL_UUID, engine, 0, '', '', '', '', '', '', '', null, null]
        }),
      ),
  },
  columns: {
    structure: COLUMNS_STRUCTURE,
    engine: 'SystemColumns',
    query: () =>
      rows(
        COLUMNS_STRUCTURE,
        everyTable().flatMap(({ database, table, columns }) =>
          columns.map(([name, type], i) => [database, table, name, type, i + 1, '', '', '', '', '', '', 0, 0, 0, 0]),
        ),
      ),
  },
  // Drivers query this to find out which settings they may send.
  settings: {
    structure: SETTINGS_STRUCTURE,
    engine: 'SystemSettings',
    query: (settings) =>
      rows(
        SETTINGS_STRUCTURE,
        settings.map(({ name, value, type }) => [name, value, 0, '', 0, type]),
      ),
  },
  one: { structure: 'dummy UInt8', engine: 'SystemOne', query: () => 'SELECT toUInt8(0) AS dummy' },
  numbers: NUMBERS,
  numbers_mt: NUMBERS,
})

/** @returns a query for the contents of that `system` table */
export function systemTable(name: string, settings: readonly TakenSetting[]): string {
  return SYSTEM_TABLES.get(name)!.query(settings)
}

interface ListedTable {
  readonly database: string
  readonly table: string
  readonly engine: string
  readonly columns: readonly (readonly [name: string, type: string])[]
}

function everyTable(): ListedTable[] {
  const ours = [...TABLES].map(([table, { columns }]) => {
    return {
      database: 'default',
      table,
      engine: 'View',
      columns: columns.map(({ name, type }) => [name, type] as const),
    }
  })
  const system = [...SYSTEM_TABLES].map(([table, { structure, engine }]) => {
    return { database: 'system', table, engine, columns: columnsOf(structure) }
  })
  return [...ours, ...system]
}

function columnsOf(structure: string): (readonly [name: string, type: string])[] {
  return structure.split(/,\s+/).map((column) => column.trim().split(' ') as [string, string])
}

/** A query that returns these rows. */
function rows(structure: string, values: readonly (readonly (string | number | null)[])[]): string {
  const literal = (value: string | number | null) =>
    typeof value === 'string' ? quote(value) : String(value ?? 'NULL')
  const columns = columnsOf(structure)
  const types = columns.map(([, type], i) => `c${i} ${type}`).join(', ')
  // `database` is also a function; the guard allows it as a column name only if the query defines it as an alias.
  const names = columns.map(([name], i) => `c${i} AS ${name}`).join(', ')
  const lines = values.map((line) => `(${line.map(literal).join(', ')})`).join(', ')
  return `SELECT ${names} FROM values('${types}', ${lines})`
}
