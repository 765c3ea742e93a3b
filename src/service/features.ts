import { createHmac } from 'node:crypto'
import packageJson from '../../package.json' with { type: 'json' }
import { startActivity } from '../activity/activity.ts'
import type { RunDirectory } from '../activity/runs/directory.ts'
import { requestRecount } from '../activity/runs/recount.ts'
import { createLangfuse } from '../doors/langfuse/langfuse.ts'
import { createMcp } from '../doors/mcp/mcp.ts'
import { openAiTracesRoutes } from '../doors/openai-traces/routes.ts'
import { otlpRoutes } from '../doors/otlp/routes.ts'
import { createTraces } from '../doors/traces/traces.ts'
import { startFeeds } from '../feeds/feeds.ts'
import type { Connections } from '../feeds/live/connections.ts'
import { startHosted } from '../hosted/hosted.ts'
import { hostedRoutes } from '../hosted/routes.ts'
import { createEgress } from '../outbound/egress/egress.ts'
import { openAiOnDemand } from '../outbound/model/on-demand.ts'
import { startSql } from '../sql/sql.ts'
import { clusterRoutes, proofRoute } from '../tenants/partitions/shared/routes.ts'
import { createVault } from '../tenants/secrets/vault.ts'
import { createTenants } from '../tenants/tenants.ts'
import type { Config } from './config/config.ts'
import type { createEdge } from './edge.ts'
import type { ServiceOptions } from './lifecycle.ts'
import type { ServiceContext } from './pipeline/context.ts'
import type { Pipeline } from './pipeline/pipeline.ts'
import type { Erasure } from './retention/erasure.ts'
import { erasureRoutes } from './retention/routes.ts'

interface FeaturesDeps extends ReturnType<typeof createEdge> {
  readonly pipeline: Pipeline
  readonly directory: RunDirectory
  readonly connections: Connections
  readonly erasure: Erasure
}

/** Starts what the service is for. Each feature builds its own parts; here is only what it needs of the others. */
export function startFeatures(
  { config, sql, dataDir, penalties }: ServiceContext,
  options: ServiceOptions,
  { feature, signIn, pipeline, directory, connections, erasure }: FeaturesDeps,
) {
  const { guards } = feature
  const { feeds, peers } = pipeline
  const { modelPrices, waitMs, egressAllow, openAiApiKey: apiKey, openAiBaseUrl: baseUrl } = config.hosted
  const egress = createEgress({ allow: egressAllow })
  const vault = createVault({
    key: config.hosted.secretsKey ?? sharedSecretsKey(config.cluster),
    dataDir: config.dataDir,
  })
  const tenants = createTenants(feature, {
    signIn,
    vault,
    eventRetentionDays: config.eventRetentionDays,
    recount: (caller) => requestRecount(sql, caller),
  })
  const hosted = startHosted(feature, {
    ...config.feeds,
    config: config.hosted,
    owner: dataDir.instanceId,
    secrets: tenants.secrets,
    connections,
    egress,
    peers,
    model: openAiOnDemand({ apiKey, baseUrl, log: feature.log }),
  })
  const activity = startActivity(feature, {
    directory,
    cancelHosted: (run, reason) => hosted.invocations.cancel(run, reason),
  })
  const { routes: live, deliveries } = startFeeds(feature, {
    ...config.feeds,
    activity,
    feeds,
    connections,
    vault,
    egress,
    egressAllow,
    options: options.webhooks,
  })
  const queries = startSql(feature, { caps: config.queries, penalties, modelPrices, secondMs: options.alertSecondMs })
  const traces = createTraces(feature, activity)
  const langfuse = createLangfuse(feature, { traces, activity, workspaces: tenants.workspaces })
  const mcp = createMcp(feature, {
    activity,
    hosted,
    connections,
    modelPrices,
    waitMs,
    analytics: queries.analytics,
    version: packageJson.version,
  })
  const routes = [
    activity.routes,
    otlpRoutes({ ...feature, traces }),
    openAiTracesRoutes({ ...feature, traces }),
    langfuse.routes,
    tenants.routes,
    live,
    hostedRoutes(feature, hosted, activity.runs),
    queries.routes,
    mcp.routes,
    erasureRoutes({ guards, erasure }),
    clusterRoutes({ guards, cluster: pipeline.cluster }),
    proofRoute(pipeline.forwarder),
  ]
  return { routes, deliveries, hosted }
}

/** The nodes of a cluster must be able to open each other's secrets. */
function sharedSecretsKey(cluster: Config['cluster']): Uint8Array | undefined {
  return cluster === undefined
    ? undefined
    : createHmac('sha256', cluster.secret).update('secrets of workspaces').digest()
}
