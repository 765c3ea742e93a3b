import { Elysia } from 'elysia'
import packageJson from '../../package.json' with { type: 'json' }
import { agentRoutes } from '../activity/agents/routes.ts'
import { AgentStore } from '../activity/agents/store.ts'
import { agentVersionRoutes } from '../activity/agents/version-routes.ts'
import { AgentVersions } from '../activity/agents/versions.ts'
import { createEventIngest } from '../activity/events/ingest.ts'
import { eventRoutes } from '../activity/events/routes.ts'
import { ConversationReader } from '../activity/runs/conversation/reader.ts'
import type { RunDirectory } from '../activity/runs/directory.ts'
import { EventReader } from '../activity/runs/events.ts'
import { requestRecount } from '../activity/runs/recount.ts'
import { runRoutes } from '../activity/runs/routes.ts'
import { RunSearch } from '../activity/runs/search/run-search.ts'
import { RunStore, type RunStoreDeps } from '../activity/runs/store.ts'
import { createRunTransitions } from '../activity/runs/transitions.ts'
import { usageLag } from '../activity/runs/usage-changes.ts'
import { runViewRoutes } from '../activity/runs/view-routes.ts'
import { RunViews } from '../activity/runs/view-store.ts'
import { ScoreReader } from '../activity/scores/reader.ts'
import { scoreRoutes } from '../activity/scores/routes.ts'
import { Scores } from '../activity/scores/scores.ts'
import { SessionReader } from '../activity/sessions/reader.ts'
import { sessionRoutes } from '../activity/sessions/routes.ts'
import { UserReader } from '../activity/sessions/users.ts'
import { taskRoutes } from '../activity/tasks/routes.ts'
import { TaskStore } from '../activity/tasks/store.ts'
import { TelemetryTasks } from '../activity/tasks/telemetry-tasks.ts'
import { type BodyReader, bodyReader } from '../base/http/body.ts'
import { clientAddress } from '../base/http/client-address.ts'
import { createEnvelope } from '../base/http/envelope.ts'
import { FailureLimit, RateLimiter } from '../base/http/rate-limit.ts'
import { SharedSlice } from '../base/http/shared-slice.ts'
import { mint } from '../base/ids.ts'
import { createKeyedMutex } from '../base/keyed-mutex.ts'
import { dashboardRoutes } from '../dashboard/routes.ts'
import { createLangfuse } from '../doors/langfuse/langfuse.ts'
import { langfuseRoutes } from '../doors/langfuse/routes.ts'
import { mcpRoutes } from '../doors/mcp/routes.ts'
import { OpenAiTraces } from '../doors/openai-traces/ingest.ts'
import { openAiTracesRoutes } from '../doors/openai-traces/routes.ts'
import { JsonConverter } from '../doors/otlp/json-converter.ts'
import { LogIngest } from '../doors/otlp/log-ingest.ts'
import { otlpRoutes } from '../doors/otlp/routes.ts'
import { SpanIngest } from '../doors/otlp/span-ingest.ts'
import { createAgentNames } from '../doors/traces/agents.ts'
import { createEventWriter } from '../doors/traces/event-writer.ts'
import { createRunUpserts } from '../doors/traces/run-upserts.ts'
import { createTraceRuns } from '../doors/traces/runs.ts'
import { decodeLimits } from '../doors/traces/telemetry.ts'
import { TraceStore, type TraceStoreDeps } from '../doors/traces/trace-store.ts'
import type { Connections } from '../feeds/live/connections.ts'
import { FeedTokens, feedTokenRoutes } from '../feeds/live/feed-tokens.ts'
import { liveRoutes } from '../feeds/live/routes.ts'
import type { Deliveries } from '../feeds/webhooks/delivery/deliveries.ts'
import { DeliveryList } from '../feeds/webhooks/delivery-list.ts'
import { Polls } from '../feeds/webhooks/poll.ts'
import { Recoveries } from '../feeds/webhooks/recovery.ts'
import { webhookRoutes } from '../feeds/webhooks/routes.ts'
import { WebhookStore } from '../feeds/webhooks/store.ts'
import { checkWebhookUrl } from '../feeds/webhooks/url.ts'
import type { Hosted } from '../hosted/hosted.ts'
import { invokeRoutes } from '../hosted/invoke/routes.ts'
import { outputRoutes } from '../hosted/output/served-outputs.ts'
import { pauseRoutes } from '../hosted/pauses/routes.ts'
import { hostedSessionRoutes } from '../hosted/sessions/routes.ts'
import type { Alerts } from '../sql/alerts/alerts.ts'
import { alertRoutes } from '../sql/alerts/routes.ts'
import type { Analytics } from '../sql/analytics/analytics.ts'
import { boardRoutes } from '../sql/analytics/board-routes.ts'
import { Boards } from '../sql/analytics/board-store.ts'
import { clickHouseRoutes } from '../sql/analytics/clickhouse-routes.ts'
import { columnarHealth } from '../sql/analytics/health.ts'
import { queryRoutes } from '../sql/analytics/routes.ts'
import { savedQueryRoutes } from '../sql/analytics/saved-routes.ts'
import { SavedQueries } from '../sql/analytics/saved-store.ts'
import { Idempotency } from '../stores/idempotency/store.ts'
import { outboxLag } from '../stores/journal/outbox-relay.ts'
import { unavailableOf } from '../stores/postgres/connect.ts'
import { payerOf, spendBudget } from '../tenants/keys/budget.ts'
import { createGuards, type Guards, type GuardsDeps } from '../tenants/keys/guards.ts'
import type { KeyRing } from '../tenants/keys/key-ring.ts'
import { keyRoutes } from '../tenants/keys/routes.ts'
import type { Caller } from '../tenants/keys/schema.ts'
import { KeyStore } from '../tenants/keys/store.ts'
import type { OwnedPartition, Partitions } from '../tenants/partitions/partition.ts'
import { clusterRoutes, proofRoute } from '../tenants/partitions/shared/routes.ts'
import { authRoutes } from '../tenants/people/auth-routes.ts'
import { Cookies } from '../tenants/people/cookies.ts'
import { OpenIdProvider } from '../tenants/people/provider.ts'
import { peopleRoutes } from '../tenants/people/routes.ts'
import { SignIns } from '../tenants/people/sign-ins.ts'
import { PeopleStore } from '../tenants/people/store.ts'
import { secretRoutes } from '../tenants/secrets/routes.ts'
import type { SecretStore } from '../tenants/secrets/store.ts'
import type { Vault } from '../tenants/secrets/vault.ts'
import { ownWorkspaceRoutes, workspaceRoutes } from '../tenants/workspaces/routes.ts'
import { WorkspaceStore } from '../tenants/workspaces/store.ts'
import { mcpDeps } from './mcp.ts'
import { type OpsDeps, opsRoutes } from './ops/routes.ts'
import { sumOfHubs } from './ops/service-metrics.ts'
import type { ServiceContext } from './pipeline/context.ts'
import type { Pipeline } from './pipeline/pipeline.ts'
import type { Erasure } from './retention/erasure.ts'
import type { RetentionClock } from './retention/retention-clock.ts'
import { erasureRoutes } from './retention/routes.ts'

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
  readonly vault: Vault
  readonly hosted: Hosted
  readonly analytics: Analytics
  readonly alerts: Alerts
  readonly deliveries: Deliveries
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
  const { config, sql, columnar, log, clock, metrics } = context
  const { limits } = config
  const { slowConsumerMs, heartbeatMs } = config.feeds
  const limiter = new RateLimiter(config.rateLimits, { nodes: pipeline.nodes })
  const cancelHosted: RunStoreDeps['cancelHosted'] = (run, reason) => hosted.invocations.cancel(run, reason)
  const runs = new RunStore({ sql, clock, limits, directory, onChange, cancelHosted })
  const slice = new SharedSlice()
  const search = new RunSearch({ sql, columnar, partitions, runs, slice })
  const conversations = new ConversationReader({ columnar, partitions, runs, slice })
  const telemetry = new TelemetryTasks({ columnar, partitions })
  const tasks = new TaskStore({ sql, clock, limits, directory, telemetry, onChange })
  const agents = new AgentStore({ sql, ring, clock })
  const keys = new KeyStore({ sql, ring, clock })
  const recount = (caller: Caller) => requestRecount(sql, caller)
  const workspaces = new WorkspaceStore({ sql, ring, clock })
  const takeBudget = (caller: Caller, events: number) => spendBudget(limiter, payerOf(caller), ['events', events])
  const takeRead = (caller: Caller) => limiter.take(caller.keyId, 'reads', 1)
  const onAccepted = metrics.eventsTaken
  const ingest = createEventIngest({ runs: directory, partitions, limits, takeBudget, onAccepted })
  const scores = new Scores({ runs: directory, partitions, limits, slice, takeBudget, onAccepted: metrics.scoresTaken })
  const scoreReader = new ScoreReader({ columnar, partitions, runs: directory })
  const live = { partitions, feeds, connections, runs, slowConsumerMs, heartbeatMs, takeBudget: takeRead }
  const signIn = signInDeps(components)
  const checked = guardsDeps(components, limiter, signIn?.cookies)
  const { reader, idempotency, addressOf } = checked
  const people = new PeopleStore({ sql, ring, clock })
  const guards = createGuards(checked)
  const root = createEnvelope({
    ...{ log, limits, unavailableOf },
    logRequests: config.logLevel === 'debug',
    observeRequest: metrics.requestAnswered,
  })
  const otlp = otlpDeps(components, { agents, tasks: telemetry, takeBudget, reader, slice })
  return root
    .use(eventRoutes({ guards, reader, idempotency, ingest, forwarder }))
    .use(runRoutes({ guards, runs, events: new EventReader({ columnar, partitions }), conversations, search }))
    .use(runViewRoutes({ guards, views: new RunViews({ sql, clock }) }))
    .use(taskRoutes({ guards, tasks }))
    .use(scoreRoutes({ guards, reader, idempotency, forwarder, limits, sql, scores, scoreReader }))
    .use(traceRoutes({ guards, forwarder, ...otlp }))
    .use(
      langfuseRoutes({
        guards,
        forwarder,
        ...langfuseDeps(components, { otlp, workspaces, scores, takeBudget, reader }),
      }),
    )
    .use(agentRoutes({ guards, agents }))
    .use(agentVersionRoutes({ guards, versions: new AgentVersions({ sql, clock }) }))
    .use(keyRoutes({ guards, keys }))
    .use(peopleRoutes({ guards, people }))
    .use(authRoutes({ guards, ring, people, signIn, addressOf, takeBudget: takeRead, log }))
    .use(feedTokenRoutes({ guards, feedTokens: new FeedTokens({ sql, clock, directory, ring }) }))
    .use(liveRoutes({ guards, live }))
    .use(invokeRoutes({ guards, ...hosted, runs }))
    .use(outputRoutes({ forwarder, ...hosted }))
    .use(pauseRoutes({ guards, ...hosted }))
    .use(sessionRoutes({ guards, sessions: new SessionReader(sql), users: new UserReader(sql) }))
    .use(hostedSessionRoutes({ guards, sessions: hosted.sessions }))
    .use(secretRoutes({ guards, secrets }))
    .use(workspaceRoutes({ guards, workspaces, keys }))
    .use(ownWorkspaceRoutes({ guards, workspaces, eventRetentionDays: config.eventRetentionDays, recount }))
    .use(erasureRoutes({ guards, erasure }))
    .use(sqlRoutes(components, guards, reader))
    .use(mcpRoutes({ guards, reader, ...mcpDeps({ ...components, runs, search, limiter, slice }) }))
    .use(webhookRoutes({ guards, reader, idempotency, forwarder, ...webhookDeps(components) }))
    .use(clusterRoutes({ guards, cluster: pipeline.cluster }))
    .use(proofRoute(forwarder))
    .use(opsRoutes({ ...opsDeps(components), app: () => root }))
    .use(dashboardRoutes())
}

export type App = ReturnType<typeof createApp>

/** The routes of SQL, and of what is made of queries. */
function sqlRoutes({ context, analytics, alerts }: Components, guards: Guards, reader: BodyReader) {
  const { config, sql, clock } = context
  return new Elysia()
    .use(queryRoutes({ guards, analytics, modelPrices: config.hosted.modelPrices }))
    .use(clickHouseRoutes({ guards, reader, analytics }))
    .use(savedQueryRoutes({ guards, savedQueries: new SavedQueries({ sql, clock, analytics }), analytics }))
    .use(boardRoutes({ guards, boards: new Boards({ sql, clock }) }))
    .use(alertRoutes({ guards, ...alerts }))
}

/** The routes that store traces by the mapping of OpenTelemetry. */
function traceRoutes(deps: Parameters<typeof otlpRoutes>[0] & Parameters<typeof openAiTracesRoutes>[0]) {
  return new Elysia().use(otlpRoutes(deps)).use(openAiTracesRoutes(deps))
}

/** The objects that the OpenTelemetry routes share with other routes. */
interface SharedWithOtlp extends Pick<TraceStoreDeps, 'takeBudget'> {
  readonly slice: SharedSlice
  readonly agents: AgentStore
  readonly tasks: TelemetryTasks
  readonly reader: BodyReader
}

function otlpDeps(components: Components, { agents, tasks, takeBudget, reader, slice }: SharedWithOtlp) {
  const { context, directory, pipeline } = components
  const { partitions, onChange } = pipeline
  const { config, sql, clock, metrics } = context
  const { limits } = config
  const runs = createTraceRuns({
    directory,
    upserts: createRunUpserts(sql),
    transitions: createRunTransitions(sql),
    agents: createAgentNames({ agents, agentsMax: limits.otlp_agents }),
    clock,
    onChange,
  })
  const writeEvents = createEventWriter({ partitions, onAccepted: metrics.eventsTaken })
  const withRunLock = createKeyedMutex()
  const deps = { runs, tasks, writeEvents, limits, clock, takeBudget, withRunLock }
  const traces = new TraceStore(deps)
  return {
    reader: reader.withLimit(limits.otlp_bytes),
    runs,
    withRunLock,
    spans: new SpanIngest({ traces, takeBudget }),
    openAiTraces: new OpenAiTraces({ traces, takeBudget }),
    logs: new LogIngest(deps),
    json: new JsonConverter(),
    decodeLimits: decodeLimits(limits),
    slice,
  }
}

/** The objects that the Langfuse routes share with other routes. */
interface SharedWithLangfuse extends Pick<TraceStoreDeps, 'takeBudget'> {
  readonly otlp: ReturnType<typeof otlpDeps>
  readonly scores: Scores
  readonly workspaces: WorkspaceStore
  readonly reader: BodyReader
}

function langfuseDeps(components: Components, { otlp, workspaces, ...shared }: SharedWithLangfuse) {
  const { context, directory, pipeline } = components
  const { partitions, onChange } = pipeline
  const { config, sql, columnar, clock, metrics } = context
  const langfuse = createLangfuse({
    ...{ sql, columnar, directory, partitions, clock, onChange, ...shared },
    ...{ limits: config.limits, onAccepted: metrics.eventsTaken, runs: otlp.runs, withRunLock: otlp.withRunLock },
  })
  const workspaceName = async (caller: Caller) => (await workspaces.own(caller, undefined)).name
  return { ...langfuse, slice: otlp.slice, workspaceName }
}

/** What the routes of webhooks share. */
function webhookDeps({ context, pipeline, vault, deliveries }: Components) {
  const { config, sql, columnar, clock } = context
  const { partitions, feeds } = pipeline
  const { egressAllow } = config.hosted
  const webhooks = new WebhookStore({
    ...{ sql, clock, vault, feeds },
    checkUrl: (url) => checkWebhookUrl(url, egressAllow),
    onChange: () => deliveries.wake(),
  })
  return {
    webhooks,
    deliveryList: new DeliveryList({ sql, columnar, partitions }),
    polls: new Polls({ sql, partitions, feeds, publicUrl: config.publicUrl }),
    recoveries: new Recoveries({ sql, columnar, partitions, feeds, onChange: () => deliveries.wake() }),
    attempts: deliveries,
  }
}

/** How people sign in; undefined where that is not configured. */
function signInDeps({ context, ring }: Components) {
  const { config, sql, clock, log } = context
  const settings = config.people
  if (settings === undefined) return undefined
  return {
    provider: new OpenIdProvider(settings, log),
    cookies: new Cookies(settings.publicUrl),
    signIns: new SignIns({ sql, ring, clock, mint, settings }),
    takesKeys: settings.takesKeys,
  }
}

function guardsDeps(
  { context, ring, pipeline, retentionClock, peerOf }: Components,
  limiter: RateLimiter,
  cookies: Cookies | undefined,
): GuardsDeps {
  const { config, sql, clock, log, dataDir } = context
  const { instanceId } = dataDir
  return {
    ring,
    limiter,
    reader: bodyReader(config),
    idempotency: new Idempotency({ sql, clock, expiryClock: retentionClock, log, instanceId, gone: () => ring.gone() }),
    operatorToken: config.operatorToken,
    operatorAttempts: new FailureLimit({
      what: 'wrong operator tokens',
      perMinute: config.guessing.operatorTokensPerMinute,
      totalPerMinute: config.guessing.operatorTokensPerMinute * OPERATOR_ADDRESSES,
    }),
    addressOf: (request) =>
      clientAddress(peerOf(request) ?? '', request.headers.get('x-forwarded-for'), config.trustedProxies),
    feedOrigins: config.feedOrigins,
    signIns: cookies,
    forwarder: pipeline.forwarder,
  }
}

function opsDeps(components: Components): Omit<OpsDeps, 'app'> {
  const { context, deliveries, isStopping } = components
  const { partitions, feeds, incidents } = components.pipeline
  const { config, sql, columnar, clock, loops, metrics } = context
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
        run_usage: () => usageLag(sql),
        live_feeds: () => sumOfHubs(feeds, (hub) => hub.lag()),
        webhook_results: () => deliveries.unstored(),
      },
      setAside: metrics.setAside,
      owned: () => partitions.owned(),
      setBack: incidents,
      clock,
      loops,
      isStopping,
    },
  }
}

function sumOf(partitions: Partitions, measure: (owned: OwnedPartition) => number): number {
  return partitions.owned().reduce((sum, owned) => sum + measure(owned), 0)
}
