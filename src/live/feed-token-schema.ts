import { t } from 'elysia'
import { Body, Int, Timestamp, Uuid } from '../http/schema.ts'

/** What of a feed token goes over the wire (docs/specification.md#feed-tokens). */

const TTL_SECONDS_MAX = 3_600
export const TTL_SECONDS_DEFAULT = 900

/** Body of `POST /api/v1/feed-tokens`. */
export const CreateFeedToken = Body({
  agent_id: t.Optional(
    t.String({ ...Uuid, description: 'Limits the token to this agent. An agent key’s token always is, to its own.' }),
  ),
  run_id: t.Optional(t.String({ ...Uuid, description: 'Limits the token to this run.' })),
  ttl_seconds: t.Optional(
    Int({ minimum: 1, maximum: TTL_SECONDS_MAX, description: `${TTL_SECONDS_DEFAULT} unless given.` }),
  ),
})
export type CreateFeedToken = typeof CreateFeedToken.static

/** Its answer: the one time the token is shown. */
export const FeedToken = t.Object({
  token: t.String({ description: 'For `?token=` of a feed.', examples: ['svc_feed_…'] }),
  expires_at: t.String({ ...Timestamp, description: 'When open feeds end too; with its key at the latest.' }),
})
export type FeedToken = typeof FeedToken.static
