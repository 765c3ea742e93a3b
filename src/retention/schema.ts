import { t } from 'elysia'
import { Count, Described, Named, Uuid } from '../http/schema.ts'

/** Answer of `DELETE /api/v1/workspaces/:workspaceId`: what there was of the workspace, and is no more. */
export const ErasedWorkspace = Named(
  'ErasedWorkspace',
  t.Object({
    workspace_id: Described(Uuid, 'The workspace.'),
    status: t.Literal('erased', { description: 'Nothing of it is left.' }),
    deleted: t.Object(
      {
        events: Count('Events that it had.'),
        runs: Count('Runs that it had.'),
        tasks: Count('Tasks that it had.'),
        agents: Count('Agents that it had.'),
        keys: Count('Keys that it had.'),
      },
      { description: 'What was deleted.' },
    ),
  }),
)
export type ErasedWorkspace = typeof ErasedWorkspace.static
