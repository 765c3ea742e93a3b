import type { CheckedQuery } from './guard.ts'
import { JSON_COLUMNS, pathExpression } from './json-paths.ts'

/**
 * What tenant SQL sees: tables that are already limited to the rows of one workspace. They are common table
 * expressions put around the query, because a name resolves to the nearest one: the query's own CTE may hide a table
 * of ours, but no spelling of a name leads past them to the stored tables of everyone.
 */

export interface TableColumn {
  readonly name: string
  /** As the query sees it. */
  readonly type: string
  /** How it is made from the stored column of that name, if it is not that. */
  readonly from?: string
}

export interface ScopedTable {
  readonly final: boolean
  /** Says nothing of any tenant, and the same to all of them. */
  readonly isForAll?: true
  readonly columns: readonly TableColumn[]
}

/** The tables of docs/specification.md#tables. */
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
    // The latest state of each, once.
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

/** The database that tenant SQL is in: it holds nothing (see the migrations). */
export function scopeDatabase(database: string): string {
  return `${database}_scope`
}

/**
 * A statement that answers `query`, with at most `rows` rows if that is given, seeing one workspace.
 *
 * The workspace is a PREWHERE and not a WHERE: ClickHouse joins conditions of a WHERE and may try the query's own ones
 * first, on everyone's rows, and an error such a condition raises (`throwIf`, a failing cast) would tell what is in
 * them. Rows that fail a PREWHERE are dropped while they are read, before anything else sees them.
 *
 * A query that takes JSON columns apart by path only gets those paths as columns, of just these names, in their place.
 *
 * @param query its brackets match, and nothing in it is commented out
 * @param workspaceId a UUID of ours
 */
export function scopedStatement(query: CheckedQuery, database: string, workspaceId: string, rows?: number): string {
  const limit = rows === undefined ? '' : ` LIMIT ${rows}`
  const scope = scopeOf(database, workspaceId, query)
  return `${scope === '' ? '' : `WITH ${scope} `}SELECT * FROM (${query.text})${limit}`
}

/** Every stored table with rows of tenants (see the migrations). */
const STORED_TABLES = [
  ...Object.keys(TABLES).filter((table) => TABLES[table].isForAll !== true),
  'run_changes',
  'task_changes',
]

/** A second lock for the case that a query reached a stored table all the same. */
export function workspaceFilters(database: string, workspaceId: string): string {
  const filters = STORED_TABLES.map(
    (table) => `'${database}.${table}': 'workspace_id = toUUID(\\'${checkedUuid(workspaceId)}\\')'`,
  )
  return `{${filters.join(', ')}}`
}

/** Tables that the query cannot name are left out: each costs the engine time. */
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

/** The id goes into the text of a statement, so nothing else may. */
function checkedUuid(id: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw new Error('a workspace id that is no UUID')
  return id
}

function text(name: string): TableColumn {
  return { name, type: 'String', from: `CAST(${name}, 'String')` }
}

/**
 * Parsed only by queries that use the column. Null where ClickHouse's JSON cannot hold what JSON can (a lone surrogate, a
 * number past any type): one such payload must not break every query.
 */
function json(name: string): TableColumn {
  return { name, type: 'Nullable(JSON)', from: `accurateCastOrNull(${name}, 'JSON')` }
}
