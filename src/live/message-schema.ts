import { t } from 'elysia'
import { ERROR_CODES } from '../base/errors.ts'
import { Count, Described, Named, Uuid } from '../http/schema.ts'
import { EventLevel } from '../journal/levels.ts'
import { Activity, gapFields } from './schema.ts'

/** Messages of the WebSocket (docs/specification.md#websocket). `messages.ts` checks those of clients by hand, with better errors. */

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

const LiveFilter = Named(
  'LiveFilter',
  t.Object(
    {
      agent_id: oneOrMore(Uuid, 'Activity of these agents.'),
      run_id: oneOrMore(Uuid, 'Activity of these runs.'),
      kind: oneOrMore(t.UnionEnum(['event', 'task', 'run'], { default: undefined }), 'Activity of these kinds.'),
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

const SubscribeMessage = Named(
  'LiveSubscribe',
  t.Object(
    {
      op: op('subscribe', 'Asks for activity.'),
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
    { additionalProperties: false, description: 'Opens a subscription. Answered by `subscribed`.' },
  ),
)
const UnsubscribeMessage = Named(
  'LiveUnsubscribe',
  t.Object(
    { op: op('unsubscribe', 'Ends a subscription.'), id },
    { additionalProperties: false, description: 'Ends a subscription.' },
  ),
)
const PingMessage = Named(
  'LivePing',
  t.Object(
    { op: op('ping', 'Checks the connection.') },
    { additionalProperties: false, description: 'Answered by `pong`.' },
  ),
)

export const SubscribedMessage = Named(
  'LiveSubscribed',
  t.Object(
    {
      op: op('subscribed', 'The subscription is open.'),
      id,
      cursor: Described(cursor, 'Activity after this position follows.'),
      recovered: t.Boolean({ description: 'It resumes where it was asked to, without a gap.' }),
    },
    { description: 'The subscription is open.' },
  ),
)
const ActivityMessage = Named(
  'LiveActivity',
  t.Object(
    {
      op: op('activity', 'Activity of a subscription.'),
      id,
      items: t.Array(Activity, { description: 'In order.' }),
      skipped: t.Optional(Count('With `max_per_second`: how many activities were skipped.')),
    },
    { description: 'Activity that matches the subscription.' },
  ),
)
export const GapMessage = Named(
  'LiveGap',
  t.Object(
    { op: op('gap', 'Activity is missing.'), id, ...gapFields },
    { description: 'Requested activity is missing: retention has deleted it, or the journal has been replaced.' },
  ),
)
export const ErrorMessage = Named(
  'LiveError',
  t.Object(
    {
      op: op('error', 'A message was refused, or a subscription has failed.'),
      id: t.Optional(id),
      code: t.UnionEnum(ERROR_CODES, { default: undefined, description: 'What went wrong.' }),
      message: t.String({ description: 'What went wrong, in one sentence.' }),
    },
    { description: 'A message was refused, or a subscription has failed. The connection stays open.' },
  ),
)
export const PongMessage = Named(
  'LivePong',
  t.Object({ op: op('pong', 'The connection is alive.') }, { description: 'The answer to `ping`.' }),
)
export const ClosingMessage = Named(
  'LiveClosing',
  t.Object(
    {
      op: op('closing', 'The service is about to close the connection.'),
      reason: t.String({ description: 'Why: `shutdown` or `slow_consumer`.' }),
      reconnect_after_ms: Count('When to connect again.'),
      cursors: t.Optional(
        t.Record(t.String(), t.String(), {
          description: 'Where to resume each subscription, by its id: everything up to there has been sent.',
        }),
      ),
      cursor: t.Optional(Described(cursor, 'The earliest of them.')),
    },
    { description: 'The service is about to close the connection.' },
  ),
)

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
