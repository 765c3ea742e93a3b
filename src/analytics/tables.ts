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
export interface ScopedTable {
  /** Read with FINAL: only the latest state of each row. */
  readonly final: boolean
  /** Contains no tenant data; the same for all tenants. */
  readonly isForAll?: true
  readonly columns: readonly TableColumn[]
}

/** The tables that SQL can query (docs/specification.md#tables). */
export const TABLES = lookup<ScopedTable>({
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
      { name: 'started_at', type: "Nullable(DateTime64(3, 'UTC'))" },
      { name: 'completed_at', type: "Nullable(DateTime64(3, 'UTC'))" },
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
})

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
