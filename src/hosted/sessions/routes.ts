import { Elysia } from 'elysia'
import { PageQuery } from '../../http/schema.ts'
import type { Guards } from '../../keys/guards.ts'
import { SECURITY } from '../../keys/security.ts'
import { DeletedSession, ListSessions, MessagePage, SessionPage, SessionParams, SessionRecord } from './schema.ts'
import type { Sessions } from './store.ts'

interface SessionRoutesDeps {
  readonly guards: Guards
  readonly sessions: Sessions
}

const tags = ['Sessions']

/** Sessions of hosted agents (docs/specification.md#sessions). */
export function sessionRoutes({ guards, sessions }: SessionRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/sessions', detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads'))
    .get('', ({ caller, query }) => sessions.list(caller, query), {
      query: ListSessions,
      response: SessionPage,
      detail: {
        tags,
        operationId: 'listSessions',
        summary: 'List sessions',
        description: 'Newest first. An agent key sees those of its own agent.',
      },
    })
    .get('/:session_id', ({ caller, params }) => sessions.get(caller, params.session_id.toLowerCase()), {
      params: SessionParams,
      response: SessionRecord,
      detail: {
        tags,
        operationId: 'getSession',
        summary: 'Read a session',
        description: 'Includes the number of messages and the run that continues the session now.',
      },
    })
    .get(
      '/:session_id/messages',
      ({ caller, params, query }) => sessions.messages(caller, params.session_id.toLowerCase(), query),
      {
        params: SessionParams,
        query: PageQuery,
        response: MessagePage,
        detail: {
          tags,
          operationId: 'listSessionMessages',
          summary: 'Read the messages of a session',
          description: 'Oldest first: a conversation is read forwards.',
        },
      },
    )
    .delete('/:session_id', ({ caller, params }) => sessions.delete(caller, params.session_id.toLowerCase()), {
      params: SessionParams,
      response: DeletedSession,
      detail: {
        tags,
        operationId: 'deleteSession',
        summary: 'Delete a session',
        description: 'Deletes its messages too. The runs of the session stay.',
      },
    })
}
