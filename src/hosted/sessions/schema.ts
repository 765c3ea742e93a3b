import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Count,
  Deleted,
  Described,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  Text,
  Timestamp,
  Uuid,
} from '../../http/schema.ts'

/** The wire format of sessions (docs/specification.md#sessions). */

export const SessionRecord = Named(
  'Session',
  t.Object(
    {
      session_id: Described(Uuid, 'The session.'),
      agent_id: Described(Uuid, 'The agent of the session.'),
      external_user_id: Described(Nullable(t.String()), "The caller's own name for the user."),
      message_count: Count('Messages so far.'),
      active_run_id: Described(Nullable(Uuid), 'The run that may continue the session now; others wait.'),
      created_at: Described(Timestamp, 'When the session started.'),
      updated_at: Described(Timestamp, 'When the session last changed.'),
    },
    { description: 'A conversation with a hosted agent.' },
  ),
)
export type SessionRecord = typeof SessionRecord.static

export const MessageRecord = Named(
  'Message',
  t.Object(
    {
      position: Type.Integer({ minimum: 1, description: 'Its position in the session, from 1.' }),
      role: OneOf(['user', 'assistant'], 'Author of the message.'),
      content: t.String({ description: 'Text of the message.' }),
      run_id: Described(Uuid, 'The run that it belongs to.'),
      created_at: Described(Timestamp, 'When it was stored.'),
    },
    { description: 'A message of a session.' },
  ),
)
export type MessageRecord = typeof MessageRecord.static

/** Query of `GET /api/v1/sessions`. */
export const ListSessions = ListQuery({
  agent_id: t.Optional(Described(Uuid, 'Sessions with this agent.')),
  external_user_id: t.Optional(Text({ maxLength: 2_000, description: 'Sessions of this user.' })),
})
export type ListSessions = typeof ListSessions.static

export const SessionPage = Page('SessionPage', SessionRecord)

/** Oldest first, unlike other lists: a conversation is read forwards. */
export const MessagePage = Page('MessagePage', MessageRecord, 'oldest first')

export const SessionParams = t.Object({ session_id: Described(Uuid, 'The session.') })

/** Answer of `DELETE /api/v1/sessions/:session_id`. */
export const DeletedSession = Deleted('DeletedSession', { session_id: Described(Uuid, 'The session.') })
export type DeletedSession = typeof DeletedSession.static
