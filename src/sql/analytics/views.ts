import { POSITIONED_TABLES, VIEWS } from '../../stores/journal/kinds.ts'
import { rowsAsOf } from './as-of.ts'
import type { CheckedQuery } from './guard.ts'
import { JSON_COLUMNS, numberExpression, pathExpression } from './json-paths.ts'
import { TABLES, type TableColumn } from './tables.ts'

/** All stored tables and views with tenant rows (see the migrations). */
const STORED_TABLES = [
  ...[...TABLES].filter(([, { isForAll, stored }]) => isForAll !== true && stored === undefined).map(([name]) => name),
  ...POSITIONED_TABLES.filter((table) => !TABLES.has(table)),
  ...VIEWS,
]

/**
 * The tables that tenant SQL sees, limited to the rows of one workspace. They are common table expressions around the
 * query, because names resolve to the nearest definition: the query's own CTE may hide one of these tables, but no
 * spelling of a name reaches the stored tables with everyone's rows.
 */

/** The default database of tenant SQL. It is empty (see the migrations). */
export function scopeDatabase(database: string): string {
  return `${database}_scope`
}

/**
 * A statement that runs `query` on the rows of one workspace, with at most `rows` rows if given.
 *
 * The workspace condition is a PREWHERE, not a WHERE: ClickHouse merges WHERE conditions and may evaluate the query's own
 * ones first, on everyone's rows, where an error (`throwIf`, a failing cast) would reveal their contents. Rows that fail
 * a PREWHERE are dropped while they are read, before any other condition is evaluated.
 *
 * If a query uses JSON columns only by path, it gets a column per path, named after the path, instead of the JSON column.
 * Columns that it does not name are omitted, because each costs the engine 0.2 ms.
 *
 * @param query a checked query: its brackets match, and it has no comments
 * @param workspaceId a UUID that does not come from the caller
 */
export function scopedStatement(
  query: CheckedQuery,
  database: string,
  workspaceId: string,
  { rows, asOf }: StatementOptions = {},
): string {
  const limit = rows === undefined ? '' : ` LIMIT ${rows}`
  const scope = scopeOf(database, workspaceId, query, asOf)
  return `${scope === '' ? '' : `WITH ${scope} `}SELECT * FROM (${query.text})${limit}`
}

interface StatementOptions {
  /** Maximum of rows. */
  readonly rows?: number | undefined
  /** Unix milliseconds: the query sees the rows that were known then. */
  readonly asOf?: number | undefined
}

/** A second layer of isolation, in case a query reaches a stored table after all. */
export function workspaceFilters(database: string, workspaceId: string): string {
  const filters = STORED_TABLES.map(
    (table) => `'${database}.${table}': 'workspace_id = toUUID(\\'${checkedUuid(workspaceId)}\\')'`,
  )
  return `{${filters.join(', ')}}`
}

/** Omits tables that the query cannot name, because each one costs the engine time. */
function scopeOf(database: string, workspaceId: string, query: CheckedQuery, asOf: number | undefined): string {
  const id = checkedUuid(workspaceId)
  return [...TABLES]
    .filter(([table]) => query.text.includes(table))
    .map(([name, table]) => {
      const { final, isForAll, stored = name, clauses = '' } = table
      const unknown = asOf === undefined ? [] : (table.changes?.unknown ?? [])
      const columns = table.columns.filter((column) => !unknown.includes(column.name))
      const list = columns.flatMap((column) => expressionsOf(column, query)).join(', ') || columns[0].name
      const own = isForAll === true ? [] : [`workspace_id = toUUID('${id}')`]
      if (asOf !== undefined) {
        const read = columns.filter((column) => isRead(column, query)).map((column) => column.name)
        return `${name} AS (SELECT ${list} FROM ${rowsAsOf({ name, table, database, own, read, asOf })})`
      }
      const scope = own.map((condition) => ` PREWHERE ${condition}`).join('')
      return `${name} AS (SELECT ${list} FROM ${database}.${stored}${final ? ' FINAL' : ''}${scope} ${clauses})`
    })
    .join(', ')
}

function isRead({ name, isByNameOnly }: TableColumn, query: CheckedQuery): boolean {
  return query.text.includes(name) || (query.usesWholeRows && isByNameOnly !== true)
}

function expressionsOf(column: TableColumn, query: CheckedQuery): string[] {
  if (!isRead(column, query)) return []
  const { name, from } = column
  const { jsonPaths, numberPaths } = query
  if (jsonPaths !== null && JSON_COLUMNS.includes(name)) {
    const paths = jsonPaths.filter((path) => path.startsWith(`${name}.`))
    return paths.map((path) => {
      const value = numberPaths.includes(path) ? numberExpression(path) : pathExpression(path)
      return `${value} AS \`${path}\``
    })
  }
  return [from === undefined ? name : `${from} AS ${name}`]
}

/** The id becomes part of a statement's text, so it must be a plain UUID. */
function checkedUuid(id: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw new Error('the workspace id is not a UUID')
  return id
}
