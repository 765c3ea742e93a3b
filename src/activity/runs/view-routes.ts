import { Elysia } from 'elysia'
import { PageQuery } from '../../base/http/schema.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { DeletedRunView, PutRunView, RenameRunView, RunView, RunViewPage, RunViewParams } from './view-schema.ts'
import type { RunViews } from './view-store.ts'

/** Views of the list of runs (docs/specification.md#views). */
export function runViewRoutes({ guards, views }: { readonly guards: Guards; readonly views: RunViews }) {
  return new Elysia({ prefix: '/api/v1/views', detail: { tags: ['Views'], security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('reads'))
    .put('/:name', ({ caller, params, body }) => views.put(caller, params.name, body), {
      params: RunViewParams,
      body: PutRunView,
      response: RunView,
      detail: {
        operationId: 'setView',
        summary: 'Save a view',
        description: 'Creates it, or replaces what it shows.',
        errors: ['CONFLICT'],
      },
    })
    .get('', ({ caller, query }) => views.list(caller, query), {
      query: PageQuery,
      response: RunViewPage,
      detail: { operationId: 'listViews', summary: 'List views', description: 'Newest first.' },
    })
    .patch('/:name', ({ caller, params, body }) => views.rename(caller, params.name, body), {
      params: RunViewParams,
      body: RenameRunView,
      response: RunView,
      detail: {
        operationId: 'renameView',
        summary: 'Rename a view',
        description: 'A name that is already taken is a CONFLICT.',
        errors: ['CONFLICT'],
      },
    })
    .delete('/:name', ({ caller, params }) => views.delete(caller, params.name), {
      params: RunViewParams,
      response: DeletedRunView,
      detail: { operationId: 'deleteView', summary: 'Delete a view', description: 'Deletes it for everyone.' },
    })
}
