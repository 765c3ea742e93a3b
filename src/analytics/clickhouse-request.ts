import { ClickHouseFailure, type Statement } from '../columnar/protocol.ts'
import type { StreamQuery } from './analytics.ts'
import { emulateServer } from './introspection.ts'

/**
 * What a statement of ClickHouse's protocol asks for, as far as it is for us: the rest of it is refused as ClickHouse
 * refuses it. Whether the query may be run is not decided here.
 *
 * @param normalForm the query as the engine prints it, so that its parts can be told apart
 * @throws ClickHouseFailure
 */
export function readRequest(statement: Statement, normalForm: string, version: string): StreamQuery {
  const { database } = statement
  if (database !== undefined && database !== '' && database !== 'default') {
    throw new ClickHouseFailure(81, 'UNKNOWN_DATABASE', `Database ${database} does not exist`)
  }
  const clause = / FORMAT (?:(\w+)|`(\w+)`)$/.exec(normalForm)
  const named = clause?.[1] ?? clause?.[2] ?? 'ASC'
  const isClause = clause !== null && !KEYWORDS.has(named)
  const format = isClause ? named : statement.defaultFormat
  const isDocument = DOCUMENTS.has(format)
  if (!isDocument && !STREAMED.has(format))
    throw new ClickHouseFailure(73, 'UNKNOWN_FORMAT', `Unknown format ${format}`)
  return {
    query: emulateServer(isClause ? normalForm.slice(0, clause.index) : normalForm, version),
    outputFormat: format,
    isDocument,
    parameters: statement.parameters,
    ...readSettings(statement.settings),
  }
}

/** What may stand at the end of a query, after a column called FORMAT. */
const KEYWORDS = new Set(['ASC', 'DESC', 'FINAL', 'NULL', 'FIRST', 'LAST'])

/** One row after the other: any number of them. Those with progress tell what the engine reads, also of others. */
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

/** What existing clients expect of times; and no numbers of what was read, which would speak of other tenants' rows. */
const OUTPUT_SETTINGS = { date_time_output_format: 'simple', output_format_write_statistics: '0' }

/** How values are written and read: nothing else depends on them. */
const ALLOWED_SETTINGS = new Set(
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

/** What clients ask for that holds anyway, or is of no meaning here. */
const IGNORED_SETTINGS = new Set(
  `cancel_http_readonly_queries_on_client_close send_progress_in_http_headers http_headers_progress_interval_ms
   enable_http_compression http_zlib_compression_level http_write_exception_in_output_format async_insert
   wait_for_async_insert insert_deduplicate log_queries log_comment output_format_write_statistics`.split(/\s+/),
)

function readSettings(settings: Statement['settings']): Pick<StreamQuery, 'outputSettings' | 'rows' | 'seconds'> {
  const outputSettings: Record<string, string> = { ...OUTPUT_SETTINGS }
  for (const [name, value] of Object.entries(settings)) {
    if (ALLOWED_SETTINGS.has(name)) outputSettings[name] = value
    else if (!IGNORED_SETTINGS.has(name) && !isMet(name, value)) {
      throw new ClickHouseFailure(164, 'READONLY', `Cannot modify '${name}' setting in readonly mode`)
    }
  }
  const { max_result_rows: rows = '0', max_execution_time: seconds = '0' } = settings
  return {
    outputSettings,
    ...(Number(rows) > 0 ? { rows: Number(rows) } : {}),
    ...(Number(seconds) > 0 ? { seconds: Number(seconds) } : {}),
  }

  /** Whether a demand can be met without changing the session. */
  function isMet(name: string, value: string): boolean {
    if (name === 'readonly') return value === '1' || value === '2'
    if (name === 'max_execution_time') return Number(value) >= 0
    // A driver's "at most so many rows"; without `break` it would be an error that more rows cause.
    if (name === 'max_result_rows')
      return value === '0' || (/^\d{1,9}$/.test(value) && settings.result_overflow_mode === 'break')
    return name === 'result_overflow_mode'
  }
}
