import { Elysia } from 'elysia'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { SessionReader } from './reader.ts'
import { ListSessions, SessionPage, SessionParams, SessionRecord, UserParams, UserRecord } from './schema.ts'
import type { UserReader } from './users.ts'

interface SessionRoutesDeps {
  readonly guards: Guards
  readonly sessions: SessionReader
  readonly users: UserReader
}

/** Sessions and users of all runs, hosted or reported (docs/runs.md#sessions-and-users). */
export function sessionRoutes({ guards, sessions, users }: SessionRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { tags: ['Sessions'], security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'admin'))
    .get('/sessions', ({ caller, query }) => sessions.list(caller, query), {
      query: ListSessions,
      response: SessionPage,
      detail: {
        operationId: 'listSessions',
        summary: 'List sessions',
        description:
          'Sessions that the service itself runs, and those that reported runs name. A session is listed if one of ' +
          'its runs matches all conditions; its place is that of the newest run that does, newest first. A page may ' +
          'have fewer sessions than asked for, or none, while `next_cursor` says that more may follow. An agent key ' +
          'sees the runs of its own agent.',
      },
    })
    .get('/sessions/:session_id', ({ caller, params }) => sessions.get(caller, params.session_id), {
      params: SessionParams,
      response: SessionRecord,
      detail: {
        operationId: 'getSession',
        summary: 'Read a session',
        description: 'Its totals. `GET /api/v1/runs?session_id=` lists its runs.',
      },
    })
    .get('/users/:external_user_id', ({ caller, params }) => users.get(caller, params.external_user_id), {
      params: UserParams,
      response: UserRecord,
      detail: {
        operationId: 'getUser',
        summary: 'Read a user',
        description:
          'Totals of the runs that name this user. `GET /api/v1/sessions?external_user_id=` and ' +
          '`GET /api/v1/runs?external_user_id=` list its sessions and runs. An agent key sees those of its own agent.',
      },
    })
}
