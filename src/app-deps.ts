import packageJson from '../package.json' with { type: 'json' }
import { AgentStore } from './agents/store.ts'
import { createAnalytics } from './analytics/analytics.ts'
import { columnarHealth } from './analytics/health.ts'
import { SavedQueries } from './analytics/saved-store.ts'
import type { AppDeps } from './app.ts'
import { createEventIngest } from './events/ingest.ts'
import type { Hosted } from './hosted/hosted.ts'
import { type BodyReader, bodyReader } from './http/body.ts'
import { clientAddress } from './http/client-address.ts'
import { FailureLimit } from './http/failure-limit.ts'
import { createIdempotency } from './http/idempotency.ts'
import { RateLimiter } from './http/rate-limit.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { Caller } from './keys/schema.ts'
import { KeyStore } from './keys/store.ts'
import { FeedTokens } from './live/feed-tokens.ts'
import { createAgentNames } from './otlp/agents.ts'
import { createEventWriter } from './otlp/event-writer.ts'
import { LogIngest } from './otlp/log-ingest.ts'
import { createRunUpserts } from './otlp/run-upserts.ts'
import { createOtlpRuns } from './otlp/runs.ts'
import { type OtlpIngestDeps, TraceIngest } from './otlp/trace-ingest.ts'
import type { Consumers, Feeds, Indexes, OpenedJournal, ServiceContext } from './pipeline.ts'
import { unavailableOf } from './postgres/connect.ts'
import type { Erasure } from './retention/erasure.ts'
import type { RetentionClock } from './retention/retention-clock.ts'
import { createEventReader } from './runs/events.ts'
import { RunStore, type RunStoreDeps } from './runs/store.ts'
import { createRunTransitions } from './runs/transitions.ts'
import type { SecretStore } from './secrets/store.ts'
import { TaskStore } from './tasks/store.ts'
import { TelemetryTasks } from './tasks/telemetry-tasks.ts'
import { WorkspaceStore } from './workspaces/store.ts'

/** The started parts of the service. */
export interface AppParts extends OpenedJournal, Consumers, Indexes, Feeds {
  readonly context: ServiceContext
  readonly ring: KeyRing
  readonly retentionClock: RetentionClock
  readonly erasure: Erasure
  readonly secrets: SecretStore
  readonly hosted: Hosted
  /** Called after each commit that wrote to the outbox. */
  readonly onChange: () => void
  readonly isStopping: () => boolean
  /** The remote address of a request's connection. */
  readonly peerOf: (request: Request) => string | undefined
}

/** The total limit of wrong operator tokens, as a multiple of the limit per address. */
const OPERATOR_ADDRESSES = 10

/** Creates the dependencies of the HTTP routes from the started parts. */
export function appDeps(parts: AppParts): AppDeps {
  const { context, ring, journal, sink, relay, directory, ids, secrets, hosted, onChange, erasure } = parts
  const { config, sql, columnar, clock, metrics, penalties } = context
  const { limits } = config
  const limiter = new RateLimiter(config.rateLimits, { clock })
  const cancelHosted: RunStoreDeps['cancelHosted'] = (run, reason) => hosted.invocations.cancel(run, reason)
  const runs = new RunStore({ sql, clock, limits, directory, onChange, cancelHosted })
  const telemetry = new TelemetryTasks({ columnar, sink, journal, relay })
  const tasks = new TaskStore({ sql, clock, limits, directory, telemetry, onChange })
  const agents = new AgentStore({ sql, ring, clock })
  const guards = guardsDeps(parts, limiter)
  const takeBudget = (caller: Caller, events: number) => limiter.take(caller.keyId, 'events', events)
  const analytics = createAnalytics({ client: columnar, sink, caps: config.queries, penalties })
  return {
    envelope: envelopeDeps(context),
    guards,
    ops: opsDeps(parts),
    workspaces: new WorkspaceStore({ sql, ring, clock }),
    erasure,
    keys: new KeyStore({ sql, ring, clock }),
    feedTokens: new FeedTokens({ sql, clock, directory, ring }),
    live: { ...liveDeps(parts, limiter), runs },
    agents,
    ingest: createEventIngest({
      runs: directory,
      journal,
      ids,
      limits,
      takeBudget,
      onAccepted: metrics.eventsTaken,
    }),
    hosted,
    secrets,
    runs,
    events: createEventReader({ columnar, sink, journal }),
    analytics,
    savedQueries: new SavedQueries({ sql, clock, analytics }),
    tasks,
    otlp: otlpDeps(parts, { agents, tasks: telemetry, takeBudget, reader: guards.reader }),
  }
}

/** What the routes of OpenTelemetry need that other modules have made. */
interface OtlpParts extends Pick<OtlpIngestDeps, 'takeBudget'> {
  readonly agents: AgentStore
  readonly tasks: TelemetryTasks
  readonly reader: BodyReader
}

function otlpDeps(parts: AppParts, { agents, tasks, takeBudget, reader }: OtlpParts): AppDeps['otlp'] {
  const { context, directory, onChange, journal, ids } = parts
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
  const writeEvents = createEventWriter({ journal, ids, onAccepted: metrics.eventsTaken })
  const deps = { runs, tasks, writeEvents, limits, clock, takeBudget }
  return {
    reader: reader.withLimit(limits.otlp_bytes),
    unavailableOf,
    traces: new TraceIngest(deps),
    logs: new LogIngest(deps),
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

function guardsDeps({ context, ring, retentionClock, peerOf }: AppParts, limiter: RateLimiter): AppDeps['guards'] {
  const { config, sql, clock, log, dataDir } = context
  const { instanceId } = dataDir
  return {
    ring,
    limiter,
    reader: bodyReader(config),
    idempotency: createIdempotency({ sql, clock, expiryClock: retentionClock, log, instanceId }),
    operatorToken: config.operatorToken,
    operatorAttempts: new FailureLimit({
      what: 'wrong operator tokens',
      perMinute: config.guessing.operatorTokensPerMinute,
      totalPerMinute: config.guessing.operatorTokensPerMinute * OPERATOR_ADDRESSES,
    }),
    addressOf: (request) =>
      clientAddress(peerOf(request) ?? '', request.headers.get('x-forwarded-for'), config.trustedProxies),
    feedOrigins: config.feedOrigins,
  }
}

function opsDeps(parts: AppParts): AppDeps['ops'] {
  const { context, journal, watermarks, sink, statistics, relay, hub, isStopping } = parts
  const { config, sql, columnar, loops, metrics } = context
  return {
    config,
    version: packageJson.version,
    metrics: metrics.registry,
    health: {
      dependencies: [
        { name: 'postgres', essential: true, check: () => sql`select 1` },
        { name: 'journal', essential: true, check: () => journal.check() },
        ...columnarHealth({ client: columnar, journal, sink }),
      ],
      consumers: [
        { name: 'clickhouse', lag: () => journal.endSeq - sink.loadedSeq() },
        { name: 'run_statistics', lag: () => statistics.lag() },
        { name: 'outbox', lag: () => relay.lag() },
        { name: 'live_feeds', lag: () => hub.lag() },
      ],
      journal,
      setBack: () => watermarks.incidents,
      loops,
      isStopping,
    },
  }
}

function liveDeps(parts: AppParts, limiter: RateLimiter): Omit<AppDeps['live'], 'runs'> {
  const { context, journal, relay, hub, connections, retentionWatermarks } = parts
  const { slowConsumerMs, heartbeatMs } = context.config.feeds
  return {
    hub,
    journal,
    connections,
    retentionWatermarkOf: (workspaceId) => retentionWatermarks.known(workspaceId),
    flushChanges: () => relay.flush(),
    takeBudget: (caller) => limiter.take(caller.keyId, 'reads', 1),
    slowConsumerMs,
    heartbeatMs,
  }
}
