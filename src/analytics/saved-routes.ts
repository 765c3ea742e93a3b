import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import type { Analytics } from './analytics.ts'
import { answerQuery } from './formats.ts'
import {
  CreateSavedQuery,
  DeletedQuery,
  EditSavedQuery,
  ListSavedQueries,
  RunSavedQuery,
  SavedQuery,
  SavedQueryPage,
  SavedQueryParams,
} from './saved-schema.ts'
import type { SavedQueries } from './saved-store.ts'
import { QueryAnswer } from './schema.ts'

export interface SavedQueryRoutesDeps {
  readonly guards: Guards
  readonly savedQueries: SavedQueries
  readonly analytics: Analytics
}

const PREFIX = '/api/v1/queries'
const tags = ['Saved queries']

/** Queries that a workspace keeps by name (docs/specification.md#saved-queries). */
export function savedQueryRoutes(deps: SavedQueryRoutesDeps) {
  return new Elysia().use(managementRoutes(deps)).use(runRoute(deps))
}

function managementRoutes({ guards, savedQueries }: SavedQueryRoutesDeps) {
  return new Elysia({ prefix: PREFIX })
    .use(guards.workspaceKey('reads'))
    .post('', ({ caller, body, mint, request }) => savedQueries.create(caller, body, mint, request.signal), {
      body: CreateSavedQuery,
      response: SavedQuery,
      detail: { tags, summary: 'Save a query under a name' },
    })
    .get('', ({ caller, query }) => savedQueries.list(caller, query), {
      query: ListSavedQueries,
      response: SavedQueryPage,
      detail: { tags, summary: 'List the saved queries of the workspace' },
    })
    .get('/:queryId', ({ caller, params }) => savedQueries.get(caller, params.queryId), {
      params: SavedQueryParams,
      response: SavedQuery,
      detail: { tags, summary: 'Read a saved query' },
    })
    .patch(
      '/:queryId',
      ({ caller, params, body, request }) => savedQueries.edit(caller, params.queryId, body, request.signal),
      {
        params: SavedQueryParams,
        body: EditSavedQuery,
        response: SavedQuery,
        detail: { tags, summary: 'Edit a saved query' },
      },
    )
    .delete('/:queryId', ({ caller, params }) => savedQueries.delete(caller, params.queryId), {
      params: SavedQueryParams,
      response: DeletedQuery,
      detail: { tags, summary: 'Delete a saved query' },
    })
}

/** Apart from the others, because it spends the budget of queries. */
function runRoute({ guards, savedQueries, analytics }: SavedQueryRoutesDeps) {
  return new Elysia({ prefix: PREFIX }).use(guards.workspaceKey('queries')).post(
    '/:queryId/run',
    ({ caller, params, body, request, server }) => {
      server?.timeout(request, analytics.idleSeconds)
      const answer = savedQueries
        .question(caller, params.queryId, body)
        .then((question): Promise<unknown> => answerQuery(analytics, caller, question, request.signal))
      // Elysia knows a response of its own apart from data by the type of the promise.
      return answer as Promise<QueryAnswer> | Promise<Response>
    },
    {
      params: SavedQueryParams,
      body: RunSavedQuery,
      response: QueryAnswer,
      detail: { tags, summary: 'Run a saved query' },
    },
  )
}
