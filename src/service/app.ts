import { Elysia } from 'elysia'
import packageJson from '../../package.json' with { type: 'json' }
import { agentRoutes } from '../agents/routes.ts'
import { AgentStore } from '../agents/store.ts'
import { agentVersionRoutes } from '../agents/version-routes.ts'
import { AgentVersions } from '../agents/versions.ts'
import type { Alerts } from '../alerts/alerts.ts'
import { alertRoutes } from '../alerts/routes.ts'
import type { Analytics } from '../analytics/analytics.ts'
import { boardRoutes } from '../analytics/board-routes.ts'
import { Boards } from '../analytics/board-store.ts'
import { clickHouseRoutes } from '../analytics/clickhouse-routes.ts'
import { columnarHealth } from '../analytics/health.ts'
import { queryRoutes } from '../analytics/routes.ts'
import { savedQueryRoutes } from '../analytics/saved-routes.ts'
import { SavedQueries } from '../analytics/saved-store.ts'
import { mint } from '../base/ids.ts'
import { dashboardRoutes } from '../dashboard/routes.ts'
import { createEventIngest } from '../events/ingest.ts'
import { eventRoutes } from '../events/routes.ts'
import type { Hosted } from '../hosted/hosted.ts'
import { invokeRoutes } from '../hosted/invoke/routes.ts'
import { outputRoutes } from '../hosted/output/served-outputs.ts'
import { pauseRoutes } from '../hosted/pauses/routes.ts'
import { hostedSessionRoutes } from '../hosted/sessions/routes.ts'
import { type BodyReader, bodyReader } from '../http/body.ts'
import { clientAddress } from '../http/client-address.ts'
import { createEnvelope } from '../http/envelope.ts'
import { FailureLimit, RateLimiter } from '../http/rate-limit.ts'
import { SharedSlice } from '../http/shared-slice.ts'
import { Idempotency } from '../idempotency/store.ts'
import { outboxLag } from '../journal/outbox-relay.ts'
import { payerOf, spendBudget } from '../keys/budget.ts'
import { createGuards, type Guards, type GuardsDeps } from '../keys/guards.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { keyRoutes } from '../keys/routes.ts'
import type { Caller } from '../keys/schema.ts'
import { KeyStore } from '../keys/store.ts'
import { createLangfuse } from '../langfuse/langfuse.ts'
import { langfuseRoutes } from '../langfuse/routes.ts'
import type { Connections } from '../live/connections.ts'
import { FeedTokens, feedTokenRoutes } from '../live/feed-tokens.ts'
import { liveRoutes } from '../live/routes.ts'
import { mcpRoutes } from '../mcp/routes.ts'
import { OpenAiTraces } from '../openai-traces/ingest.ts'
import { openAiTracesRoutes } from '../openai-traces/routes.ts'
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
import { authRoutes } from '../people/auth-routes.ts'
import { Cookies } from '../people/cookies.ts'
import { OpenIdProvider } from '../people/provider.ts'
import { checkRole } from '../people/roles.ts'
import { peopleRoutes } from '../people/routes.ts'
import { SignIns } from '../people/sign-ins.ts'
import { PeopleStore } from '../people/store.ts'
import { unavailableOf } from '../postgres/connect.ts'
import type { Erasure } from '../retention/erasure.ts'
import type { RetentionClock } from '../retention/retention-clock.ts'
import { erasureRoutes } from '../retention/routes.ts'
import type { RunDirectory } from '../runs/directory.ts'
import { EventReader } from '../runs/events.ts'
import { requestRecount } from '../runs/recount.ts'
import { runRoutes } from '../runs/routes.ts'
import { RunSearch } from '../runs/search/run-search.ts'
import { RunStore, type RunStoreDeps } from '../runs/store.ts'
import { createRunTransitions } from '../runs/transitions.ts'
import { usageLag } from '../runs/usage-changes.ts'
import { runViewRoutes } from '../runs/view-routes.ts'
import { RunViews } from '../runs/view-store.ts'
import { ScoreReader } from '../scores/reader.ts'
import { scoreRoutes } from '../scores/routes.ts'
import { Scores } from '../scores/scores.ts'
import { secretRoutes } from '../secrets/routes.ts'
import type { SecretStore } from '../secrets/store.ts'
import type { Vault } from '../secrets/vault.ts'
import { SessionReader } from '../sessions/reader.ts'
import { sessionRoutes } from '../sessions/routes.ts'
import { UserReader } from '../sessions/users.ts'
import { taskRoutes } from '../tasks/routes.ts'
import { TaskStore } from '../tasks/store.ts'
import { TelemetryTasks } from '../tasks/telemetry-tasks.ts'
import type { Deliveries } from '../webhooks/delivery/deliveries.ts'
import { DeliveryList } from '../webhooks/delivery-list.ts'
import { Polls } from '../webhooks/poll.ts'
import { Recoveries } from '../webhooks/recovery.ts'
import { webhookRoutes } from '../webhooks/routes.ts'
import { WebhookStore } from '../webhooks/store.ts'
import { checkWebhookUrl } from '../webhooks/url.ts'
import { ownWorkspaceRoutes, workspaceRoutes } from '../workspaces/routes.ts'
import { WorkspaceStore } from '../workspaces/store.ts'
import type { ServiceContext } from './context.ts'
import { mcpDeps } from './mcp.ts'
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
    .use(runRoutes({ guards, runs, events: new EventReader({ columnar, partitions }), search }))
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
interface SharedWithOtlp extends Pick<OtlpIngestDeps, 'takeBudget'> {
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
  const traces = new TraceIngest(deps)
  return {
    reader: reader.withLimit(limits.otlp_bytes),
    unavailableOf,
    runs,
    traces,
    openAiTraces: new OpenAiTraces({ traces, takeBudget }),
    logs: new LogIngest(deps),
    decodeLimits: decodeLimits(limits),
    slice,
  }
}

/** The objects that the Langfuse routes share with other routes. */
interface SharedWithLangfuse extends Pick<OtlpIngestDeps, 'takeBudget'> {
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
    ...{ limits: config.limits, onAccepted: metrics.eventsTaken, runs: otlp.runs },
  })
  const workspaceName = async (caller: Caller) => (await workspaces.own(caller, undefined)).name
  return { ...langfuse, slice: otlp.slice, workspaceName, unavailableOf }
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
    signIns: cookies && { tokenOf: (request) => cookies.tokenOf(request), checkRole },
    forwarder: pipeline.forwarder,
  }
}

function opsDeps(components: Components): Omit<OpsDeps, 'app'> {
  const { context, isStopping } = components
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
