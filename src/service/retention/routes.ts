import { Elysia } from 'elysia'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { WorkspaceParams } from '../../tenants/workspaces/schema.ts'
import type { Erasure } from './erasure.ts'
import { ErasedWorkspace } from './schema.ts'

interface ErasureRoutesDeps {
  readonly guards: Guards
  readonly erasure: Erasure
}

/** Erasure of a workspace, for the operator. */
export function erasureRoutes({ guards, erasure }: ErasureRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/workspaces', detail: { security: SECURITY.operator } })
    .use(guards.operator)
    .delete(
      '/:workspace_id',
      ({ params, request, server }) => {
        // The stores may need longer than the idle timeout.
        server?.timeout(request, 0)
        return erasure.erase(params.workspace_id.toLowerCase())
      },
      {
        params: WorkspaceParams,
        response: ErasedWorkspace,
        detail: {
          tags: ['Workspaces (operator)'],
          operationId: 'eraseWorkspace',
          summary: 'Erase a workspace',
          description:
            'Its keys and feeds stop working immediately. The call responds once all data is verified to be deleted. ' +
            'After UNAVAILABLE, a crash or a lost response, repeat the call: it continues, and returns the same result.',
        },
      },
    )
}
