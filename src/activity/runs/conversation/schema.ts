import { Type } from '@sinclair/typebox'
import { t } from 'elysia'
import { Described, JsonText, ListQuery, Named, Nullable, Page, Timestamp } from '../../../base/http/schema.ts'

/** Wire types of conversations (docs/runs.md#conversations). */

const AnyJson = JsonText(Type.Any())

const CallId = Described(Nullable(t.String()), 'By which the result names the call; null if the sender gave none.')

const kind = <const T extends string>(name: T) => t.Literal(name, { description: 'The kind of the part.' })

const MessagePart = Named(
  'MessagePart',
  t.Union(
    [
      t.Object({ type: kind('text'), text: t.String({ description: 'What is said.' }) }),
      t.Object({ type: kind('reasoning'), text: t.String({ description: 'What the model thought.' }) }),
      t.Object({
        type: kind('tool_call'),
        id: CallId,
        name: t.String({ description: 'The tool.' }),
        arguments: Described(AnyJson, 'Any JSON; null if there are none.'),
      }),
      t.Object({
        type: kind('tool_result'),
        id: CallId,
        result: Described(AnyJson, 'Any JSON; null if there is none.'),
        failed: t.Boolean({ description: 'Whether the sender says that the call failed.' }),
      }),
      t.Object({
        type: kind('media'),
        kind: t.String({ description: '`image`, `audio`, `video`, `document`, `file` or `base64`.' }),
        media_type: Described(Nullable(t.String()), 'Such as `image/png`; null if the sender gave none.'),
        bytes: Described(Nullable(Type.Integer({ minimum: 0 })), 'About how many; null if they are elsewhere.'),
        url: Described(Nullable(t.String()), 'Where it is on the web. The bytes themselves are left out.'),
      }),
      t.Object({ type: kind('other'), value: Described(AnyJson, 'A part of no known kind, as it was sent.') }),
    ],
    { description: 'A part of a message.' },
  ),
)
export type MessagePart = typeof MessagePart.static

const ConversationMessage = Named(
  'ConversationMessage',
  t.Object(
    {
      role: t.String({ description: '`system`, `user`, `assistant`, `tool`, or as the sender calls it.' }),
      parts: t.Array(MessagePart, { description: 'What it consists of, in order.' }),
      truncated: t.Boolean({
        description: 'Whether something of it is shortened or missing, because it is too large.',
      }),
      event_id: Described(
        Nullable(t.String()),
        'The event that it was first seen in; null for the input and output of the run.',
      ),
      seq: Described(Nullable(Type.Integer({ minimum: 1 })), 'The `seq` of that event.'),
      event_time: Described(Nullable(Timestamp), 'The `occurred_at` of that event.'),
      model: Described(Nullable(t.String()), 'The model that said it; null for other messages.'),
      thread: Described(
        Nullable(Type.Integer({ minimum: 1 })),
        'The same for all messages of one conversation with a model, of which a run may have several: the `seq` of its ' +
          'first event. Null for what is reported apart from conversations.',
      ),
    },
    { description: 'A message of the conversation of a run.' },
  ),
)
export type ConversationMessage = typeof ConversationMessage.static

/** The cursor says which conversations are known, so that it is longer than others. */
export const ReadConversation = t.Object(
  {
    ...ListQuery({}).properties,
    cursor: t.Optional(t.String({ maxLength: 4_000, description: '`next_cursor` of the previous page.' })),
  },
  { additionalProperties: false },
)
export type ReadConversation = typeof ReadConversation.static

export const ConversationPage = Page('ConversationPage', ConversationMessage, 'oldest first')
export type ConversationPage = typeof ConversationPage.static
