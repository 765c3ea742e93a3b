import { Elysia } from 'elysia'
import type { RunStore } from '../activity/runs/store.ts'
import type { FeatureContext } from '../tenants/feature.ts'
import type { Hosted } from './hosted.ts'
import { invokeRoutes } from './invoke/routes.ts'
import { outputRoutes } from './output/served-outputs.ts'
import { pauseRoutes } from './pauses/routes.ts'
import { hostedSessionRoutes } from './sessions/routes.ts'

/** Agents that the service runs: invoking them, what they say, what they wait for, and their sessions. */
export function hostedRoutes({ guards, forwarder }: FeatureContext, hosted: Hosted, runs: RunStore) {
  return new Elysia()
    .use(invokeRoutes({ guards, ...hosted, runs }))
    .use(outputRoutes({ forwarder, ...hosted }))
    .use(pauseRoutes({ guards, ...hosted }))
    .use(hostedSessionRoutes({ guards, sessions: hosted.sessions }))
}
