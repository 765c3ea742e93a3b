import { t } from 'elysia'
import {
  Body,
  Deleted,
  Described,
  EDITED,
  FreeForm,
  JsonText,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Uuid,
} from '../../base/http/schema.ts'
import type { RowOf } from '../../base/timestamp.ts'
import { RunQuery } from './schema.ts'

/** Wire schemas of saved queries (docs/sql.md#saved-queries). */

const NAME_LENGTH_MAX = 200
const DESCRIPTION_LENGTH_MAX = 10_000
/** A column without an alias has its expression as its name. */
const COLUMN_LENGTH_MAX = 1_000
const CHART_COLUMNS_MAX = 20

/** Running a saved query takes the same options as `POST /api/v1/query`, except for the query itself. */
const { query: QueryText, ...runOptions } = RunQuery.properties

export const Name = Text({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'Unique in the workspace.' })
const Description = Nullable(Text({ maxLength: DESCRIPTION_LENGTH_MAX, description: 'What the query is for.' }))

const Column = (description: string) => t.Optional(Text({ minLength: 1, maxLength: COLUMN_LENGTH_MAX, description }))
const Columns = (description: string) =>
  t.Optional(
    t.Array(Text({ minLength: 1, maxLength: COLUMN_LENGTH_MAX }), { maxItems: CHART_COLUMNS_MAX, description }),
  )
const Unit = (of: string) =>
  t.Optional(OneOf(['number', 'ms', 's', 'usd', 'percent', 'bytes'], `${of} \`percent\` is of a share from 0 to 1.`))

/** How a result is drawn. What is left out follows from the names and types of its columns. */
const Chart = Named(
  'Chart',
  Body(
    {
      kind: t.Optional(OneOf(['line', 'bar', 'area', 'number'], '`area` is stacked, `number` the latest values.')),
      x: Column('The column of the horizontal axis.'),
      y: Columns('The columns of the left axis.'),
      right: Columns('The columns of the right axis.'),
      series: Column('The column whose values each become a series of the first column of the left axis.'),
      unit: Unit('The unit of the left axis.'),
      right_unit: Unit('The unit of the right axis.'),
    },
    { description: 'How the page draws the result. What is left out, it chooses by the names and types of columns.' },
  ),
)
const CHART = 'How the result is drawn; null for a table.'

/** Body of `POST /api/v1/queries`. */
export const CreateSavedQuery = Named(
  'CreateSavedQuery',
  Body({
    name: Name,
    description: t.Optional(Description),
    query: QueryText,
    params: runOptions.params,
    chart: t.Optional(Nullable(Described(Chart, CHART))),
  }),
)
export type CreateSavedQuery = typeof CreateSavedQuery.static

/** Body of `PATCH /api/v1/queries/:query_id`: given members change; `params` and `chart` are replaced as a whole. */
export const EditSavedQuery = Named(
  'EditSavedQuery',
  Body({
    name: t.Optional(Name),
    description: t.Optional(Description),
    query: t.Optional(QueryText),
    params: runOptions.params,
    chart: t.Optional(Nullable(Described(Chart, CHART))),
  }),
)
export type EditSavedQuery = typeof EditSavedQuery.static

/** Body of `POST /api/v1/queries/:query_id/run`. */
export const RunSavedQuery = Named(
  'RunSavedQuery',
  Body(runOptions, {
    description: '`params` override the saved values of the same names; other saved values still apply.',
  }),
)
export type RunSavedQuery = typeof RunSavedQuery.static

export const SavedQuery = Named(
  'SavedQuery',
  t.Object(
    {
      query_id: Described(Uuid, 'The saved query.'),
      name: t.String({ description: 'Unique in the workspace.' }),
      description: Described(Nullable(t.String()), 'What the query is for.'),
      query: t.String({ description: 'One SELECT in ClickHouse SQL.' }),
      params: Described(FreeForm, 'Default values of placeholders; a run can override them.'),
      chart: Nullable(Described(JsonText(Chart), CHART)),
      ...EDITED,
    },
    { description: 'A query saved in the workspace under a name.' },
  ),
)
export type SavedQuery = typeof SavedQuery.static

export const SavedQueryPage = Page('SavedQueryPage', SavedQuery)

/** `:query_id` of a path. */
export const SavedQueryParams = t.Object({ query_id: Described(Uuid, 'The saved query.') })

export const DeletedQuery = Deleted('DeletedQuery', { query_id: Described(Uuid, 'The saved query.') })
export type DeletedQuery = typeof DeletedQuery.static

/** A row of `saved_queries`. */
export type SavedQueryRow = RowOf<SavedQuery>
