import { t } from 'elysia'
import { Body, Described, ListQuery, Named, Nullable, OneOf, Page, Timestamp, Uuid } from '../../base/http/schema.ts'
import { ROLES } from '../keys/schema.ts'

/** The wire format of people and sign-ins (docs/people.md). */

const PersonRole = Named(
  'PersonRole',
  OneOf(
    [...ROLES] as ['viewer', 'approver', 'admin'],
    'A viewer reads; an approver also decides and cancels; an admin may do all.',
  ),
)
const PersonStatus = Named('PersonStatus', OneOf(['active', 'suspended'], 'A suspended person cannot sign in.'))

const personFields = {
  person_id: Described(Uuid, 'The person, in this workspace.'),
  subject: t.String({ description: 'Identifies the person at the OpenID provider.' }),
  name: Described(Nullable(t.String()), 'The name that the provider gave.'),
  email: Described(Nullable(t.String()), 'The e-mail address that the provider gave.'),
  role: PersonRole,
  status: PersonStatus,
  created_at: Described(Timestamp, 'When the person first signed in.'),
  signed_in_at: Described(Timestamp, 'When the person last signed in.'),
}

export const PersonRecord = Named('Person', t.Object(personFields, { description: 'Someone who has signed in.' }))
export type PersonRecord = typeof PersonRecord.static

export const SignInRecord = Named(
  'SignIn',
  t.Object(
    {
      sign_in_id: Described(Uuid, 'The sign-in.'),
      created_at: Described(Timestamp, 'When it began.'),
      last_used_at: Described(Timestamp, 'When it was last used, up to some seconds late.'),
      expires_at: Described(Timestamp, 'When it ends at the latest.'),
    },
    { description: 'A browser in which a person is signed in.' },
  ),
)
export type SignInRecord = typeof SignInRecord.static

/** A person with their sign-ins, which are few. */
export const PersonDetail = Named(
  'PersonDetail',
  t.Object(
    { ...personFields, sign_ins: t.Array(SignInRecord, { description: 'Where they are signed in, newest first.' }) },
    { description: 'Someone who has signed in, and where.' },
  ),
)
export type PersonDetail = typeof PersonDetail.static

/** Query of `GET /api/v1/people`. */
export const ListPeople = ListQuery({
  status: t.Optional(Described(PersonStatus, 'Only people with this status.')),
})
export type ListPeople = typeof ListPeople.static

export const PersonPage = Page('PersonPage', PersonRecord)
export const PersonParams = t.Object({ person_id: Described(Uuid, 'The person.') })
export const SignInParams = t.Object({ sign_in_id: Described(Uuid, 'The sign-in.') })

/** Body of `PATCH /api/v1/people/:person_id`. */
export const EditPerson = Named(
  'EditPerson',
  Body({
    status: PersonStatus,
    keep_keys: t.Optional(
      t.Boolean({
        description: 'With `suspended`: the keys that the person made stay valid. By default they are revoked.',
      }),
    ),
  }),
)
export type EditPerson = typeof EditPerson.static

/** A body without members. */
export const Nothing = Body({}, { description: 'Empty: send `{}`.' })

/** Answer to `POST /api/v1/sign-ins/:sign_in_id/revoke` and `POST /api/v1/sign-out`. */
export const SignInEnded = Named(
  'SignInEnded',
  t.Object(
    { sign_in_id: Described(Uuid, 'The sign-in that has ended.') },
    { description: 'A sign-in that has ended.' },
  ),
)

/** Body of `POST /api/v1/sign-in/workspace`. */
export const ChangeWorkspace = Named(
  'ChangeWorkspace',
  Body({ workspace_id: Described(Uuid, 'One of the workspaces of the sign-in.') }),
)

const WorkspaceName = Named(
  'WorkspaceName',
  t.Object(
    {
      workspace_id: Described(Uuid, 'The workspace.'),
      name: t.String({ description: 'Its name.' }),
    },
    { description: 'A workspace that a person may enter.' },
  ),
)
export type WorkspaceName = typeof WorkspaceName.static

/** Who is signed in. */
export const SignedIn = Named(
  'SignedIn',
  t.Object(
    {
      person_id: Described(Uuid, 'The person.'),
      sign_in_id: Described(Uuid, 'The sign-in of this browser.'),
      name: Described(Nullable(t.String()), 'Their name.'),
      email: Described(Nullable(t.String()), 'Their e-mail address.'),
      role: PersonRole,
      workspace: WorkspaceName,
      workspaces: t.Array(WorkspaceName, {
        description: 'All workspaces that the person may enter, this one included.',
      }),
      expires_at: Described(Timestamp, 'When the sign-in ends at the latest.'),
    },
    { description: 'The person who is signed in.' },
  ),
)
export type SignedIn = typeof SignedIn.static

/** Answer to `GET /api/v1/sign-in`. */
export const SignInState = Named(
  'SignInState',
  t.Object(
    {
      openid: t.Boolean({ description: 'Whether people can sign in by OpenID Connect, at `/auth/sign-in`.' }),
      keys: t.Boolean({ description: 'Whether the page takes a workspace key.' }),
      person: Described(Nullable(SignedIn), 'Who is signed in by the cookie of this request; null: nobody.'),
    },
    { description: 'How people sign in to the page, and who has.' },
  ),
)
export type SignInState = typeof SignInState.static
