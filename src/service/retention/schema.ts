import { t } from 'elysia'
import { Count, Described, Named, Uuid } from '../../base/http/schema.ts'

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
