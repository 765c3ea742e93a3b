import { TENANT_WORKLOAD } from '../../stores/clickhouse/protocol.ts'
import { type CheckedQuery, STATEMENT_BYTES_MAX } from './guard.ts'
import { DEFAULT_QUERY_CAPS, type QueryCaps } from './query-caps.ts'
import { workspaceFilters } from './views.ts'

const DISK_BYTES_MAX = 2 * 2 ** 30

/** The names of these settings, which requests cannot change. */
export const SESSION_SETTINGS: ReadonlySet<string> = new Set(
  Object.keys(sessionSettings('default', '00000000-0000-0000-0000-000000000000')),
)

/**
 * Third layer around tenant SQL: a read-only session, limited to its own rows and to the caps.
 * @param query default: one that can fail because of a value
 */
export function sessionSettings(
  database: string,
  workspaceId: string,
  caps: Pick<QueryCaps, 'seconds' | 'memoryBytes' | 'resultBytes'> = DEFAULT_QUERY_CAPS,
  query: Pick<CheckedQuery, 'isInfallible'> = { isInfallible: false },
): Record<string, string | number> {
  return {
    workload: TENANT_WORKLOAD,
    readonly: 1,
    additional_table_filters: workspaceFilters(database, workspaceId),
    // A projection is read without the scope's PREWHERE: only for queries in which no value can fail.
    optimize_use_projections: query.isInfallible ? 1 : 0,
    max_execution_time: caps.seconds,
    max_memory_usage: caps.memoryBytes,
    max_temporary_data_on_disk_size_for_query: DISK_BYTES_MAX,
    max_result_bytes: caps.resultBytes,
    result_overflow_mode: 'throw',
    max_query_size: STATEMENT_BYTES_MAX,
    // Keeps the order of the caller's query, although it becomes a subquery.
    query_plan_remove_redundant_sorting: 0,
    // Values read by a JSON path may have any type, and queries need to compare and group by them.
    allow_suspicious_types_in_group_by: 1,
    allow_suspicious_types_in_order_by: 1,
    // A payload such as {"a": 1, "a": 2} is accepted, so it must not break a query.
    type_json_skip_duplicated_paths: 1,
    // Strings stay strings: they become dates only if the query casts them.
    input_format_try_infer_dates: 0,
    input_format_try_infer_datetimes: 0,
    date_time_output_format: 'iso',
    date_time_input_format: 'best_effort',
    cast_string_to_date_time_mode: 'best_effort',
  }
}
