import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import { CreateOwnerKey, NewKey } from '../keys/schema.ts'
import type { KeyStore } from '../keys/store.ts'
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
  readonly keys: Pick<KeyStore, 'createForOwner'>
}

const tags = ['Workspaces (operator)']

/** Workspaces, for the operator's token (docs/specification.md#workspaces). */
export function workspaceRoutes({ guards, workspaces, keys }: WorkspaceRoutesDeps) {
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
    .post(
      '/:workspaceId/keys',
      ({ params, body, mint }) => keys.createForOwner(params.workspaceId.toLowerCase(), body, mint),
      {
        params: WorkspaceParams,
        body: CreateOwnerKey,
        response: NewKey,
        detail: { tags, summary: 'Make a workspace key for an owner who lost theirs' },
      },
    )
    .patch('/:workspaceId', ({ params, body }) => workspaces.edit(params.workspaceId.toLowerCase(), body), {
      params: WorkspaceParams,
      body: EditWorkspace,
      response: WorkspaceRecord,
      detail: { tags, summary: 'Rename, suspend or reactivate a workspace, or say how long its events are kept' },
    })
}
