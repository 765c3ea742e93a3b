import { Elysia } from 'elysia'
import { PageQuery } from '../../base/http/schema.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { DeletedSession, HostedSessionParams, MessagePage } from './schema.ts'
import type { Sessions } from './store.ts'

interface SessionRoutesDeps {
  readonly guards: Guards
  readonly sessions: Sessions
}

const tags = ['Sessions']

/** Routes that only hosted sessions have: their messages, and deletion (docs/hosted-agents.md#sessions). */
export function hostedSessionRoutes({ guards, sessions }: SessionRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/sessions', detail: { security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'admin'))
    .get(
      '/:session_id/messages',
      ({ caller, params, query }) => sessions.messages(caller, params.session_id.toLowerCase(), query),
      {
        params: HostedSessionParams,
        query: PageQuery,
        response: MessagePage,
        detail: {
          tags,
          operationId: 'listSessionMessages',
          summary: 'Read the messages of a session',
          description: 'Of a session that the service itself runs. Oldest first: a conversation is read forwards.',
        },
      },
    )
    .delete('/:session_id', ({ caller, params }) => sessions.delete(caller, params.session_id.toLowerCase()), {
      params: HostedSessionParams,
      response: DeletedSession,
      detail: {
        tags,
        operationId: 'deleteSession',
        summary: 'Delete a session',
        description: 'One that the service itself runs. Deletes its messages too. The runs of the session stay.',
      },
    })
}
