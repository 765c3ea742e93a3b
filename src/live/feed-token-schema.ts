import { t } from 'elysia'
import { Body, Described, Int, Named, Timestamp, Uuid } from '../http/schema.ts'

/** Wire schemas of feed tokens (docs/specification.md#feed-tokens). */

const TTL_SECONDS_MAX = 3_600
export const TTL_SECONDS_DEFAULT = 900

/** Body of `POST /api/v1/feed-tokens`. */
const createFeedToken = Body({
  agent_id: t.Optional(
    Described(Uuid, 'Limits the token to this agent. A token made with an agent key is always limited to its agent.'),
  ),
  run_id: t.Optional(Described(Uuid, 'Limits the token to this run.')),
  ttl_seconds: t.Optional(
    Int({
      minimum: 1,
      maximum: TTL_SECONDS_MAX,
      description: `Lifetime in seconds; ${TTL_SECONDS_DEFAULT} by default.`,
    }),
  ),
})
export const CreateFeedToken = Named('CreateFeedToken', createFeedToken)
export type CreateFeedToken = typeof CreateFeedToken.static

/** Its response: the only time that the token is shown. */
export const FeedToken = Named(
  'FeedToken',
  t.Object({
    token: t.String({ description: 'For `?token=` of a feed.', examples: ['svc_feed_…'] }),
    expires_at: Described(Timestamp, 'When the token expires and its open feeds end; never later than its key.'),
  }),
)
export type FeedToken = typeof FeedToken.static
