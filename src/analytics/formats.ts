import type { Caller } from '../keys/schema.ts'
import type { Analytics, JsonQuery } from './analytics.ts'
import type { FORMATS, QueryAnswer, RunQuery } from './schema.ts'

interface StreamedFormat {
  /** ClickHouse's name. */
  readonly name: string
  readonly contentType: string
  readonly settings?: Readonly<Record<string, string>>
}

/** Null is written as nothing, an empty string as `""`. */
const CSV_SETTINGS = { format_csv_null_representation: '' }

/** Formats that are streamed without an envelope. */
const STREAMED: Readonly<Record<Exclude<(typeof FORMATS)[number], 'json'>, StreamedFormat>> = {
  ndjson: { name: 'JSONEachRow', contentType: 'application/x-ndjson' },
  csv: { name: 'CSVWithNames', contentType: 'text/csv; charset=utf-8; header=present', settings: CSV_SETTINGS },
  parquet: { name: 'Parquet', contentType: 'application/vnd.apache.parquet' },
  arrow: { name: 'ArrowStream', contentType: 'application/vnd.apache.arrow.stream' },
}

/** Those formats in the OpenAPI document, where each is described as bytes. */
export const STREAMED_MEDIA = Object.fromEntries(
  Object.values(STREAMED).map(({ contentType }) => [contentType.split(';')[0], {}]),
)

/**
 * Answers a query in the requested format: JSON as data of the envelope, any other format as a streamed response.
 * @throws ApiError as {@link Analytics.run}
 */
export function answerQuery(
  analytics: Analytics,
  caller: Caller,
  { format = 'json', ...request }: RunQuery,
  signal: AbortSignal,
): Promise<QueryAnswer> | Promise<Response> {
  if (format === 'json') return analytics.run(caller, request, signal)
  return streamed(analytics, caller, request, STREAMED[format], signal)
}

async function streamed(
  analytics: Analytics,
  caller: Caller,
  request: JsonQuery,
  { name, contentType, settings }: StreamedFormat,
  signal: AbortSignal,
): Promise<Response> {
  const query = { ...request, outputFormat: name, outputSettings: settings }
  const { body, completeThrough } = await analytics.stream(caller, query, signal)
  return new Response(body, { headers: { 'content-type': contentType, 'x-complete-through': completeThrough } })
}
