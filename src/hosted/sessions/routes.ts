import { Elysia } from 'elysia'
import type { Guards } from '../../keys/guards.ts'
import {
  DeletedSession,
  ListMessages,
  ListSessions,
  MessagePage,
  SessionPage,
  SessionParams,
  SessionRecord,
} from './schema.ts'
import type { Sessions } from './store.ts'

export interface SessionRoutesDeps {
  readonly guards: Guards
  readonly sessions: Sessions
}

const tags = ['Sessions']

/** Sessions of hosted agents (docs/specification.md#sessions). */
export function sessionRoutes({ guards, sessions }: SessionRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/sessions' })
    .use(guards.anyKey('reads'))
    .get('', ({ caller, query }) => sessions.list(caller, query), {
      query: ListSessions,
      response: SessionPage,
      detail: { tags, summary: 'List sessions, newest first' },
    })
    .get('/:sessionId', ({ caller, params }) => sessions.get(caller, params.sessionId.toLowerCase()), {
      params: SessionParams,
      response: SessionRecord,
      detail: { tags, summary: 'Read a session' },
    })
    .get(
      '/:sessionId/messages',
      ({ caller, params, query }) => sessions.messages(caller, params.sessionId.toLowerCase(), query),
      {
        params: SessionParams,
        query: ListMessages,
        response: MessagePage,
        detail: { tags, summary: 'Read the messages of a session, oldest first' },
      },
    )
    .delete('/:sessionId', ({ caller, params }) => sessions.delete(caller, params.sessionId.toLowerCase()), {
      params: SessionParams,
      response: DeletedSession,
      detail: { tags, summary: 'Delete a session and what it remembers' },
    })
}
