import { t } from 'elysia'
import { ApiError, invalid } from '../../../base/errors.ts'
import { COMMA, skipSpace, skipValue, terminated } from '../../../base/http/json-scan.ts'
import { Body, Text } from '../../../base/http/schema.ts'
import { shown } from '../../../base/http/validation-message.ts'
import { RawJson } from '../../../base/raw-json.ts'
import type { Analytics } from '../../../sql/analytics/analytics.ts'
import type { queryCatalogue } from '../../../sql/analytics/catalogue.ts'
import { RunQuery } from '../../../sql/analytics/schema.ts'
import { type OwnTool, ownTool } from './tool.ts'

/** What a model can read at once. */
const ROWS_MAX = 200
const BYTES_MAX = 64 * 1024
/** The engine's JSON is not nested deeper. */
const LEVELS_MAX = 1_000

const Columns = t.Array(t.Object({ name: t.String(), type: t.String() }))

const QueryInput = Body({
  sql: RunQuery.properties.query,
  params: RunQuery.properties.params,
  wait_for: RunQuery.properties.wait_for,
})

const QueryOutput = t.Object({
  columns: Columns,
  rows: t.Array(t.Object({}, { additionalProperties: true })),
  complete_through: t.String({ description: 'Everything accepted up to this position was readable by the query.' }),
  truncated: t.Boolean({ description: `The result had more than ${ROWS_MAX} rows or ${BYTES_MAX / 1024} KiB.` }),
})

const DescribeInput = Body({
  table: t.Optional(Text({ maxLength: 100, description: 'Only this table, with all its columns.' })),
})

/** SQL over the workspace, as `POST /api/v1/query` offers it. */
export function sqlTools(analytics: Analytics, catalogue: ReturnType<typeof queryCatalogue>): OwnTool[] {
  return [
    ownTool({
      name: 'query',
      title: 'Query with SQL',
      description:
        'Runs one SELECT in ClickHouse SQL over the events, runs, tasks and other tables of the workspace; describe_tables ' +
        `lists them. At most ${ROWS_MAX} rows and ${BYTES_MAX / 1024} KiB: aggregate, or name the columns that you need.`,
      input: QueryInput,
      outputSchema: QueryOutput,
      annotations: { readOnlyHint: true, openWorldHint: false },
      audience: 'workspace',
      budget: 'queries',
      run: async ({ caller, signal }, { sql, ...rest }) => {
        const answer = await analytics.run(caller, { query: sql, ...rest }, signal, ROWS_MAX).catch(aboutSql)
        const { rows, isCut } = withinBytes(answer.rows)
        return {
          columns: answer.columns,
          rows,
          complete_through: answer.complete_through,
          truncated: answer.truncated || isCut,
        }
      },
    }),
    ownTool({
      name: 'describe_tables',
      title: 'Describe the tables',
      description: 'The tables that query can read, with their columns, types and limits; and example queries.',
      input: DescribeInput,
      annotations: { readOnlyHint: true, openWorldHint: false },
      audience: 'workspace',
      run: (_context, { table }) => {
        const { tables, examples, caps } = catalogue
        if (table === undefined) return { tables, examples, caps }
        const found = tables.filter(({ name }) => name === table)
        if (found.length > 0) return { tables: found, caps }
        throw invalid('table', `expected one of ${tables.map(({ name }) => name).join(', ')}; got ${shown(table)}`)
      },
    }),
  ]
}

/** The argument that the HTTP API calls `query` has another name here. */
function aboutSql(error: unknown): never {
  const problem = error instanceof ApiError ? error.problemAt('query') : undefined
  throw problem === undefined ? error : (error as ApiError).at('sql', problem)
}

/** The first rows that fit. */
function withinBytes(rows: RawJson): { readonly rows: RawJson; readonly isCut: boolean } {
  if (rows.text.length * 3 <= BYTES_MAX || Buffer.byteLength(rows.text) <= BYTES_MAX) return { rows, isCut: false }
  const source = terminated(Buffer.from(rows.text))
  let end = 1
  for (let at = skipSpace(source, 1); ; ) {
    const next = skipSpace(source, skipValue(source, at, LEVELS_MAX))
    if (next > BYTES_MAX) break
    end = next
    if (source[next] !== COMMA) break
    at = skipSpace(source, next + 1)
  }
  return { rows: new RawJson(`${Buffer.from(source.subarray(0, end)).toString()}]`), isCut: true }
}
