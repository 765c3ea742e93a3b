import { Elysia } from 'elysia'
import type { PriceTable } from '../../base/conventions/prices.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { Analytics } from './analytics.ts'
import { QueryCatalogue, queryCatalogue } from './catalogue.ts'
import { type FORMATS, QueryAnswer, RunQuery } from './schema.ts'

interface QueryRoutesDeps {
  readonly guards: Guards
  readonly analytics: Analytics
  readonly modelPrices: PriceTable
}

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

/** SQL over the caller's workspace (docs/sql.md), and the tables that it can query. */
export function queryRoutes({ guards, analytics, modelPrices }: QueryRoutesDeps) {
  const catalogue = queryCatalogue(analytics.caps, modelPrices)
  const queries = new Elysia().use(guards.workspaceKey('queries', 'viewer')).post(
    '/query',
    ({ caller, body, request, server }) => {
      server?.timeout(request, analytics.idleSeconds)
      return answerQuery(analytics, caller, body, request.signal)
    },
    {
      body: RunQuery,
      response: QueryAnswer,
      detail: {
        tags: ['SQL'],
        media: { 200: STREAMED_MEDIA },
        operationId: 'runQuery',
        summary: 'Run a SQL query',
        description:
          'One SELECT over the events, runs and tasks of the workspace, in ClickHouse SQL. Formats other than ' +
          '`json` are streamed as bare bytes.',
      },
    },
  )
  const schema = new Elysia().use(guards.workspaceKey('reads', 'admin')).get('/query/schema', () => catalogue, {
    response: QueryCatalogue,
    detail: {
      tags: ['SQL'],
      operationId: 'getQuerySchema',
      summary: 'Read the schema for SQL',
      description:
        'Tables, columns and their types, with example queries, the limits of a query, and the prices of models.',
    },
  })
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.workspaceKey } }).use(queries).use(schema)
}

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
  const { name, contentType, settings } = STREAMED[format]
  const streamed = analytics.stream(caller, { ...request, outputFormat: name, outputSettings: settings }, signal)
  return streamed.then<Response, never>(
    ({ body, completeThrough }) =>
      new Response(body, { headers: { 'content-type': contentType, 'x-complete-through': completeThrough } }),
  )
}
