import { t } from 'elysia'
import { Body, Deleted, EDITED, Named, Page, Text } from '../../base/http/schema.ts'
import type { RowOf } from '../../base/timestamp.ts'

/** Wire schemas of views of the list of runs (docs/runs.md#views). */

const NAME_LENGTH_MAX = 200
const QUERY_LENGTH_MAX = 4_000

const Name = (description: string) => Text({ minLength: 1, maxLength: NAME_LENGTH_MAX, description })

/** `:name` of a path. */
export const RunViewParams = t.Object({ name: Name('The view.') })

/** Body of `PUT /api/v1/views/:name`. */
export const PutRunView = Named(
  'PutRunView',
  Body({
    query: Text({
      maxLength: QUERY_LENGTH_MAX,
      description: "Filters, columns and order, as the address of the dashboard's list of runs has them.",
    }),
  }),
)
export type PutRunView = typeof PutRunView.static

/** Body of `PATCH /api/v1/views/:name`. */
export const RenameRunView = Named('RenameRunView', Body({ name: Name('The new name.') }))
export type RenameRunView = typeof RenameRunView.static

export const RunView = Named(
  'RunView',
  t.Object(
    {
      name: t.String({ description: 'Unique in the workspace.' }),
      query: t.String({ description: 'Filters, columns and order, as in `status=failed&cols=started,error`.' }),
      ...EDITED,
    },
    { description: "A view of the dashboard's list of runs, which everyone in the workspace sees." },
  ),
)
export type RunView = typeof RunView.static

export const RunViewPage = Page('RunViewPage', RunView)

export const DeletedRunView = Deleted('DeletedRunView', {
  name: t.String({ description: 'The name of the deleted view.' }),
})
export type DeletedRunView = typeof DeletedRunView.static

/** A row of `run_views`. */
export type RunViewRow = RowOf<RunView>
