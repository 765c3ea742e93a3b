import { Kind, Type, TypeRegistry } from '@sinclair/typebox'
import { t } from 'elysia'
import {
  Body,
  Count,
  Deleted,
  Described,
  EDITED,
  JsonText,
  ListQuery,
  Named,
  Nullable,
  OneOf,
  Page,
  QueryInt,
  Text,
  Timestamp,
  TimestampIn,
  Uuid,
} from '../../base/http/schema.ts'
import { isObject } from '../../base/json-object.ts'
import type { RawJson } from '../../base/raw-json.ts'
import { LiveFilter } from '../live/message-schema.ts'

/** Wire schemas of webhooks (docs/webhooks.md). */

const URL_LENGTH_MAX = 2_000
const DESCRIPTION_LENGTH_MAX = 10_000
const CURSOR_LENGTH_MAX = 100
/** Above the longest delivery id, which has a webhook, an epoch and a position. */
const DELIVERY_ID_LENGTH_MAX = 200
/** Messages of one poll. */
const POLL_LIMIT_MAX = 1_000
export const POLL_LIMIT_DEFAULT = 100

TypeRegistry.Set('FilterObject', (_schema, value) => isObject(value))

/** Only an object here: `parseFilter` checks the members, with better messages. */
const FilterIn = Type.Unsafe<Readonly<Record<string, unknown>>>({ ...LiveFilter, [Kind]: 'FilterObject' })
const FILTER =
  'What to send, as for a feed. Null: the ends of runs, and the approvals and questions that runs wait for. Alerts that ' +
  'name the endpoint are sent whatever the filter.'

const Url = Text({
  minLength: 1,
  maxLength: URL_LENGTH_MAX,
  description:
    'Receives each message by POST. http or https, without credentials; a public address, or one in EGRESS_ALLOW.',
})
const Description = Nullable(Text({ maxLength: DESCRIPTION_LENGTH_MAX, description: 'What receives the messages.' }))
const WebhookFormat = Named(
  'WebhookFormat',
  OneOf(['standard', 'slack'], 'The body: JSON of Standard Webhooks, or a message for a Slack incoming webhook.'),
)
const WebhookSigning = Named(
  'WebhookSigning',
  OneOf(['v1', 'v1a'], '`v1`: HMAC-SHA256 with a shared secret; `v1a`: ed25519 with a public key.'),
)
const WebhookOrder = Named(
  'WebhookOrder',
  OneOf(
    ['run', 'strict'],
    '`run`: in order within each run; only that run waits for a retry. `strict`: one at a time, in order; all others wait ' +
      'until it succeeds.',
  ),
)

/** Body of `POST /api/v1/webhooks`. */
export const CreateWebhook = Named(
  'CreateWebhook',
  Body({
    url: Url,
    filter: t.Optional(Described(Nullable(FilterIn), FILTER)),
    description: t.Optional(Description),
    format: t.Optional({ ...WebhookFormat, description: 'Default: `standard`.' }),
    signing: t.Optional({ ...WebhookSigning, description: 'Default: `v1`. It cannot be changed later.' }),
    order: t.Optional({ ...WebhookOrder, description: 'Default: `run`.' }),
    status: t.Optional(
      OneOf(['active', 'disabled'], 'Default: `active`. `disabled` for a receiver that only polls: nothing is sent.'),
    ),
  }),
)
export type CreateWebhook = typeof CreateWebhook.static

/** Body of `PATCH /api/v1/webhooks/:webhook_id`: given members change. */
export const EditWebhook = Named(
  'EditWebhook',
  Body({
    url: t.Optional(Url),
    filter: t.Optional(Described(Nullable(FilterIn), FILTER)),
    description: t.Optional(Description),
    format: t.Optional(WebhookFormat),
    order: t.Optional(WebhookOrder),
    status: t.Optional(
      OneOf(['active', 'disabled'], 'A disabled endpoint keeps its position: once active again, it continues there.'),
    ),
  }),
)
export type EditWebhook = typeof EditWebhook.static

const Health = Named(
  'WebhookHealth',
  t.Object(
    {
      position: t.String({
        description: 'The cursor up to which everything has been delivered or given up, or is `pending`.',
      }),
      lag: Described(
        Nullable(Type.Integer({ minimum: 0 })),
        'Positions from there to the end of the log; null while the log cannot be read.',
      ),
      pending: Count('Deliveries that wait for another attempt, or for an earlier one of their run.'),
      failing_since: Described(Nullable(Timestamp), 'Since when every attempt has failed; null while they succeed.'),
      last_succeeded_at: Described(Nullable(Timestamp), 'The last attempt that succeeded.'),
      last_failed_at: Described(Nullable(Timestamp), 'The last attempt that failed.'),
      recovering_until: Described(
        Nullable(t.String()),
        'The cursor at which the current recovery ends; null while there is none.',
      ),
    },
    { description: 'How far an endpoint has got, and whether it answers.' },
  ),
)

const webhookFields = {
  webhook_id: Described(Uuid, 'The endpoint.'),
  url: t.String({
    description: 'Where messages are sent, as it is called; for people who are no admins only its origin.',
  }),
  description: Described(Nullable(t.String()), 'What receives the messages.'),
  filter: Described(Nullable(JsonText(LiveFilter)), FILTER),
  format: WebhookFormat,
  signing: WebhookSigning,
  order: WebhookOrder,
  status: OneOf(
    ['active', 'behind', 'disabled'],
    '`behind`: so many deliveries are pending that the endpoint stops at its position until some succeed or are given up.',
  ),
  disabled_reason: Described(Nullable(t.String()), 'Why the service has disabled the endpoint; null if it has not.'),
  public_key: Described(Nullable(t.String()), 'Verifies signatures of `v1a`: `whpk_…`; null for `v1`.'),
  ...EDITED,
  health: Health,
}

export const WebhookRecord = Named(
  'Webhook',
  t.Object(webhookFields, { description: 'An endpoint that activity is sent to, without its secret.' }),
)
export type WebhookRecord = typeof WebhookRecord.static

export const NewWebhook = Named(
  'NewWebhook',
  t.Object(
    {
      ...webhookFields,
      secret: Described(
        Nullable(t.String()),
        'Verifies signatures of `v1`: `whsec_…`, shown only now; null for `v1a`.',
      ),
    },
    { description: 'An endpoint with its new secret.' },
  ),
)
export type NewWebhook = typeof NewWebhook.static

export const WebhookPage = Page('WebhookPage', WebhookRecord)

/** `:webhook_id` of a path. */
export const WebhookParams = t.Object({ webhook_id: Described(Uuid, 'The endpoint.') })

/** `:webhook_id` and `:delivery_id` of a path. */
export const DeliveryParams = t.Object({
  webhook_id: Described(Uuid, 'The endpoint.'),
  delivery_id: t.String({ maxLength: DELIVERY_ID_LENGTH_MAX, description: 'The `webhook-id` of the delivery.' }),
})

export const DeletedWebhook = Deleted('DeletedWebhook', { webhook_id: Described(Uuid, 'The endpoint.') })
export type DeletedWebhook = typeof DeletedWebhook.static

const DeliveryStatus = Named(
  'WebhookDeliveryStatus',
  OneOf(
    ['pending', 'succeeded', 'failed'],
    '`pending`: another attempt follows, or it waits for an earlier one of its run; `failed`: given up.',
  ),
)

/** Query of `GET /api/v1/webhooks/:webhook_id/deliveries`. */
export const ListDeliveries = ListQuery({ status: t.Optional(DeliveryStatus) })
export type ListDeliveries = typeof ListDeliveries.static

export const DeliveryRecord = Named(
  'WebhookDelivery',
  t.Object(
    {
      delivery_id: t.String({ description: 'The `webhook-id` of every attempt.' }),
      webhook_id: Described(Uuid, 'The endpoint.'),
      type: t.String({ description: 'The type of the message.' }),
      run_id: Described(Nullable(Uuid), 'The run that the message is about; null for alerts and tests.'),
      seq: Count('The position of the activity; 0 for tests.'),
      attempt: Count('The number of the latest attempt; 0 while it waits for an earlier delivery of its run.'),
      status: DeliveryStatus,
      http_status: Described(Nullable(Type.Integer()), 'HTTP status of the answer; null if there was none.'),
      duration_ms: Described(Nullable(Type.Integer({ minimum: 0 })), 'Duration of the latest attempt, if known.'),
      response: Described(Nullable(t.String()), 'The start of the answer, or why there was none.'),
      at: Described(Nullable(Timestamp), 'When the latest attempt was made.'),
      next_at: Described(Nullable(Timestamp), 'When the next attempt is made, if one follows and its time is known.'),
    },
    { description: 'A message to an endpoint, as of its latest attempt.' },
  ),
)
export type DeliveryRecord = typeof DeliveryRecord.static

export const DeliveryPage = Page('WebhookDeliveryPage', DeliveryRecord)

/** Body of `POST /api/v1/webhooks/:webhook_id/recover`. */
export const RecoverWebhook = Named(
  'RecoverWebhook',
  Body({
    since: t.Optional(Described(TimestampIn, 'Deliver again what was accepted at this time or later.')),
    after: t.Optional(
      t.String({
        maxLength: CURSOR_LENGTH_MAX,
        description: 'Deliver again what follows this cursor; 0: from the oldest retained activity.',
      }),
    ),
  }),
)
export type RecoverWebhook = typeof RecoverWebhook.static

/** Query of `GET /api/v1/webhooks/:webhook_id/poll`. */
export const PollQuery = t.Object(
  {
    iterator: t.Optional(
      t.String({
        maxLength: CURSOR_LENGTH_MAX,
        description:
          '`iterator` of the previous answer, or any cursor; 0: from the oldest retained activity. Default: the end of the ' +
          'log when the endpoint was created.',
      }),
    ),
    limit: t.Optional(
      QueryInt({
        minimum: 1,
        maximum: POLL_LIMIT_MAX,
        description: `Maximum of messages; default ${POLL_LIMIT_DEFAULT}.`,
      }),
    ),
  },
  { additionalProperties: false },
)
export type PollQuery = typeof PollQuery.static

export const WebhookMessages = Named(
  'WebhookMessages',
  t.Object(
    {
      data: t.Array(JsonText({ type: 'object', additionalProperties: true }), {
        description: 'The bodies of the messages, as they are sent, oldest first.',
      }),
      iterator: t.String({ description: 'The `iterator` of the next call.' }),
      done: t.Boolean({ description: 'Whether the end of the log was reached.' }),
      gap: t.Boolean({ description: 'Whether activity before these messages is no longer available.' }),
    },
    { description: 'Messages for a receiver without a public address.' },
  ),
)
export type WebhookMessages = typeof WebhookMessages.static

/** A row of `webhooks`. */
export interface StoredWebhook {
  readonly webhook_id: string
  readonly workspace_id: string
  readonly url: string
  readonly description: string | null
  readonly filter: RawJson | null
  readonly format: 'standard' | 'slack'
  readonly signing: 'v1' | 'v1a'
  readonly ordering: 'run' | 'strict'
  readonly status: 'active' | 'disabled'
  readonly disabled_reason: string | null
  readonly secret: Uint8Array
  readonly key_id: string
  readonly public_key: string | null
  readonly previous_secrets: Uint8Array | null
  readonly previous_key_id: string | null
  readonly version: number
  readonly created_at: Date
  readonly updated_at: Date
  readonly created_cursor: string
  readonly epoch: string
  readonly position: number
  readonly is_behind: boolean
  readonly failing_since: Date | null
  readonly failing_ms: number
  readonly succeeded_at: Date | null
  readonly failed_at: Date | null
  readonly retries_erased: number
  readonly recover_position: number | null
  readonly recover_until: number | null
}
