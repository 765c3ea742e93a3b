import { Elysia } from 'elysia'
import type { Activity } from '../activity/activity.ts'
import type { FeatureContext } from '../tenants/feature.ts'
import { FeedTokens, feedTokenRoutes } from './live/feed-tokens.ts'
import { type LiveDeps, liveRoutes } from './live/routes.ts'
import { startWebhooks, type WebhooksDeps } from './webhooks/webhooks.ts'

interface FeedsDeps extends WebhooksDeps, Pick<LiveDeps, 'connections' | 'slowConsumerMs' | 'heartbeatMs'> {
  readonly activity: Pick<Activity, 'runs' | 'directory'>
}

/** Activity as it happens: live feeds, the tokens that open them, and webhooks. */
export function startFeeds(context: FeatureContext, { activity, ...deps }: FeedsDeps) {
  const { sql, clock, ring, guards, partitions, takeRead } = context
  const { runs, directory } = activity
  const { routes: webhooks, deliveries } = startWebhooks(context, deps)
  const routes = new Elysia()
    .use(feedTokenRoutes({ guards, feedTokens: new FeedTokens({ sql, clock, directory, ring }) }))
    .use(liveRoutes({ guards, live: { ...deps, partitions, runs, takeBudget: takeRead } }))
    .use(webhooks)
  return { routes, deliveries }
}
