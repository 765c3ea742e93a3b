import { Kind, Type, TypeRegistry } from '@sinclair/typebox'
import { t } from 'elysia'
import { RawJson } from '../http/raw-json.ts'
import { Body, Count, Int, Named, Text } from '../http/schema.ts'

/** Characters of a query. */
export const QUERY_LENGTH_MAX = 100_000
const PARAMS_MAX = 100

/** What an answer may be in. */
export const FORMATS = ['json', 'ndjson', 'csv', 'parquet', 'arrow'] as const

const Scalar = Named(
  'SqlScalar',
  t.Union([t.String(), t.Number(), t.Boolean(), t.Null()], { description: 'A value of a placeholder.' }),
)

const runQuery = Body({
  query: Text({ minLength: 1, maxLength: QUERY_LENGTH_MAX, description: 'One SELECT in ClickHouse SQL.' }),
  params: t.Optional(
    t.Record(t.String({ pattern: '^\\w+$' }), t.Union([Scalar, t.Array(Scalar)]), {
      maxProperties: PARAMS_MAX,
      additionalProperties: false,
      description: 'Values of `{name:Type}` placeholders. Integers beyond 2^53 as text.',
    }),
  ),
  format: t.Optional(
    t.UnionEnum([...FORMATS], {
      // Elysia would fill in the first word.
      default: undefined,
      description:
        '`json` unless given. The others are the bare bytes in that format, streamed, of all rows; ' +
        '`complete_through` is the header `X-Complete-Through`. An answer that breaks off has no end: the ' +
        'connection is cut.',
    }),
  ),
  wait_for: t.Optional(
    t.Union([Int({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), t.String({ maxLength: 100 })], {
      description: 'Holds the query until this `seq`, or this `complete_through` of an earlier answer, is readable.',
    }),
  ),
})
export const RunQuery = Named('RunQuery', runQuery)
export type RunQuery = typeof RunQuery.static

TypeRegistry.Set('RawRows', (_schema, value) => value instanceof RawJson && value.text.startsWith('['))

/** Rows as the engine printed them: 64-bit integers keep their digits. */
const RawRows = Type.Unsafe<RawJson>({
  [Kind]: 'RawRows',
  type: 'array',
  items: { type: 'object', additionalProperties: true },
  description: 'Each an object of its columns. 64-bit integers are numbers with all their digits.',
})

const queryAnswer = t.Object({
  columns: t.Array(
    t.Object({
      name: t.String({ description: 'As the query calls it.' }),
      type: t.String({ description: "As ClickHouse names it, such as `DateTime64(3, 'UTC')`." }),
    }),
    { description: 'In the order of the query.' },
  ),
  rows: RawRows,
  row_count: Count('Rows in this answer.'),
  truncated: t.Boolean({ description: 'There were more rows than an answer may have.' }),
  statistics: t.Object(
    {
      elapsed_ms: t.Number({ minimum: 0, description: 'How long the query ran.' }),
      rows_read: Count('Rows of the answer.'),
      bytes_read: Count('Bytes of the answer, as the engine holds it.'),
    },
    {
      description:
        'Rows and bytes are those of the answer. What the engine had to scan for it is not told: it reads blocks ' +
        'in which rows of several workspaces may lie, so that figure would speak of other tenants.',
    },
  ),
  complete_through: t.String({ description: 'Everything accepted up to this position was readable.' }),
})
export const QueryAnswer = Named('QueryAnswer', queryAnswer)
export type QueryAnswer = typeof QueryAnswer.static
