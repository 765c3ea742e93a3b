import { Kind, Type, TypeRegistry } from '@sinclair/typebox'
import { t } from 'elysia'
import { RawJson } from '../http/raw-json.ts'
import { Body, Int, Text } from '../http/schema.ts'

/** Characters of a query. */
export const QUERY_LENGTH_MAX = 100_000
const PARAMS_MAX = 100

/** What an answer may be in. */
export const FORMATS = ['json', 'ndjson', 'csv', 'parquet', 'arrow'] as const

const Scalar = t.Union([t.String(), t.Number(), t.Boolean(), t.Null()])

export const RunQuery = Body({
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
        '`complete_through` is the header `X-Complete-Through`. An answer that breaks off has no end: the connection is cut.',
    }),
  ),
  wait_for: t.Optional(
    t.Union([Int({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), t.String({ maxLength: 100 })], {
      description: 'Holds the query until this `seq`, or this `complete_through` of an earlier answer, is readable.',
    }),
  ),
})
export type RunQuery = typeof RunQuery.static

TypeRegistry.Set('RawRows', (_schema, value) => value instanceof RawJson && value.text.startsWith('['))

/** Rows as the engine printed them: 64-bit integers keep their digits. */
const RawRows = Type.Unsafe<RawJson>({ [Kind]: 'RawRows', type: 'array', items: { type: 'object' } })

export const QueryAnswer = t.Object({
  columns: t.Array(t.Object({ name: t.String(), type: t.String() })),
  rows: RawRows,
  row_count: t.Integer(),
  truncated: t.Boolean({ description: 'There were more rows than an answer may have.' }),
  statistics: t.Object(
    { elapsed_ms: t.Number(), rows_read: t.Integer(), bytes_read: t.Integer() },
    {
      description:
        'Rows and bytes are those of the answer. What the engine had to scan for it is not told: it reads blocks ' +
        'in which rows of several workspaces may lie, so that figure would speak of other tenants.',
    },
  ),
  complete_through: t.String({ description: 'Everything accepted up to this position was readable.' }),
})
export type QueryAnswer = typeof QueryAnswer.static
