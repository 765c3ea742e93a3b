import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import { requireRole } from '../keys/schema.ts'
import { SECURITY } from '../keys/security.ts'
import {
  EditPerson,
  ListPeople,
  Nothing,
  PersonDetail,
  PersonPage,
  PersonParams,
  PersonRecord,
  SignInEnded,
  SignInParams,
} from './schema.ts'
import type { PeopleStore } from './store.ts'

interface PeopleRoutesDeps {
  readonly guards: Guards
  readonly people: PeopleStore
}

/** The people of a workspace and their sign-ins (docs/people.md). */
export function peopleRoutes({ guards, people }: PeopleRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.workspaceKey, tags: ['People'] } })
    .use(guards.workspaceKey('reads', 'admin'))
    .get('/people', ({ caller, query }) => people.list(caller, query), {
      query: ListPeople,
      response: PersonPage,
      detail: {
        operationId: 'listPeople',
        summary: 'List people',
        description: 'Everyone who has signed in to the workspace by OpenID Connect, newest first.',
      },
    })
    .get(
      '/people/:person_id',
      ({ caller, params }) => {
        if (caller.person !== undefined) requireRole(caller.person, 'admin')
        return people.get(caller, params.person_id.toLowerCase())
      },
      {
        params: PersonParams,
        response: PersonDetail,
        detail: {
          operationId: 'getPerson',
          summary: 'Read a person',
          description: 'With the browsers in which the person is signed in. For admins and workspace keys.',
        },
      },
    )
    .patch(
      '/people/:person_id',
      ({ caller, params, body }) => people.edit(caller, params.person_id.toLowerCase(), body),
      {
        params: PersonParams,
        body: EditPerson,
        response: PersonRecord,
        detail: {
          operationId: 'editPerson',
          summary: 'Suspend or reactivate a person',
          description:
            'Once a suspension has answered, no process accepts a sign-in of the person or a key that they made (unless ' +
            '`keep_keys` is true), their feeds are closed, and they cannot sign in again. For admins and workspace keys.',
        },
      },
    )
    .post('/sign-ins/:sign_in_id/revoke', ({ caller, params }) => people.end(caller, params.sign_in_id.toLowerCase()), {
      params: SignInParams,
      body: Nothing,
      response: SignInEnded,
      detail: {
        operationId: 'revokeSignIn',
        summary: 'Sign a browser out',
        description: 'Once this call has answered, no process accepts the sign-in. For admins and workspace keys.',
      },
    })
}
