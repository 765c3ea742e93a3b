import { agentRoutes } from '../agents/routes.ts'
import type { AgentStore } from '../agents/store.ts'
import type { Analytics } from '../analytics/analytics.ts'
import { clickHouseRoutes } from '../analytics/clickhouse-routes.ts'
import { queryRoutes } from '../analytics/routes.ts'
import { savedQueryRoutes } from '../analytics/saved-routes.ts'
import type { SavedQueries } from '../analytics/saved-store.ts'
import type { PriceTable } from '../conventions/prices.ts'
import { dashboardRoutes } from '../dashboard/routes.ts'
import type { EventIngest } from '../events/ingest.ts'
import { eventRoutes } from '../events/routes.ts'
import type { Hosted } from '../hosted/hosted.ts'
import { invokeRoutes } from '../hosted/invoke/routes.ts'
import { outputRoutes } from '../hosted/output/routes.ts'
import { pauseRoutes } from '../hosted/pauses/routes.ts'
import { sessionRoutes } from '../hosted/sessions/routes.ts'
import { createEnvelope, type EnvelopeDeps } from '../http/envelope.ts'
import type { Forwarder } from '../keys/forward.ts'
import { createGuards, type GuardsDeps } from '../keys/guards.ts'
import { keyRoutes } from '../keys/routes.ts'
import type { KeyStore } from '../keys/store.ts'
import { type FeedTokens, feedTokenRoutes } from '../live/feed-tokens.ts'
import { type LiveDeps, liveRoutes } from '../live/routes.ts'
import { type OtlpRoutesDeps, otlpRoutes } from '../otlp/routes.ts'
import { type ClusterRoutesDeps, clusterRoutes, proofRoute } from '../partitions/shared/routes.ts'
import type { Erasure } from '../retention/erasure.ts'
import { erasureRoutes } from '../retention/routes.ts'
import type { EventReader } from '../runs/events.ts'
import { runRoutes } from '../runs/routes.ts'
import type { RunStore } from '../runs/store.ts'
import { secretRoutes } from '../secrets/routes.ts'
import type { SecretStore } from '../secrets/store.ts'
import { taskRoutes } from '../tasks/routes.ts'
import type { TaskStore } from '../tasks/store.ts'
import { workspaceRoutes } from '../workspaces/routes.ts'
import type { WorkspaceStore } from '../workspaces/store.ts'
import { type OpsDeps, opsRoutes } from './ops/routes.ts'

export interface AppDeps {
  readonly envelope: EnvelopeDeps
  readonly guards: GuardsDeps
  readonly ops: Omit<OpsDeps, 'app'>
  readonly workspaces: WorkspaceStore
  readonly erasure: Erasure
  readonly keys: KeyStore
  readonly feedTokens: FeedTokens
  readonly live: LiveDeps
  readonly agents: AgentStore
  readonly ingest: EventIngest
  readonly forwarder: Forwarder
  readonly runs: RunStore
  readonly events: EventReader
  readonly tasks: TaskStore
  readonly otlp: Omit<OtlpRoutesDeps, 'guards' | 'forwarder'>
  readonly hosted: Pick<Hosted, 'invocations' | 'responder' | 'servedOutputs' | 'pauses' | 'resume' | 'sessions'>
  readonly secrets: SecretStore
  readonly analytics: Analytics
  readonly modelPrices: PriceTable
  readonly savedQueries: SavedQueries
  readonly cluster: ClusterRoutesDeps['cluster']
}

/** Mounts all HTTP modules, in order. Does not listen yet. */
export function createApp(deps: AppDeps) {
  const guards = createGuards(deps.guards)
  const root = createEnvelope(deps.envelope)
  return root
    .use(
      eventRoutes({
        guards,
        reader: deps.guards.reader,
        idempotency: deps.guards.idempotency,
        ingest: deps.ingest,
        forwarder: deps.forwarder,
      }),
    )
    .use(runRoutes({ guards, runs: deps.runs, events: deps.events }))
    .use(taskRoutes({ guards, tasks: deps.tasks }))
    .use(otlpRoutes({ guards, forwarder: deps.forwarder, ...deps.otlp }))
    .use(agentRoutes({ guards, agents: deps.agents }))
    .use(keyRoutes({ guards, keys: deps.keys }))
    .use(feedTokenRoutes({ guards, feedTokens: deps.feedTokens }))
    .use(liveRoutes({ guards, live: deps.live }))
    .use(invokeRoutes({ guards, ...deps.hosted, runs: deps.runs }))
    .use(outputRoutes({ forwarder: deps.forwarder, ...deps.hosted }))
    .use(pauseRoutes({ guards, ...deps.hosted }))
    .use(sessionRoutes({ guards, sessions: deps.hosted.sessions }))
    .use(secretRoutes({ guards, secrets: deps.secrets }))
    .use(workspaceRoutes({ guards, workspaces: deps.workspaces, keys: deps.keys }))
    .use(erasureRoutes({ guards, erasure: deps.erasure }))
    .use(queryRoutes({ guards, analytics: deps.analytics, modelPrices: deps.modelPrices }))
    .use(clickHouseRoutes({ guards, reader: deps.guards.reader, analytics: deps.analytics }))
    .use(savedQueryRoutes({ guards, savedQueries: deps.savedQueries, analytics: deps.analytics }))
    .use(clusterRoutes({ guards, cluster: deps.cluster }))
    .use(proofRoute(deps.forwarder))
    .use(opsRoutes({ ...deps.ops, app: () => root }))
    .use(dashboardRoutes())
}

export type App = ReturnType<typeof createApp>
