import packageJson from '../../package.json' with { type: 'json' }
import { agentRoutes } from '../agents/routes.ts'
import { AgentStore } from '../agents/store.ts'
import { Analytics } from '../analytics/analytics.ts'
import { clickHouseRoutes } from '../analytics/clickhouse-routes.ts'
import { columnarHealth } from '../analytics/health.ts'
import { queryRoutes } from '../analytics/routes.ts'
import { savedQueryRoutes } from '../analytics/saved-routes.ts'
import { SavedQueries } from '../analytics/saved-store.ts'
import { dashboardRoutes } from '../dashboard/routes.ts'
import { createEventIngest } from '../events/ingest.ts'
import { eventRoutes } from '../events/routes.ts'
import type { Hosted } from '../hosted/hosted.ts'
import { invokeRoutes } from '../hosted/invoke/routes.ts'
import { outputRoutes } from '../hosted/output/served-outputs.ts'
import { pauseRoutes } from '../hosted/pauses/routes.ts'
import { sessionRoutes } from '../hosted/sessions/routes.ts'
import { type BodyReader, bodyReader } from '../http/body.ts'
import { clientAddress } from '../http/client-address.ts'
import { createEnvelope } from '../http/envelope.ts'
import { FailureLimit, RateLimiter } from '../http/rate-limit.ts'
import { SharedSlice } from '../http/shared-slice.ts'
import { Idempotency } from '../idempotency/store.ts'
import { outboxLag } from '../journal/outbox-relay.ts'
import { createGuards, type GuardsDeps } from '../keys/guards.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { keyRoutes } from '../keys/routes.ts'
import type { Caller } from '../keys/schema.ts'
import { KeyStore } from '../keys/store.ts'
import type { Connections } from '../live/connections.ts'
import { FeedTokens, feedTokenRoutes } from '../live/feed-tokens.ts'
import { liveRoutes } from '../live/routes.ts'
import { createAgentNames } from '../otlp/agents.ts'
import { createEventWriter } from '../otlp/event-writer.ts'
import { LogIngest } from '../otlp/log-ingest.ts'
import { otlpRoutes } from '../otlp/routes.ts'
import { createRunUpserts } from '../otlp/run-upserts.ts'
import { createOtlpRuns } from '../otlp/runs.ts'
import { decodeLimits } from '../otlp/telemetry.ts'
import { type OtlpIngestDeps, TraceIngest } from '../otlp/trace-ingest.ts'
import type { OwnedPartition, Partitions } from '../partitions/partition.ts'
import { clusterRoutes, proofRoute } from '../partitions/shared/routes.ts'
import { unavailableOf } from '../postgres/connect.ts'
import type { Erasure } from '../retention/erasure.ts'
import type { RetentionClock } from '../retention/retention-clock.ts'
import { erasureRoutes } from '../retention/routes.ts'
import type { RunDirectory } from '../runs/directory.ts'
import { EventReader } from '../runs/events.ts'
import { runRoutes } from '../runs/routes.ts'
import { RunStore, type RunStoreDeps } from '../runs/store.ts'
import { createRunTransitions } from '../runs/transitions.ts'
import { secretRoutes } from '../secrets/routes.ts'
import type { SecretStore } from '../secrets/store.ts'
import { taskRoutes } from '../tasks/routes.ts'
import { TaskStore } from '../tasks/store.ts'
import { TelemetryTasks } from '../tasks/telemetry-tasks.ts'
import { workspaceRoutes } from '../workspaces/routes.ts'
import { WorkspaceStore } from '../workspaces/store.ts'
import type { ServiceContext } from './context.ts'
import { type OpsDeps, opsRoutes } from './ops/routes.ts'
import { sumOfHubs } from './ops/service-metrics.ts'
import type { Pipeline } from './pipeline/pipeline.ts'

/** The started components of the service. */
interface Components {
  readonly context: ServiceContext
  readonly ring: KeyRing
  readonly pipeline: Pipeline
  readonly directory: RunDirectory
  readonly connections: Connections
  readonly retentionClock: RetentionClock
  readonly erasure: Erasure
  readonly secrets: SecretStore
  readonly hosted: Hosted
  readonly isStopping: () => boolean
  /** The remote address of a request's connection. */
  readonly peerOf: (request: Request) => string | undefined
}

/** The limit of wrong operator tokens from all addresses together, as a multiple of the limit per address. */
const OPERATOR_ADDRESSES = 10

/** Mounts all HTTP modules on the started components, in order. Does not listen yet. */
export function createApp(components: Components) {
  const { context, ring, pipeline, directory, connections, secrets, hosted, erasure } = components
  const { partitions, feeds, forwarder, onChange } = pipeline
  const { config, sql, columnar, log, clock, metrics, penalties } = context
  const { limits } = config
  const { slowConsumerMs, heartbeatMs } = config.feeds
  const limiter = new RateLimiter(config.rateLimits, { nodes: pipeline.nodes })
  const cancelHosted: RunStoreDeps['cancelHosted'] = (run, reason) => hosted.invocations.cancel(run, reason)
  const runs = new RunStore({ sql, clock, limits, directory, onChange, cancelHosted })
  const telemetry = new TelemetryTasks({ columnar, partitions })
  const tasks = new TaskStore({ sql, clock, limits, directory, telemetry, onChange })
  const agents = new AgentStore({ sql, ring, clock })
  const keys = new KeyStore({ sql, ring, clock })
  const analytics = new Analytics(columnar, partitions, config.queries, penalties)
  const takeBudget = (caller: Caller, events: number) => limiter.take(caller.keyId, 'events', events)
  const onAccepted = metrics.eventsTaken
  const ingest = createEventIngest({ runs: directory, partitions, limits, takeBudget, onAccepted })
  const live = {
    ...{ partitions, feeds, connections, runs, slowConsumerMs, heartbeatMs },
    takeBudget: (caller: Caller) => limiter.take(caller.keyId, 'reads', 1),
  }
  const checked = guardsDeps(components, limiter)
  const { reader, idempotency } = checked
  const guards = createGuards(checked)
  const root = createEnvelope({
    ...{ log, limits, unavailableOf },
    logRequests: config.logLevel === 'debug',
    observeRequest: metrics.requestAnswered,
  })
  return root
    .use(eventRoutes({ guards, reader, idempotency, ingest, forwarder }))
    .use(runRoutes({ guards, runs, events: new EventReader({ columnar, partitions }) }))
    .use(taskRoutes({ guards, tasks }))
    .use(otlpRoutes({ guards, forwarder, ...otlpDeps(components, { agents, tasks: telemetry, takeBudget, reader }) }))
    .use(agentRoutes({ guards, agents }))
    .use(keyRoutes({ guards, keys }))
    .use(feedTokenRoutes({ guards, feedTokens: new FeedTokens({ sql, clock, directory, ring }) }))
    .use(liveRoutes({ guards, live }))
    .use(invokeRoutes({ guards, ...hosted, runs }))
    .use(outputRoutes({ forwarder, ...hosted }))
    .use(pauseRoutes({ guards, ...hosted }))
    .use(sessionRoutes({ guards, sessions: hosted.sessions }))
    .use(secretRoutes({ guards, secrets }))
    .use(workspaceRoutes({ guards, workspaces: new WorkspaceStore({ sql, ring, clock }), keys }))
    .use(erasureRoutes({ guards, erasure }))
    .use(queryRoutes({ guards, analytics, modelPrices: config.hosted.modelPrices }))
    .use(clickHouseRoutes({ guards, reader, analytics }))
    .use(savedQueryRoutes({ guards, savedQueries: new SavedQueries({ sql, clock, analytics }), analytics }))
    .use(clusterRoutes({ guards, cluster: pipeline.cluster }))
    .use(proofRoute(forwarder))
    .use(opsRoutes({ ...opsDeps(components), app: () => root }))
    .use(dashboardRoutes())
}

export type App = ReturnType<typeof createApp>

/** The objects that the OpenTelemetry routes share with other routes. */
interface SharedWithOtlp extends Pick<OtlpIngestDeps, 'takeBudget'> {
  readonly agents: AgentStore
  readonly tasks: TelemetryTasks
  readonly reader: BodyReader
}

function otlpDeps(components: Components, { agents, tasks, takeBudget, reader }: SharedWithOtlp) {
  const { context, directory, pipeline } = components
  const { partitions, onChange } = pipeline
  const { config, sql, clock, metrics } = context
  const { limits } = config
  const runs = createOtlpRuns({
    directory,
    upserts: createRunUpserts(sql),
    transitions: createRunTransitions(sql),
    agents: createAgentNames({ agents, agentsMax: limits.otlp_agents }),
    clock,
    onChange,
  })
  const writeEvents = createEventWriter({ partitions, onAccepted: metrics.eventsTaken })
  const deps = { runs, tasks, writeEvents, limits, clock, takeBudget }
  return {
    reader: reader.withLimit(limits.otlp_bytes),
    unavailableOf,
    traces: new TraceIngest(deps),
    logs: new LogIngest(deps),
    decodeLimits: decodeLimits(limits),
    slice: new SharedSlice(),
  }
}

function guardsDeps({ context, ring, pipeline, retentionClock, peerOf }: Components, limiter: RateLimiter): GuardsDeps {
  const { config, sql, clock, log, dataDir } = context
  const { instanceId } = dataDir
  return {
    ring,
    limiter,
    reader: bodyReader(config),
    idempotency: new Idempotency({ sql, clock, expiryClock: retentionClock, log, instanceId }),
    operatorToken: config.operatorToken,
    operatorAttempts: new FailureLimit({
      what: 'wrong operator tokens',
      perMinute: config.guessing.operatorTokensPerMinute,
      totalPerMinute: config.guessing.operatorTokensPerMinute * OPERATOR_ADDRESSES,
    }),
    addressOf: (request) =>
      clientAddress(peerOf(request) ?? '', request.headers.get('x-forwarded-for'), config.trustedProxies),
    feedOrigins: config.feedOrigins,
    forwarder: pipeline.forwarder,
  }
}

function opsDeps(components: Components): Omit<OpsDeps, 'app'> {
  const { context, isStopping } = components
  const { partitions, feeds, incidents } = components.pipeline
  const { config, sql, columnar, loops, metrics } = context
  return {
    config,
    version: packageJson.version,
    metrics: components.pipeline.metrics ?? metrics.registry,
    health: {
      dependencies: [
        { name: 'postgres', essential: true, check: () => sql`select 1` },
        { name: 'journal', essential: true, check: () => partitions.check() },
        ...columnarHealth({ client: columnar, owned: () => partitions.owned() }),
      ],
      lags: {
        clickhouse: () => sumOf(partitions, ({ journal, sink }) => journal.endSeq - sink.loadedSeq()),
        run_statistics: () => sumOf(partitions, ({ statistics }) => statistics.lag()),
        outbox: () => outboxLag(sql),
        live_feeds: () => sumOfHubs(feeds, (hub) => hub.lag()),
      },
      owned: () => partitions.owned(),
      setBack: incidents,
      loops,
      isStopping,
    },
  }
}

function sumOf(partitions: Partitions, measure: (owned: OwnedPartition) => number): number {
  return partitions.owned().reduce((sum, owned) => sum + measure(owned), 0)
}
