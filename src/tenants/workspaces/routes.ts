import { Elysia } from 'elysia'
import { PageQuery } from '../../base/http/schema.ts'
import type { Guards } from '../keys/guards.ts'
import { type Caller, CreateAgentKey, NewKey } from '../keys/schema.ts'
import { SECURITY } from '../keys/security.ts'
import type { KeyStore } from '../keys/store.ts'
import {
  CreateWorkspace,
  EditWorkspace,
  NewWorkspace,
  OwnWorkspace,
  RecountBegun,
  WorkspacePage,
  WorkspaceParams,
  WorkspaceRecord,
} from './schema.ts'
import type { WorkspaceStore } from './store.ts'

interface WorkspaceRoutesDeps {
  readonly guards: Guards
  readonly workspaces: WorkspaceStore
  readonly keys: Pick<KeyStore, 'createForOwner'>
}

export interface OwnWorkspaceDeps {
  readonly guards: Guards
  readonly workspaces: WorkspaceStore
  /** Days that the service keeps events of any workspace; undefined: without end. */
  readonly eventRetentionDays: number | undefined
  /** Begins to count the usage of the workspace's runs again. @throws ApiError CONFLICT */
  readonly recount: (caller: Caller) => Promise<RecountBegun>
}

/** The workspace of the caller's key. */
export function ownWorkspaceRoutes({ guards, workspaces, eventRetentionDays, recount }: OwnWorkspaceDeps) {
  return new Elysia({ prefix: '/api/v1/workspace', detail: { tags: ['Workspace'], security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('reads', 'admin'))
    .get('', ({ caller }) => workspaces.own(caller, eventRetentionDays), {
      response: OwnWorkspace,
      detail: {
        operationId: 'getWorkspace',
        summary: 'Read the workspace of the key',
        description: 'Its id and name, and how long its events are kept. Only the operator can change them.',
      },
    })
    .post(
      '/recount',
      async ({ caller, set }) => {
        const begun = await recount(caller)
        set.status = 202
        return begun
      },
      {
        response: { 202: RecountBegun },
        detail: {
          operationId: 'recountUsage',
          summary: 'Count the usage of all runs again',
          description:
            'In the background, from the stored events of the external runs, by the names and prices that this version ' +
            'knows. A run of which some events have expired keeps the usage that it has, because those can no longer be ' +
            'counted; so does one whose end has reported its usage. One at a time: CONFLICT while another is running.',
          errors: ['CONFLICT'],
        },
      },
    )
}

/** Workspaces, for the operator's token (docs/workspaces.md). */
export function workspaceRoutes({ guards, workspaces, keys }: WorkspaceRoutesDeps) {
  return new Elysia({
    prefix: '/api/v1/workspaces',
    detail: { tags: ['Workspaces (operator)'], security: SECURITY.operator },
  })
    .use(guards.operator)
    .post('', ({ body, mint }) => workspaces.create(body, mint), {
      body: CreateWorkspace,
      response: NewWorkspace,
      detail: {
        operationId: 'createWorkspace',
        summary: 'Create a workspace',
        description: 'The response has its first workspace key, which is shown only there.',
      },
    })
    .get('', ({ query }) => workspaces.list(query), {
      query: PageQuery,
      response: WorkspacePage,
      detail: {
        operationId: 'listWorkspaces',
        summary: 'List workspaces',
        description: 'All workspaces, newest first, without their keys.',
      },
    })
    .post(
      '/:workspace_id/keys',
      ({ params, body, mint }) => keys.createForOwner(params.workspace_id.toLowerCase(), body, mint),
      {
        params: WorkspaceParams,
        body: CreateAgentKey,
        response: NewKey,
        detail: {
          operationId: 'createOwnerKey',
          summary: 'Create a workspace key for its owner',
          description: 'For an owner who has lost theirs. The key is shown only in this response.',
        },
      },
    )
    .patch('/:workspace_id', ({ params, body }) => workspaces.edit(params.workspace_id.toLowerCase(), body), {
      params: WorkspaceParams,
      body: EditWorkspace,
      response: WorkspaceRecord,
      detail: {
        operationId: 'editWorkspace',
        summary: 'Edit a workspace',
        description:
          'Renames, suspends or reactivates it, or sets how long its events are kept. Keys of a suspended ' +
          'workspace are refused at once.',
        errors: ['CONFLICT'],
      },
    })
}
