import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import { Deleted, Described, Named, OneOf, Page, Timestamp, Uuid } from '../../base/http/schema.ts'

/** The wire format of sessions (docs/hosted-agents.md#sessions). */

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

/** Oldest first, unlike other lists: a conversation is read forwards. */
export const MessagePage = Page('MessagePage', MessageRecord, 'oldest first')

/** `:session_id` of a path: a hosted session, whose id is a UUID. */
export const HostedSessionParams = t.Object({ session_id: Described(Uuid, 'The session.') })

/** Answer of `DELETE /api/v1/sessions/:session_id`. */
export const DeletedSession = Deleted('DeletedSession', { session_id: Described(Uuid, 'The session.') })
export type DeletedSession = typeof DeletedSession.static
