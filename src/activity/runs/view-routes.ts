import { PageQuery } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { versionedRoutes } from '../../tenants/keys/versioned-routes.ts'
import { DeletedRunView, PutRunView, RenameRunView, RunView, RunViewPage, RunViewParams } from './view-schema.ts'
import type { RunViews } from './view-store.ts'

/** Views of the list of runs (docs/runs.md#views). */
export function runViewRoutes({ guards, views }: { readonly guards: Guards; readonly views: RunViews }) {
  return versionedRoutes(guards, '/api/v1/views', 'Views')
    .put('/:name', ({ caller, params, body, request }) => views.put(caller, params.name, body, ifMatch(request)), {
      params: RunViewParams,
      body: PutRunView,
      response: RunView,
      detail: {
        operationId: 'setView',
        summary: 'Save a view',
        description: 'Creates it, or replaces what it shows. With `If-Match` only the latter.',
      },
    })
    .get('', ({ caller, query }) => views.list(caller, query), {
      query: PageQuery,
      response: RunViewPage,
      detail: { operationId: 'listViews', summary: 'List views', description: 'Newest first.' },
    })
    .patch('/:name', ({ caller, params, body, request }) => views.rename(caller, params.name, body, ifMatch(request)), {
      params: RunViewParams,
      body: RenameRunView,
      response: RunView,
      detail: {
        operationId: 'renameView',
        summary: 'Rename a view',
        description: 'A name that is already taken is a CONFLICT.',
      },
    })
    .delete('/:name', ({ caller, params, request }) => views.delete(caller, params.name, ifMatch(request)), {
      params: RunViewParams,
      response: DeletedRunView,
      detail: { operationId: 'deleteView', summary: 'Delete a view', description: 'Deletes it for everyone.' },
    })
}
