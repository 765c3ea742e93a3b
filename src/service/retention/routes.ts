import { Elysia } from 'elysia'
import { RunParams } from '../../activity/runs/schema.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { WorkspaceParams } from '../../tenants/workspaces/schema.ts'
import type { Erasure } from './erasure.ts'
import { ErasedWorkspace, ErasureParams, RunErasure, RunScoreParams } from './schema.ts'

interface ErasureRoutesDeps {
  readonly guards: Guards
  readonly erasure: Erasure
}

/** Deletion of workspaces and of single runs. */
export function erasureRoutes(deps: ErasureRoutesDeps) {
  return new Elysia().use(workspaceErasureRoutes(deps)).use(runErasureRoutes(deps))
}

/** For the operator. */
function workspaceErasureRoutes({ guards, erasure }: ErasureRoutesDeps) {
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

/** For workspace keys. */
function runErasureRoutes({ guards, erasure: { runs } }: ErasureRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { tags: ['Runs'], security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('reads', 'admin'))
    .delete(
      '/runs/:run_id',
      async ({ caller, params, set }) => {
        const begun = await runs.begin(caller, params.run_id)
        set.status = 202
        return begun
      },
      {
        params: RunParams,
        response: { 202: RunErasure },
        detail: {
          operationId: 'deleteRun',
          summary: 'Delete a run',
          description:
            'Only a run that has ended: CONFLICT with `run_live` for another one, and for a child run of a hosted run that ' +
            'has not ended. It can no longer be read at once; ' +
            'what was reported for it leaves feeds and SQL within about a minute. A repeat returns the same erasure.',
          errors: ['CONFLICT'],
        },
      },
    )
    .delete(
      '/runs/:run_id/scores/:score_id',
      async ({ caller, params, set }) => {
        const begun = await runs.begin(caller, params.run_id, params.score_id)
        set.status = 202
        return begun
      },
      {
        params: RunScoreParams,
        response: { 202: RunErasure },
        detail: {
          operationId: 'deleteScore',
          summary: 'Delete a score',
          description:
            'It leaves the list of scores at once, feeds and SQL within about a minute. Its id stays used: a score with it ' +
            'is CONFLICT with `id_taken`. A repeat returns the same erasure.',
          errors: ['CONFLICT'],
        },
      },
    )
    .get('/erasures/:erasure_id', ({ caller, params }) => runs.get(caller, params.erasure_id), {
      params: ErasureParams,
      response: RunErasure,
      detail: {
        operationId: 'getErasure',
        summary: 'Read an erasure',
        description: 'Whether the deletion of a run or a score is complete.',
      },
    })
}
