import type { CheckedQuery } from './guard.ts'
import { JSON_COLUMNS, pathExpression } from './json-paths.ts'

/**
 * The tables that tenant SQL sees, limited to the rows of one workspace. They are common table expressions around the
 * query, because names resolve to the nearest definition: the query's own CTE may hide one of these tables, but no
 * spelling of a name reaches the stored tables with everyone's rows.
 */

export interface TableColumn {
  readonly name: string
  /** The type that queries see. */
  readonly type: string
  /** SQL expression that computes it, if it is not simply the stored column of that name. */
  readonly from?: string
}

export interface ScopedTable {
  readonly final: boolean
  /** Contains no tenant data; the same for all tenants. */
  readonly isForAll?: true
  readonly columns: readonly TableColumn[]
}

/** The tables that SQL can query (docs/specification.md#tables). */
export const TABLES: Readonly<Record<string, ScopedTable>> = {
  events: {
    final: false,
    columns: [
      { name: 'seq', type: 'UInt64' },
      { name: 'event_id', type: 'String' },
      { name: 'run_id', type: 'UUID' },
      { name: 'agent_id', type: 'UUID' },
      text('type'),
      text('level'),
      json('payload'),
      { name: 'occurred_at', type: "DateTime64(3, 'UTC')" },
      { name: 'received_at', type: "DateTime64(3, 'UTC')" },
    ],
  },
  runs: {
    // FINAL returns only the latest state of each run.
    final: true,
    columns: [
      { name: 'run_id', type: 'UUID' },
      { name: 'agent_id', type: 'UUID' },
      { name: 'agent_name', type: 'String' },
      text('status'),
      text('trigger_type'),
      { name: 'external_run_id', type: 'Nullable(String)' },
      { name: 'parent_run_id', type: 'Nullable(UUID)' },
      { name: 'session_id', type: 'Nullable(UUID)' },
      { name: 'tags', type: 'Array(String)' },
      json('input'),
      json('output'),
      { name: 'error_message', type: 'Nullable(String)' },
      { name: 'created_at', type: "DateTime64(3, 'UTC')" },
      { name: 'started_at', type: "Nullable(DateTime64(3, 'UTC'))" },
      { name: 'completed_at', type: "Nullable(DateTime64(3, 'UTC'))" },
      { name: 'duration_ms', type: 'Nullable(Int64)' },
      { name: 'input_tokens', type: 'Int64' },
      { name: 'output_tokens', type: 'Int64' },
      { name: 'cost_usd', type: 'Float64' },
    ],
  },
  tasks: {
    final: true,
    columns: [
      { name: 'task_id', type: 'UUID' },
      { name: 'run_id', type: 'UUID' },
      { name: 'agent_id', type: 'UUID' },
      { name: 'name', type: 'String' },
      text('status'),
      json('input'),
      json('output'),
      { name: 'created_at', type: "DateTime64(3, 'UTC')" },
      { name: 'updated_at', type: "DateTime64(3, 'UTC')" },
    ],
  },
  // Positions whose rows were lost with a store.
  gaps: {
    final: true,
    isForAll: true,
    columns: [
      { name: 'after_seq', type: 'UInt64' },
      { name: 'through_seq', type: 'UInt64' },
      { name: 'reason', type: 'String' },
      { name: 'noticed_at', type: "DateTime64(3, 'UTC')" },
    ],
  },
}

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
 *
 * @param query a checked query: its brackets match, and it has no comments
 * @param workspaceId a UUID that does not come from the caller
 */
export function scopedStatement(query: CheckedQuery, database: string, workspaceId: string, rows?: number): string {
  const limit = rows === undefined ? '' : ` LIMIT ${rows}`
  const scope = scopeOf(database, workspaceId, query)
  return `${scope === '' ? '' : `WITH ${scope} `}SELECT * FROM (${query.text})${limit}`
}

/** All stored tables with tenant rows (see the migrations). */
const STORED_TABLES = [
  ...Object.keys(TABLES).filter((table) => TABLES[table].isForAll !== true),
  'run_changes',
  'task_changes',
]

/** A second layer of isolation, in case a query reaches a stored table after all. */
export function workspaceFilters(database: string, workspaceId: string): string {
  const filters = STORED_TABLES.map(
    (table) => `'${database}.${table}': 'workspace_id = toUUID(\\'${checkedUuid(workspaceId)}\\')'`,
  )
  return `{${filters.join(', ')}}`
}

/** Omits tables that the query cannot name, because each one costs the engine time. */
function scopeOf(database: string, workspaceId: string, { text, jsonPaths }: CheckedQuery): string {
  const id = checkedUuid(workspaceId)
  return Object.entries(TABLES)
    .filter(([table]) => text.includes(table))
    .map(([table, { columns, final, isForAll }]) => {
      const list = columns.flatMap((column) => expressionsOf(column, jsonPaths)).join(', ')
      const source = `${database}.${table}${final ? ' FINAL' : ''}`
      const own = isForAll === true ? '' : ` PREWHERE workspace_id = toUUID('${id}')`
      return `${table} AS (SELECT ${list} FROM ${source}${own})`
    })
    .join(', ')
}

function expressionsOf({ name, from }: TableColumn, jsonPaths: CheckedQuery['jsonPaths']): string[] {
  if (jsonPaths !== null && JSON_COLUMNS.includes(name)) {
    const paths = jsonPaths.filter((path) => path.startsWith(`${name}.`))
    return paths.map((path) => `${pathExpression(path)} AS \`${path}\``)
  }
  return [from === undefined ? name : `${from} AS ${name}`]
}

/** The id becomes part of a statement's text, so it must be a plain UUID. */
function checkedUuid(id: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw new Error('the workspace id is not a UUID')
  return id
}

function text(name: string): TableColumn {
  return { name, type: 'String', from: `CAST(${name}, 'String')` }
}

/**
 * Parsed only if a query uses the column. Null for values that ClickHouse's JSON type cannot represent (a lone surrogate, a
 * number too large for any type): one such payload must not break every query.
 */
function json(name: string): TableColumn {
  return { name, type: 'Nullable(JSON)', from: `accurateCastOrNull(${name}, 'JSON')` }
}
