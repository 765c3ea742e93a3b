import { lookup } from '../../base/lookup.ts'
import { KINDS } from '../../stores/journal/kinds.ts'

/** A column of a table that SQL can query. */
export interface TableColumn {
  readonly name: string
  /** The type that queries see. */
  readonly type: string
  /** SQL expression that computes it, if it is not simply the stored column of that name. */
  readonly from?: string
  /** `from` is made of other stored columns. */
  readonly isComputed?: true
  /** Not part of `*`: it must be named. */
  readonly isByNameOnly?: true
}

/** Where earlier states of the rows are, for a table that has only the latest: see `as-of.ts`. */
interface Changes {
  /** The table of all states. */
  readonly table: string
  /** The columns that identify a row. */
  readonly key: readonly string[]
  /** Columns that it lacks, computed from those of a change and of the `latest` state. */
  readonly fromLatest?: ReadonlyMap<string, string>
  /** Columns that are not known as of an earlier time. */
  readonly unknown?: readonly string[]
}

/** A table that SQL can query: see `scopedStatement`. */
export interface ScopedTable {
  /** Read with FINAL: only the latest state of each row. */
  readonly final: boolean
  /** The stored table, if it has another name. */
  readonly stored?: string
  /** SQL clauses that follow the condition on the workspace. */
  readonly clauses?: string
  /** Contains no tenant data; the same for all tenants. */
  readonly isForAll?: true
  /** Since when a stored row, or this state of it, has been known. */
  readonly knownSince: string
  readonly changes?: Changes
  readonly columns: readonly TableColumn[]
}

const TIME = "DateTime64(3, 'UTC')"
const NULLABLE_TIME = `Nullable(${TIME})`

const AGENT_SETTINGS = [
  columns('String', 'name'),
  columns('Nullable(String)', 'description'),
  texts('runtime_type', 'status'),
  columns('Nullable(String)', 'model', 'prompt', 'tools'),
  jsons('output_schema', 'input_schema'),
  columns('Array(String)', 'expose'),
  columns('Nullable(Bool)', 'allow_input_requests'),
  columns('Nullable(Float64)', 'temperature'),
  columns('Nullable(Int64)', 'max_output_tokens', 'max_steps', 'timeout_seconds'),
  columns('Nullable(Float64)', 'budget_usd'),
  columns('Nullable(Int64)', 'stale_after_seconds'),
  jsons('metadata'),
].flat()

const SEARCH_TEXT: TableColumn = { name: 'search_text', type: 'String', isByNameOnly: true }

/** The tables that SQL can query (docs/sql.md#tables). */
export const TABLES = lookup<ScopedTable>({
  events: {
    final: false,
    knownSince: 'received_at',
    columns: [
      columns('UInt64', 'seq'),
      columns('String', 'event_id'),
      columns('UUID', 'run_id', 'agent_id'),
      columns('Nullable(UUID)', 'task_id'),
      texts('type', 'level'),
      jsons('payload'),
      SEARCH_TEXT,
      columns(TIME, 'occurred_at', 'received_at'),
    ].flat(),
  },
  runs: {
    final: true,
    knownSince: 'received_at',
    changes: {
      table: KINDS.run.rows,
      key: ['run_id'],
      // The input never changes, and the output is set with the end.
      fromLatest: lookup({ input: 'latest.input', output: 'if(change.completed_at IS NULL, NULL, latest.output)' }),
      unknown: ['search_text'],
    },
    columns: [
      columns('UUID', 'run_id', 'agent_id'),
      columns('String', 'agent_name'),
      columns('Int64', 'agent_version'),
      texts('status', 'trigger_type'),
      columns('Nullable(String)', 'external_run_id'),
      columns('Nullable(UUID)', 'parent_run_id'),
      columns('Nullable(String)', 'session_id', 'external_user_id'),
      columns('Array(String)', 'tags'),
      jsons('metadata', 'input', 'output'),
      columns('Nullable(String)', 'error_message'),
      jsons('error_detail'),
      SEARCH_TEXT,
      columns(TIME, 'created_at'),
      columns(NULLABLE_TIME, 'started_at', 'completed_at'),
      columns('Nullable(Int64)', 'duration_ms'),
      computed('Nullable(Int64)', 'active_ms', 'duration_ms - least(duration_ms, waiting_ms)'),
      columns('Int64', 'waiting_ms'),
      columns(NULLABLE_TIME, 'waiting_since'),
      columns('Int64', 'input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens', 'reasoning_tokens'),
      columns('Float64', 'cost_usd'),
    ].flat(),
  },
  tasks: {
    final: true,
    knownSince: 'received_at',
    changes: { table: KINDS.task.rows, key: ['run_id', 'task_id'] },
    columns: [
      columns('UUID', 'task_id', 'run_id', 'agent_id'),
      columns('Nullable(UUID)', 'parent_task_id'),
      columns('String', 'name'),
      texts('status'),
      jsons('input', 'output'),
      columns('Nullable(String)', 'error_message'),
      columns(TIME, 'created_at', 'updated_at'),
      columns(NULLABLE_TIME, 'started_at', 'completed_at'),
    ].flat(),
  },
  scores: {
    final: true,
    knownSince: 'received_at',
    changes: { table: KINDS.score.rows, key: ['run_id', 'score_id'] },
    columns: [
      columns('String', 'score_id'),
      columns('UUID', 'run_id', 'agent_id'),
      columns('Nullable(UUID)', 'task_id'),
      columns('Nullable(String)', 'event_id', 'session_id'),
      texts('name'),
      columns('Nullable(Float64)', 'value'),
      texts('data_type'),
      columns('Nullable(String)', 'label', 'text', 'comment'),
      texts('source'),
      jsons('metadata'),
      columns('UInt64', 'seq'),
      columns(TIME, 'created_at', 'received_at'),
    ].flat(),
  },
  // Stored in every state, because there are few.
  pauses: {
    final: true,
    knownSince: 'received_at',
    clauses: 'ORDER BY seq DESC LIMIT 1 BY run_id, pause_id',
    columns: [
      columns('UUID', 'pause_id', 'run_id', 'agent_id'),
      texts('kind', 'status'),
      columns('Nullable(String)', 'tool'),
      jsons('input', 'edited_input'),
      columns('Nullable(String)', 'question'),
      columns('Array(String)', 'options'),
      columns('Nullable(String)', 'answer', 'comment'),
      columns(TIME, 'requested_at'),
      columns(NULLABLE_TIME, 'expires_at', 'decided_at'),
      computed('Nullable(Int64)', 'waiting_ms', "dateDiff('millisecond', requested_at, decided_at)"),
      columns('Nullable(UUID)', 'decided_by'),
      columns('Nullable(String)', 'decided_by_person'),
    ].flat(),
  },
  agents: {
    final: true,
    stored: 'agent_versions',
    knownSince: 'version_created_at',
    clauses: 'ORDER BY version DESC LIMIT 1 BY agent_id',
    columns: [
      columns('UUID', 'agent_id'),
      AGENT_SETTINGS,
      columns('Int64', 'version'),
      computed(TIME, 'created_at', 'agent_created_at'),
      computed(TIME, 'updated_at', 'version_created_at'),
    ].flat(),
  },
  agent_versions: {
    final: true,
    knownSince: 'version_created_at',
    columns: [
      columns('UUID', 'agent_id'),
      columns('Int64', 'version'),
      AGENT_SETTINGS,
      computed(TIME, 'created_at', 'version_created_at'),
      columns('Nullable(UUID)', 'created_by'),
      columns('Nullable(String)', 'created_by_person'),
      columns('Array(String)', 'changes'),
      columns('Nullable(Int64)', 'restored_from'),
    ].flat(),
  },
  deliveries: {
    final: false,
    knownSince: 'received_at',
    columns: [
      columns('String', 'delivery_id'),
      columns('UUID', 'webhook_id'),
      texts('type'),
      columns('Nullable(UUID)', 'run_id'),
      computed('UInt64', 'seq', 'activity_seq'),
      columns('Int64', 'attempt'),
      texts('status'),
      columns('Nullable(Int64)', 'http_status'),
      columns('Int64', 'duration_ms'),
      columns('Nullable(String)', 'response'),
      columns(TIME, 'at'),
    ].flat(),
  },
  alert_states: {
    final: true,
    knownSince: 'received_at',
    columns: [
      columns('UUID', 'alert_id'),
      columns('String', 'series'),
      texts('state', 'previous_state'),
      columns('Nullable(Float64)', 'value'),
      columns('UInt64', 'seq'),
      columns(TIME, 'at'),
    ].flat(),
  },
  // Positions whose rows were lost with a store.
  gaps: {
    final: true,
    isForAll: true,
    knownSince: 'noticed_at',
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

function computed(type: string, name: string, from: string): TableColumn[] {
  return [{ name, type, from, isComputed: true }]
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
