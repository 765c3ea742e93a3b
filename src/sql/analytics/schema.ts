import { Kind, Type, TypeRegistry } from '@sinclair/typebox'
import { t } from 'elysia'
import { Body, Count, Int, Named, OneOf, Text } from '../../base/http/schema.ts'
import { RawJson } from '../../base/raw-json.ts'

/** In characters. */
export const QUERY_LENGTH_MAX = 100_000
const PARAMS_MAX = 100

/** Formats of an answer. */
export const FORMATS = ['json', 'ndjson', 'csv', 'parquet', 'arrow'] as const

/** A larger integer has lost digits before it is checked, and the engine would take what is left, or wrap it round. */
const ExactNumber = t.Number({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })
const Scalar = Named(
  'SqlScalar',
  t.Union([t.String(), ExactNumber, t.Boolean(), t.Null()], { description: 'A value of a placeholder.' }),
)

const runQuery = Body({
  query: Text({ minLength: 1, maxLength: QUERY_LENGTH_MAX, description: 'One SELECT in ClickHouse SQL.' }),
  params: t.Optional(
    t.Record(t.String({ pattern: '^\\w+$' }), t.Union([Scalar, t.Array(Scalar)]), {
      maxProperties: PARAMS_MAX,
      additionalProperties: false,
      description: 'Values of `{name:Type}` placeholders. Numbers beyond 2^53 are refused: give them as strings.',
    }),
  ),
  format: t.Optional(
    OneOf(
      FORMATS,
      '`json` by default. Other formats stream all rows without the envelope; `complete_through` is the header ' +
        '`X-Complete-Through`. A response that fails midway is incomplete: the connection is aborted.',
    ),
  ),
  wait_for: t.Optional(
    t.Union([Int({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), t.String({ maxLength: 100 })], {
      description: 'Delays the query until this `seq`, or this `complete_through` of an earlier answer, is readable.',
    }),
  ),
})
export const RunQuery = Named('RunQuery', runQuery)
export type RunQuery = typeof RunQuery.static

TypeRegistry.Set('RawRows', (_schema, value) => value instanceof RawJson && value.text.startsWith('['))

/** Rows as the engine printed them: 64-bit integers keep all digits. */
const RawRows = Type.Unsafe<RawJson>({
  [Kind]: 'RawRows',
  type: 'array',
  items: { type: 'object', additionalProperties: true },
  description: 'Each row is an object of its columns. 64-bit integers are numbers with all their digits.',
})

const queryAnswer = t.Object({
  columns: t.Array(
    t.Object({
      name: t.String({ description: 'The name of the column in the query.' }),
      type: t.String({ description: "As ClickHouse names it, such as `DateTime64(3, 'UTC')`." }),
    }),
    { description: 'In the order of the query.' },
  ),
  rows: RawRows,
  row_count: Count('Rows in this answer.'),
  truncated: t.Boolean({ description: 'The result had more rows than the limit.' }),
  statistics: t.Object(
    {
      elapsed_ms: t.Number({ minimum: 0, description: 'How long the query ran.' }),
      rows_read: Count('Rows of the answer.'),
      bytes_read: Count('Bytes of the answer, as the engine holds it.'),
    },
    {
      description:
        'Rows and bytes are those of the answer. How much the engine scanned is not reported: it reads blocks ' +
        'that may contain rows of several workspaces, so the figure would reveal something about other tenants.',
    },
  ),
  complete_through: t.String({ description: 'Everything accepted up to this position was readable by the query.' }),
})
export const QueryAnswer = Named('QueryAnswer', queryAnswer)
export type QueryAnswer = typeof QueryAnswer.static
