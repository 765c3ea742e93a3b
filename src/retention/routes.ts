import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import { SECURITY } from '../keys/security.ts'
import { WorkspaceParams } from '../workspaces/schema.ts'
import type { Erasure } from './erasure.ts'
import { ErasedWorkspace } from './schema.ts'

export interface ErasureRoutesDeps {
  readonly guards: Guards
  readonly erasure: Erasure
}

/** The end of a workspace, for the operator's token. */
export function erasureRoutes({ guards, erasure }: ErasureRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/workspaces', detail: { security: SECURITY.operator } })
    .use(guards.operator)
    .delete(
      '/:workspaceId',
      ({ params, request, server }) => {
        // The connection may be silent for as long as the stores need.
        server?.timeout(request, 0)
        return erasure.erase(params.workspaceId.toLowerCase())
      },
      {
        params: WorkspaceParams,
        response: ErasedWorkspace,
        detail: {
          tags: ['Workspaces (operator)'],
          operationId: 'eraseWorkspace',
          summary: 'Erase a workspace',
          description:
            'Its keys and feeds die at once; the answer comes when everything is verified to be gone. After an ' +
            'UNAVAILABLE, a crash or a lost answer call again: it goes on where it was, and answers the same.',
        },
      },
    )
}
