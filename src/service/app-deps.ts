import packageJson from '../../package.json' with { type: 'json' }
import { AgentStore } from '../agents/store.ts'
import { createAnalytics } from '../analytics/analytics.ts'
import { columnarHealth } from '../analytics/health.ts'
import { SavedQueries } from '../analytics/saved-store.ts'
import { createEventIngest } from '../events/ingest.ts'
import type { Hosted } from '../hosted/hosted.ts'
import { type BodyReader, bodyReader } from '../http/body.ts'
import { clientAddress } from '../http/client-address.ts'
import { FailureLimit, RateLimiter } from '../http/rate-limit.ts'
import { SharedSlice } from '../http/shared-slice.ts'
import { Idempotency } from '../idempotency/store.ts'
import { outboxLag } from '../journal/outbox-relay.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import type { Caller } from '../keys/schema.ts'
import { KeyStore } from '../keys/store.ts'
import type { Connections } from '../live/connections.ts'
import { FeedTokens } from '../live/feed-tokens.ts'
import { createAgentNames } from '../otlp/agents.ts'
import { createEventWriter } from '../otlp/event-writer.ts'
import { LogIngest } from '../otlp/log-ingest.ts'
import { createRunUpserts } from '../otlp/run-upserts.ts'
import { createOtlpRuns } from '../otlp/runs.ts'
import { decodeLimits } from '../otlp/telemetry.ts'
import { type OtlpIngestDeps, TraceIngest } from '../otlp/trace-ingest.ts'
import type { OwnedPartition, Partitions } from '../partitions/partition.ts'
import { unavailableOf } from '../postgres/connect.ts'
import type { Erasure } from '../retention/erasure.ts'
import type { RetentionClock } from '../retention/retention-clock.ts'
import type { RunDirectory } from '../runs/directory.ts'
import { EventReader } from '../runs/events.ts'
import { RunStore, type RunStoreDeps } from '../runs/store.ts'
import { createRunTransitions } from '../runs/transitions.ts'
import type { SecretStore } from '../secrets/store.ts'
import { TaskStore } from '../tasks/store.ts'
import { TelemetryTasks } from '../tasks/telemetry-tasks.ts'
import { WorkspaceStore } from '../workspaces/store.ts'
import type { AppDeps } from './app.ts'
import type { ServiceContext } from './context.ts'
import { feedLag } from './ops/service-metrics.ts'
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

/** Creates the dependencies of the HTTP routes from the started components. */
export function appDeps(components: Components): AppDeps {
  const { context, ring, directory, secrets, hosted, erasure } = components
  const { partitions, onChange } = components.pipeline
  const { config, sql, columnar, clock, metrics, penalties } = context
  const { limits } = config
  const limiter = new RateLimiter(config.rateLimits, { clock, nodes: components.pipeline.nodes })
  const cancelHosted: RunStoreDeps['cancelHosted'] = (run, reason) => hosted.invocations.cancel(run, reason)
  const runs = new RunStore({ sql, clock, limits, directory, onChange, cancelHosted })
  const telemetry = new TelemetryTasks({ columnar, partitions })
  const tasks = new TaskStore({ sql, clock, limits, directory, telemetry, onChange })
  const agents = new AgentStore({ sql, ring, clock })
  const guards = guardsDeps(components, limiter)
  const takeBudget = (caller: Caller, events: number) => limiter.take(caller.keyId, 'events', events)
  const analytics = createAnalytics({ client: columnar, partitions, caps: config.queries, penalties })
  return {
    envelope: envelopeDeps(context),
    guards,
    ops: opsDeps(components),
    workspaces: new WorkspaceStore({ sql, ring, clock }),
    erasure,
    keys: new KeyStore({ sql, ring, clock }),
    feedTokens: new FeedTokens({ sql, clock, directory, ring }),
    live: { ...liveDeps(components, limiter), runs },
    agents,
    ingest: createEventIngest({
      runs: directory,
      partitions,
      limits,
      takeBudget,
      onAccepted: metrics.eventsTaken,
    }),
    forwarder: components.pipeline.forwarder,
    cluster: components.pipeline.cluster,
    hosted,
    secrets,
    runs,
    events: new EventReader({ columnar, partitions }),
    analytics,
    modelPrices: config.hosted.modelPrices,
    savedQueries: new SavedQueries({ sql, clock, analytics }),
    tasks,
    otlp: otlpDeps(components, { agents, tasks: telemetry, takeBudget, reader: guards.reader }),
  }
}

/** The objects that the OpenTelemetry routes share with other routes. */
interface SharedWithOtlp extends Pick<OtlpIngestDeps, 'takeBudget'> {
  readonly agents: AgentStore
  readonly tasks: TelemetryTasks
  readonly reader: BodyReader
}

function otlpDeps(components: Components, { agents, tasks, takeBudget, reader }: SharedWithOtlp): AppDeps['otlp'] {
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

function envelopeDeps({ config, log, metrics }: ServiceContext): AppDeps['envelope'] {
  return {
    log,
    limits: config.limits,
    logRequests: config.logLevel === 'debug',
    observeRequest: metrics.requestAnswered,
    unavailableOf,
  }
}

function guardsDeps(
  { context, ring, pipeline, retentionClock, peerOf }: Components,
  limiter: RateLimiter,
): AppDeps['guards'] {
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

function opsDeps(components: Components): AppDeps['ops'] {
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
      consumers: [
        { name: 'clickhouse', lag: () => sumOf(partitions, ({ journal, sink }) => journal.endSeq - sink.loadedSeq()) },
        { name: 'run_statistics', lag: () => sumOf(partitions, ({ statistics }) => statistics.lag()) },
        { name: 'outbox', lag: () => outboxLag(sql) },
        { name: 'live_feeds', lag: () => feedLag(feeds) },
      ],
      owned: () => partitions.owned(),
      setBack: incidents,
      loops,
      isStopping,
    },
  }
}

function liveDeps(components: Components, limiter: RateLimiter): Omit<AppDeps['live'], 'runs'> {
  const { context, connections, pipeline } = components
  const { slowConsumerMs, heartbeatMs } = context.config.feeds
  return {
    partitions: pipeline.partitions,
    feeds: pipeline.feeds,
    connections,
    takeBudget: (caller) => limiter.take(caller.keyId, 'reads', 1),
    slowConsumerMs,
    heartbeatMs,
  }
}

function sumOf(partitions: Partitions, measure: (owned: OwnedPartition) => number): number {
  return partitions.owned().reduce((sum, owned) => sum + measure(owned), 0)
}
