import { Elysia } from 'elysia'
import type { Guards } from '../../tenants/keys/guards.ts'
import { resourceRoutes } from '../../tenants/keys/resource-routes.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { Analytics } from './analytics.ts'
import { answerQuery, STREAMED_MEDIA } from './routes.ts'
import {
  CreateSavedQuery,
  DeletedQuery,
  EditSavedQuery,
  RunSavedQuery,
  SavedQuery,
  SavedQueryPage,
  SavedQueryParams,
} from './saved-schema.ts'
import type { SavedQueries } from './saved-store.ts'
import { QueryAnswer } from './schema.ts'

interface SavedQueryRoutesDeps {
  readonly guards: Guards
  readonly savedQueries: SavedQueries
  readonly analytics: Analytics
}

const PREFIX = '/api/v1/queries'
const TAG = 'Saved queries'

/** Named queries of a workspace (docs/sql.md#saved-queries). */
export function savedQueryRoutes(deps: SavedQueryRoutesDeps) {
  return new Elysia().use(managementRoutes(deps)).use(runRoute(deps))
}

function managementRoutes({ guards, savedQueries }: SavedQueryRoutesDeps) {
  return resourceRoutes(guards, {
    path: PREFIX,
    tag: TAG,
    one: 'a saved query',
    many: 'saved queries',
    params: SavedQueryParams,
    item: SavedQuery,
    page: SavedQueryPage,
    get: { description: 'Its text and the saved values of its placeholders.' },
    create: {
      body: CreateSavedQuery,
      description: 'The query is checked first. A name that is already taken is a CONFLICT.',
    },
    edit: {
      body: EditSavedQuery,
      description:
        'Changes the fields that are given; `params` and `chart` are replaced as a whole. A name that is already ' +
        'taken is a CONFLICT.',
    },
    delete: {
      answer: DeletedQuery,
      description: 'Deletes the query, not the data that it reads. While an alert uses it, this is a CONFLICT.',
    },
    store: savedQueries,
  })
}

/** Separate from the other routes, because it counts against the budget of queries. */
function runRoute({ guards, savedQueries, analytics }: SavedQueryRoutesDeps) {
  return new Elysia({ prefix: PREFIX, detail: { tags: [TAG], security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('queries', 'viewer'))
    .post(
      '/:query_id/run',
      ({ caller, params, body, request, server }) => {
        server?.timeout(request, analytics.idleSeconds)
        const answer = savedQueries
          .resolve(caller, params.query_id, body)
          .then((query): Promise<unknown> => answerQuery(analytics, caller, query, request.signal))
        // Elysia distinguishes a Response from data by the type of the promise.
        return answer as Promise<QueryAnswer> | Promise<Response>
      },
      {
        params: SavedQueryParams,
        body: RunSavedQuery,
        response: QueryAnswer,
        detail: {
          media: { 200: STREAMED_MEDIA },
          operationId: 'runSavedQuery',
          summary: 'Run a saved query',
          description: 'Responds like `POST /api/v1/query`.',
        },
      },
    )
}
