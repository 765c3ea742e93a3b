import { t } from 'elysia'
import { Count, Described, Named, Nullable, OneOf, Timestamp, Uuid } from '../../base/http/schema.ts'

/** Answer of `DELETE /api/v1/workspaces/:workspace_id`: how much was deleted. */
export const ErasedWorkspace = Named(
  'ErasedWorkspace',
  t.Object({
    workspace_id: Described(Uuid, 'The workspace.'),
    status: t.Literal('erased', { description: 'All of its data is deleted.' }),
    deleted: t.Object(
      {
        events: Count('Deleted events.'),
        runs: Count('Deleted runs.'),
        tasks: Count('Deleted tasks.'),
        agents: Count('Deleted agents.'),
        keys: Count('Deleted keys.'),
      },
      { description: 'The number of deleted objects.' },
    ),
  }),
)
export type ErasedWorkspace = typeof ErasedWorkspace.static

export const ErasureParams = t.Object({ erasure_id: Described(Uuid, 'The erasure.') })

/** Answer of `DELETE /api/v1/runs/:run_id`: how far the deletion is. */
export const RunErasure = Named(
  'RunErasure',
  t.Object({
    erasure_id: Described(Uuid, 'The erasure, for `GET /api/v1/erasures/:erasure_id`.'),
    status: OneOf(['running', 'done'], '`done` once no store has anything that was reported for the run.'),
    requested_at: Described(Timestamp, 'When it was first asked for.'),
    done_at: Described(Nullable(Timestamp), 'When it was verified; null until then.'),
    runs: Count('How many runs it deletes.'),
  }),
)
export type RunErasure = typeof RunErasure.static
