import { t } from 'elysia'
import { Uuid } from '../http/schema.ts'

const Count = t.Integer({ minimum: 0 })

/** Answer of `DELETE /api/v1/workspaces/:workspaceId`: what there was of the workspace, and is no more. */
export const ErasedWorkspace = t.Object({
  workspace_id: Uuid,
  status: t.Literal('erased'),
  deleted: t.Object({ events: Count, runs: Count, tasks: Count, agents: Count, keys: Count }),
})
export type ErasedWorkspace = typeof ErasedWorkspace.static
