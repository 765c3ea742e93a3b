import { lookup } from '../../base/lookup.ts'
import { ClickHouseFailure, type Statement } from '../../stores/clickhouse/protocol.ts'
import type { StreamQuery } from './analytics.ts'
import { emulateServer, type TakenSetting } from './introspection.ts'
import type { EngineSetting, KnownEngine } from './parser.ts'
import { SESSION_SETTINGS } from './session-settings.ts'

/** Keywords that may end a query after a column named FORMAT. */
const KEYWORDS = new Set(['ASC', 'DESC', 'FINAL', 'NULL', 'FIRST', 'LAST'])

/**
 * Formats written row by row, of any length. Formats with progress are left out: they would reveal how much the engine
 * reads, which includes other tenants' rows.
 */
const STREAMED = new Set(
  `JSON JSONStrings JSONCompact JSONCompactStrings JSONEachRow JSONLines JSONL NDJSON JSONStringsEachRow JSONCompactEachRow
   JSONCompactEachRowWithNames JSONCompactEachRowWithNamesAndTypes JSONCompactStringsEachRow
   JSONCompactStringsEachRowWithNames JSONCompactStringsEachRowWithNamesAndTypes CSV CSVWithNames CSVWithNamesAndTypes
   TSV TSVWithNames TSVWithNamesAndTypes TSVRaw TabSeparated TabSeparatedWithNames TabSeparatedWithNamesAndTypes
   TabSeparatedRaw TSKV RowBinary RowBinaryWithNames RowBinaryWithNamesAndTypes Native MsgPack BSONEachRow Parquet
   ArrowStream Null`.split(/\s+/),
)

const DOCUMENTS = new Set(
  `JSONColumns JSONCompactColumns JSONColumnsWithMetadata JSONObjectEachRow PrettyJSONEachRow PrettyNDJSON Pretty
   PrettyCompact PrettyCompactMonoBlock PrettyCompactNoEscapes PrettyMonoBlock PrettyNoEscapes PrettySpace
   PrettySpaceNoEscapes Vertical Values XML Markdown SQLInsert Arrow ORC Avro`.split(/\s+/),
)

/** Times as existing clients expect them, and no read statistics, which would include other tenants' rows. */
const OUTPUT_SETTINGS = lookup<string>({
  date_time_output_format: 'simple',
  output_format_write_statistics: '0',
})

/** Settings that only affect how values are written and read. They are passed on to the engine. */
const PASSED_ON = new Set(
  `output_format_json_quote_64bit_integers output_format_json_quote_64bit_floats output_format_json_quote_decimals
   output_format_json_quote_denormals output_format_json_escape_forward_slashes output_format_json_validate_utf8
   output_format_json_named_tuples_as_objects output_format_json_skip_null_value_in_named_tuples
   output_format_json_map_as_array_of_tuples output_format_csv_crlf_end_of_line
   output_format_csv_serialize_tuple_into_separate_columns output_format_csv_header_serialize_tuple_into_separate_columns
   output_format_tsv_crlf_end_of_line output_format_decimal_trailing_zeros output_format_pretty_color
   output_format_pretty_row_numbers output_format_pretty_highlight_digit_groups output_format_parquet_compression_method
   output_format_parquet_string_as_string output_format_arrow_compression_method output_format_arrow_string_as_string
   output_format_binary_write_json_as_string output_format_native_write_json_as_string
   output_format_msgpack_uuid_representation format_csv_delimiter format_csv_null_representation
   format_tsv_null_representation bool_true_representation bool_false_representation date_time_output_format
   date_time_input_format session_timezone join_use_nulls`.split(/\s+/),
)

/** Settings that are in effect anyway or have no meaning here: the service itself chooses the block size, for example. */
const IGNORED = new Set(
  `cancel_http_readonly_queries_on_client_close send_progress_in_http_headers http_headers_progress_interval_ms
   enable_http_compression http_zlib_compression_level http_write_exception_in_output_format async_insert
   wait_for_async_insert insert_deduplicate log_queries log_comment output_format_write_statistics max_block_size
   preferred_block_size_bytes`.split(/\s+/),
)

/** Settings whose value is checked: they may lower a cap or request what is in effect anyway. */
const LIMITS = new Set(['readonly', 'max_execution_time', 'max_result_rows', 'result_overflow_mode', 'limit', 'offset'])

type Settings = Readonly<Record<string, string>>

/**
 * Translates a statement of ClickHouse's protocol. Refuses what is not supported the way ClickHouse does. The guard
 * decides later whether the query is allowed.
 *
 * @param normalForm the query as the engine prints it, so that its clauses can be recognized
 * @throws ClickHouseFailure
 */
export function readRequest(statement: Statement, normalForm: string, engine: KnownEngine): StreamQuery {
  const database = statement.database || 'default'
  if (database !== 'default' && database !== 'system') {
    throw new ClickHouseFailure(81, 'UNKNOWN_DATABASE', `Database ${database} does not exist`)
  }
  const clause = / FORMAT (?:(\w+)|`(\w+)`)$/.exec(normalForm)
  const named = clause?.[1] ?? clause?.[2] ?? 'ASC'
  const isClause = clause !== null && !KEYWORDS.has(named)
  const format = isClause ? named : statement.defaultFormat
  const isDocument = DOCUMENTS.has(format)
  if (!isDocument && !STREAMED.has(format))
    throw new ClickHouseFailure(73, 'UNKNOWN_FORMAT', `Unknown format ${format}`)
  const server = { version: engine.version, database, settings: takenSettings(engine.settings) }
  return {
    query: emulateServer(isClause ? normalForm.slice(0, clause.index) : normalForm, server),
    outputFormat: format,
    isDocument,
    parameters: statement.parameters,
    ...readSettings(statement.settings, engine.settings),
  }
}

/**
 * Translates the settings of a request.
 * @param known all settings of the engine, by name
 * @throws ClickHouseFailure for a setting that is not allowed or does not exist
 */
function readSettings(
  settings: Settings,
  known: ReadonlyMap<string, EngineSetting>,
): Pick<StreamQuery, 'outputSettings' | 'rows' | 'seconds'> {
  const outputSettings = Object.fromEntries(OUTPUT_SETTINGS)
  for (const [name, value] of Object.entries(settings)) {
    if (PASSED_ON.has(name)) outputSettings[name] = value
    else if (!IGNORED.has(name) && !isMet(name, value, settings)) refuseChange(name, value, known.get(name))
  }
  const { max_execution_time: seconds = '0', max_result_rows: rows = '0', limit = '0', offset = '0' } = settings
  // The engine applies these at the end of the statement, after the LIMIT of the query itself.
  if (Number(limit) > 0) outputSettings.limit = limit
  if (Number(offset) > 0) outputSettings.offset = offset
  return {
    outputSettings,
    ...(Number(rows) > 0 ? { rows: Number(rows) } : {}),
    ...(Number(seconds) > 0 ? { seconds: Number(seconds) } : {}),
  }
}

/** The rows of `system.settings`. */
function takenSettings(known: ReadonlyMap<string, EngineSetting>): TakenSetting[] {
  return [...PASSED_ON, ...IGNORED, ...LIMITS].sort().flatMap((name) => {
    const setting = known.get(name)
    if (setting === undefined) return []
    const value = name === 'readonly' ? '1' : (OUTPUT_SETTINGS.get(name) ?? setting.default)
    return [{ name, type: setting.type, value }]
  })
}

/** Whether a setting can be honoured without changing the session. */
function isMet(name: string, value: string, settings: Settings): boolean {
  if (name === 'readonly') return value === '1' || value === '2'
  if (name === 'max_execution_time') return Number(value) >= 0
  if (name === 'limit' || name === 'offset') return /^\d{1,18}$/.test(value)
  // Drivers use this as a row limit; without `break`, more rows would be an error.
  if (name === 'max_result_rows')
    return value === '0' || (/^\d{1,9}$/.test(value) && settings.result_overflow_mode === 'break')
  return name === 'result_overflow_mode'
}

/**
 * Refuses a setting unless it changes nothing: obsolete settings and default values are ignored, as ClickHouse does.
 * @throws ClickHouseFailure
 */
function refuseChange(name: string, value: string, setting: EngineSetting | undefined): void {
  if (setting === undefined) throw new ClickHouseFailure(115, 'UNKNOWN_SETTING', `Unknown setting '${name}'`)
  if (setting.isObsolete || (value === setting.default && !SESSION_SETTINGS.has(name))) return
  throw new ClickHouseFailure(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`)
}
