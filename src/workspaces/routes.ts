import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import {
  CreateWorkspace,
  EditWorkspace,
  ListWorkspaces,
  NewWorkspace,
  WorkspacePage,
  WorkspaceParams,
  WorkspaceRecord,
} from './schema.ts'
import type { WorkspaceStore } from './store.ts'

export interface WorkspaceRoutesDeps {
  readonly guards: Guards
  readonly workspaces: WorkspaceStore
}

const tags = ['Workspaces (operator)']

/** Workspaces, for the operator's token (contract section 2). */
export function workspaceRoutes({ guards, workspaces }: WorkspaceRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/workspaces' })
    .use(guards.operator)
    .post('', ({ body, mint }) => workspaces.create(body, mint), {
      body: CreateWorkspace,
      response: NewWorkspace,
      detail: { tags, summary: 'Make a workspace and its first key' },
    })
    .get('', ({ query }) => workspaces.list(query), {
      query: ListWorkspaces,
      response: WorkspacePage,
      detail: { tags, summary: 'List all workspaces' },
    })
    .patch('/:workspaceId', ({ params, body }) => workspaces.edit(params.workspaceId.toLowerCase(), body), {
      params: WorkspaceParams,
      body: EditWorkspace,
      response: WorkspaceRecord,
      detail: { tags, summary: 'Rename, suspend or reactivate a workspace, or say how long its events are kept' },
    })
}
