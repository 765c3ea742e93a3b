import type { ObjectOptions, Static, TProperties, TSchema } from '@sinclair/typebox'
import { t } from 'elysia'
import { ERROR_CODES } from '../../base/errors.ts'
import { Count, Described, Named, OneOf, Uuid } from '../../base/http/schema.ts'
import { EventLevel } from '../../stores/journal/levels.ts'
import { Activity, gapFields } from './schema.ts'

/** Messages of the WebSocket (docs/feeds.md#websocket). `messages.ts` checks those of clients by hand, with better errors. */

export const SUBSCRIPTION_ID_LENGTH_MAX = 128
export const MAX_PER_SECOND_MAX = 10_000

const op = <T extends string>(name: T, description: string) => t.Literal(name, { description })
const id = t.String({
  minLength: 1,
  maxLength: SUBSCRIPTION_ID_LENGTH_MAX,
  description: "The client's name for the subscription.",
})
const cursor = t.String({ description: 'A position in the feed.' })
/** One value or a list of which any may match. */
const oneOrMore = <T extends ReturnType<typeof t.Unsafe>>(value: T, description: string) =>
  t.Optional(t.Union([value, t.Array(value, { minItems: 1, maxItems: 100 })], { description }))

const ExternalId = t.String({ minLength: 1, maxLength: 255 })

/** The fields of a filter. */
export const LiveFilter = Named(
  'LiveFilter',
  t.Object(
    {
      agent_id: oneOrMore(Uuid, 'Activity of these agents.'),
      run_id: oneOrMore(Uuid, 'Activity of these runs.'),
      task_id: oneOrMore(Uuid, 'Events, scores and tasks only: of these tasks.'),
      session_id: oneOrMore(ExternalId, 'Activity of runs of these sessions.'),
      external_user_id: oneOrMore(ExternalId, 'Activity of runs of these users, by your own names.'),
      kind: oneOrMore(OneOf(['event', 'task', 'run', 'score']), 'Activity of these kinds.'),
      type: oneOrMore(t.String({ minLength: 1 }), 'Events only: these types. A trailing `*` matches a prefix.'),
      level: oneOrMore(EventLevel, 'Events only: this level or higher.'),
      status: oneOrMore(t.String(), 'Runs and tasks only: these statuses.'),
      tag: oneOrMore(t.String({ minLength: 1 }), 'Runs only: any of these tags.'),
    },
    {
      additionalProperties: false,
      description:
        'Conditions are combined with AND. A condition on a field that a kind of activity does not have excludes ' +
        'that kind.',
    },
  ),
)

const message = <Op extends TSchema, Fields extends TProperties>(
  name: string,
  op: Op,
  description: string,
  fields: Fields,
  options: ObjectOptions = {},
) => Named(name, t.Object({ op, ...fields }, { ...options, description }))

const FROM_CLIENT = { additionalProperties: false }

const SubscribeMessage = message(
  'LiveSubscribe',
  op('subscribe', 'Asks for activity.'),
  'Opens a subscription. Answered by `subscribed`.',
  {
    id,
    filter: t.Optional(Described(LiveFilter, 'What to send; default: everything.')),
    after: t.Optional(
      t.Union([t.String({ maxLength: 100 }), Count('0.')], {
        description: 'Resume after this cursor; 0: from the oldest retained activity. Without it, only new activity.',
      }),
    ),
    max_per_second: t.Optional({
      ...Count('Maximum number of activities per second; the others are counted in `skipped`.'),
      minimum: 1,
      maximum: MAX_PER_SECOND_MAX,
    }),
  },
  FROM_CLIENT,
)
const unsubscribeOp = op('unsubscribe', 'Ends a subscription.')
const UnsubscribeMessage = message('LiveUnsubscribe', unsubscribeOp, 'Ends a subscription.', { id }, FROM_CLIENT)
const PingMessage = message('LivePing', op('ping', 'Checks the connection.'), 'Answered by `pong`.', {}, FROM_CLIENT)

const SubscribedMessage = message(
  'LiveSubscribed',
  op('subscribed', 'The subscription is open.'),
  'The subscription is open.',
  {
    id,
    cursor: Described(cursor, 'Activity after this position follows.'),
    recovered: t.Boolean({ description: 'It resumes where it was asked to, without a gap.' }),
  },
)
const ActivityMessage = message(
  'LiveActivity',
  op('activity', 'Activity of a subscription.'),
  'Activity that matches the subscription.',
  {
    id,
    items: t.Array(Activity, { description: 'In order.' }),
    skipped: t.Optional(Count('With `max_per_second`: how many activities were skipped.')),
  },
)
const GapMessage = message(
  'LiveGap',
  op('gap', 'Activity is missing.'),
  'Requested activity is missing: retention has deleted it, or the journal has been replaced.',
  { id, ...gapFields },
)
const ErrorMessage = message(
  'LiveError',
  op('error', 'A message was refused, or a subscription has failed.'),
  'A message was refused, or a subscription has failed. The connection stays open.',
  {
    id: t.Optional(id),
    code: OneOf(ERROR_CODES, 'What went wrong.'),
    message: t.String({ description: 'What went wrong, in one sentence.' }),
    reason: t.Optional(t.String({ description: 'Tells errors of one code apart, as in answers.' })),
    param: t.Optional(t.String({ description: 'The place in the message, such as `filter.level[0]`.' })),
  },
)
const PongMessage = message('LivePong', op('pong', 'The connection is alive.'), 'The answer to `ping`.', {})
const ClosingMessage = message(
  'LiveClosing',
  op('closing', 'The service is about to close the connection.'),
  'The service is about to close the connection.',
  {
    reason: t.String({ description: 'Why: `shutdown` or `slow_consumer`.' }),
    reconnect_after_ms: Count('When to connect again.'),
    cursors: t.Optional(
      t.Record(t.String(), t.String(), {
        description: 'Where to resume each subscription, by its id: everything up to there has been sent.',
      }),
    ),
    cursor: t.Optional(Described(cursor, 'The earliest of them.')),
  },
)

/** Messages that the service sends, except for `activity`, which `packet.ts` encodes. */
export type ServerMessage = Static<
  typeof SubscribedMessage | typeof GapMessage | typeof ErrorMessage | typeof PongMessage | typeof ClosingMessage
>

/** The `x-websocket` of the OpenAPI document. */
export const WEBSOCKET = {
  description: 'JSON objects in text frames. `op` is the type of the message.',
  clientMessage: Named(
    'LiveClientMessage',
    t.Union([SubscribeMessage, UnsubscribeMessage, PingMessage], { description: 'What a client sends.' }),
  ),
  serverMessage: Named(
    'LiveServerMessage',
    t.Union([SubscribedMessage, ActivityMessage, GapMessage, ErrorMessage, PongMessage, ClosingMessage], {
      description: 'What the service sends.',
    }),
  ),
  closeCodes: {
    1001: 'The service is shutting down. Reconnect after `reconnect_after_ms`.',
    4001: 'The key or the feed token is revoked or has expired.',
    4003: 'The workspace is suspended.',
    4008: 'The client reads too slowly. Resume from the cursor of `closing`.',
  },
}
