import { lookup } from '../base/lookup.ts'

/** A column of a table that SQL can query. */
export interface TableColumn {
  readonly name: string
  /** The type that queries see. */
  readonly type: string
  /** SQL expression that computes it, if it is not simply the stored column of that name. */
  readonly from?: string
}

/** A table that SQL can query: see `scopedStatement`. */
interface ScopedTable {
  /** Read with FINAL: only the latest state of each row. */
  readonly final: boolean
  /** Contains no tenant data; the same for all tenants. */
  readonly isForAll?: true
  readonly columns: readonly TableColumn[]
}

const TIME = "DateTime64(3, 'UTC')"
const NULLABLE_TIME = `Nullable(${TIME})`

/** The tables that SQL can query (docs/specification.md#tables). */
export const TABLES = lookup<ScopedTable>({
  events: {
    final: false,
    columns: [
      columns('UInt64', 'seq'),
      columns('String', 'event_id'),
      columns('UUID', 'run_id', 'agent_id'),
      texts('type', 'level'),
      jsons('payload'),
      columns(TIME, 'occurred_at', 'received_at'),
    ].flat(),
  },
  runs: {
    final: true,
    columns: [
      columns('UUID', 'run_id', 'agent_id'),
      columns('String', 'agent_name'),
      texts('status', 'trigger_type'),
      columns('Nullable(String)', 'external_run_id'),
      columns('Nullable(UUID)', 'parent_run_id', 'session_id'),
      columns('Array(String)', 'tags'),
      jsons('input', 'output'),
      columns('Nullable(String)', 'error_message'),
      columns(TIME, 'created_at'),
      columns(NULLABLE_TIME, 'started_at', 'completed_at'),
      columns('Nullable(Int64)', 'duration_ms'),
      columns('Int64', 'input_tokens', 'output_tokens'),
      columns('Float64', 'cost_usd'),
    ].flat(),
  },
  tasks: {
    final: true,
    columns: [
      columns('UUID', 'task_id', 'run_id', 'agent_id'),
      columns('String', 'name'),
      texts('status'),
      jsons('input', 'output'),
      columns(TIME, 'created_at', 'updated_at'),
      columns(NULLABLE_TIME, 'started_at', 'completed_at'),
    ].flat(),
  },
  // Positions whose rows were lost with a store.
  gaps: {
    final: true,
    isForAll: true,
    columns: [
      columns('UInt64', 'after_seq', 'through_seq'),
      columns('String', 'reason'),
      columns(TIME, 'noticed_at'),
    ].flat(),
  },
})

function columns(type: string, ...names: readonly string[]): TableColumn[] {
  return names.map((name) => ({ name, type }))
}

function texts(...names: readonly string[]): TableColumn[] {
  return names.map((name) => ({ name, type: 'String', from: `CAST(${name}, 'String')` }))
}

/**
 * Parsed only if a query uses the column. Null for values that ClickHouse's JSON type cannot represent (a lone surrogate, a
 * number too large for any type): one such payload must not break every query.
 */
function jsons(...names: readonly string[]): TableColumn[] {
  return names.map((name) => ({ name, type: 'Nullable(JSON)', from: `accurateCastOrNull(${name}, 'JSON')` }))
}
