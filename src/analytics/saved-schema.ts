import { t } from 'elysia'
import type { RawJson } from '../http/raw-json.ts'
import { Body, Described, FreeForm, Named, Nullable, Page, PageQuery, Text, Timestamp, Uuid } from '../http/schema.ts'
import { RunQuery } from './schema.ts'

/** What of a saved query goes over the wire (docs/specification.md#saved-queries). */

const NAME_LENGTH_MAX = 200
const DESCRIPTION_LENGTH_MAX = 10_000

/** A run of a saved query takes what `POST /api/v1/query` takes, but for the query. */
const { query: QueryText, ...howToRun } = RunQuery.properties

const Name = Text({ minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'No two of a workspace have the same.' })
const Description = Nullable(Text({ maxLength: DESCRIPTION_LENGTH_MAX, description: 'What the query is for.' }))

/** Body of `POST /api/v1/queries`. */
export const CreateSavedQuery = Named(
  'CreateSavedQuery',
  Body({ name: Name, description: t.Optional(Description), query: QueryText, params: howToRun.params }),
)
export type CreateSavedQuery = typeof CreateSavedQuery.static

/** Body of `PATCH /api/v1/queries/:queryId`: what is given changes; `params` are replaced as a whole. */
export const EditSavedQuery = Named(
  'EditSavedQuery',
  Body({
    name: t.Optional(Name),
    description: t.Optional(Description),
    query: t.Optional(QueryText),
    params: howToRun.params,
  }),
)
export type EditSavedQuery = typeof EditSavedQuery.static

/** Body of `POST /api/v1/queries/:queryId/run`. */
export const RunSavedQuery = Named(
  'RunSavedQuery',
  Body(howToRun, {
    description: '`params` take the place of the saved values of the same names; the other saved values stay.',
  }),
)
export type RunSavedQuery = typeof RunSavedQuery.static

export const SavedQuery = Named(
  'SavedQuery',
  t.Object(
    {
      query_id: Described(Uuid, 'The saved query.'),
      name: t.String({ description: 'No two of a workspace have the same.' }),
      description: Described(Nullable(t.String()), 'What the query is for.'),
      query: t.String({ description: 'One SELECT in ClickHouse SQL.' }),
      params: Described(FreeForm, 'Values of placeholders unless a run gives others.'),
      created_at: Described(Timestamp, 'When it was saved first.'),
      updated_at: Described(Timestamp, 'When it was edited last.'),
    },
    { description: 'A query that the workspace keeps by name.' },
  ),
)
export type SavedQuery = typeof SavedQuery.static

/** Query of `GET /api/v1/queries`. */
export const ListSavedQueries = t.Object(PageQuery, { additionalProperties: false })
export type ListSavedQueries = typeof ListSavedQueries.static

export const SavedQueryPage = Page('SavedQueryPage', SavedQuery)
export type SavedQueryPage = typeof SavedQueryPage.static

/** `:queryId` of a path. */
export const SavedQueryParams = t.Object({ queryId: Described(Uuid, 'The saved query.') })

export const DeletedQuery = Named(
  'DeletedQuery',
  t.Object({
    query_id: Described(Uuid, 'The saved query.'),
    deleted: t.Literal(true, { description: 'It is gone.' }),
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
