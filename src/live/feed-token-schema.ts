import { t } from 'elysia'
import { Body, Int, Timestamp, Uuid } from '../http/schema.ts'

/** Wire schemas of feed tokens (docs/specification.md#feed-tokens). */

const TTL_SECONDS_MAX = 3_600
export const TTL_SECONDS_DEFAULT = 900

/** Body of `POST /api/v1/feed-tokens`. */
export const CreateFeedToken = Body({
  agent_id: t.Optional(
    t.String({
      ...Uuid,
      description: 'Limits the token to this agent. A token made with an agent key is always limited to its agent.',
    }),
  ),
  run_id: t.Optional(t.String({ ...Uuid, description: 'Limits the token to this run.' })),
  ttl_seconds: t.Optional(
    Int({
      minimum: 1,
      maximum: TTL_SECONDS_MAX,
      description: `Lifetime in seconds; ${TTL_SECONDS_DEFAULT} by default.`,
    }),
  ),
})
export type CreateFeedToken = typeof CreateFeedToken.static

/** The response: the only time the token is shown. */
export const FeedToken = t.Object({
  token: t.String({ description: 'For `?token=` of a feed.', examples: ['svc_feed_…'] }),
  expires_at: t.String({
    ...Timestamp,
    description: 'When the token expires and its open feeds end; never later than its key.',
  }),
})
export type FeedToken = typeof FeedToken.static
