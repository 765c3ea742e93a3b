import { t } from 'elysia'
import type { RawJson } from '../base/raw-json.ts'
import { Body, Described, FreeForm, Named, Nullable, Page, PageQuery, Text, Timestamp, Uuid } from '../http/schema.ts'
import { RunQuery } from './schema.ts'

/** Wire schemas of saved queries (docs/specification.md#saved-queries). */

const NAME_LENGTH_MAX = 200
const DESCRIPTION_LENGTH_MAX = 10_000

/** Running a saved query takes the same options as `POST /api/v1/query`, except for the query itself. */
const { query: QueryText, ...runOptions } = RunQuery.properties

const Name = Text({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'Unique in the workspace.' })
const Description = Nullable(Text({ maxLength: DESCRIPTION_LENGTH_MAX, description: 'What the query is for.' }))

/** Body of `POST /api/v1/queries`. */
export const CreateSavedQuery = Named(
  'CreateSavedQuery',
  Body({ name: Name, description: t.Optional(Description), query: QueryText, params: runOptions.params }),
)
export type CreateSavedQuery = typeof CreateSavedQuery.static

/** Body of `PATCH /api/v1/queries/:query_id`: given members change; `params` are replaced as a whole. */
export const EditSavedQuery = Named(
  'EditSavedQuery',
  Body({
    name: t.Optional(Name),
    description: t.Optional(Description),
    query: t.Optional(QueryText),
    params: runOptions.params,
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
      created_at: Described(Timestamp, 'When it was created.'),
      updated_at: Described(Timestamp, 'When it was last edited.'),
    },
    { description: 'A query saved in the workspace under a name.' },
  ),
)
export type SavedQuery = typeof SavedQuery.static

/** Query of `GET /api/v1/queries`. */
export const ListSavedQueries = t.Object(PageQuery, { additionalProperties: false })
export type ListSavedQueries = typeof ListSavedQueries.static

export const SavedQueryPage = Page('SavedQueryPage', SavedQuery)
export type SavedQueryPage = typeof SavedQueryPage.static

/** `:query_id` of a path. */
export const SavedQueryParams = t.Object({ query_id: Described(Uuid, 'The saved query.') })

export const DeletedQuery = Named(
  'DeletedQuery',
  t.Object({
    query_id: Described(Uuid, 'The saved query.'),
    deleted: t.Literal(true, { description: 'Always true.' }),
  }),
)
export type DeletedQuery = typeof DeletedQuery.static

/** A row of `saved_queries`. */
export interface SavedQueryRow {
  readonly query_id: string
  readonly name: string
  readonly description: string | null
  readonly query: string
  readonly params: RawJson
  readonly created_at: Date
  readonly updated_at: Date
}

export function toSavedQuery(row: SavedQueryRow): SavedQuery {
  return { ...row, created_at: row.created_at.toISOString(), updated_at: row.updated_at.toISOString() }
}
