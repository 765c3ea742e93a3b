import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import packageJson from '../package.json' with { type: 'json' }
import { AgentStore } from './agents/store.ts'
import { createAnalytics } from './analytics/analytics.ts'
import { Penalties } from './analytics/caps.ts'
import { columnarHealth } from './analytics/health.ts'
import { SavedQueries } from './analytics/saved-store.ts'
import { type App, createApp } from './app.ts'
import { startControl } from './backup/control.ts'
import { sweepSnapshots, takeSnapshot } from './backup/snapshot.ts'
import { type Clock, systemClock } from './clock.ts'
import { startSink } from './columnar/sink.ts'
import type { Config } from './config.ts'
import { createEgress } from './egress/egress.ts'
import { EventIdIndex } from './events/id-index.ts'
import { createEventIdSource } from './events/id-source.ts'
import { createEventIngest } from './events/ingest.ts'
import { startHosted } from './hosted/hosted.ts'
import { bodyReader } from './http/body.ts'
import { clientAddress } from './http/client-address.ts'
import { FailureLimit } from './http/failure-limit.ts'
import { createIdempotency, sweepIdempotencyKeys } from './http/idempotency.ts'
import { RateLimiter } from './http/rate-limit.ts'
import { mint } from './ids.ts'
import { openLocalJournal } from './journal/local/journal.ts'
import { startOutboxRelay } from './journal/outbox-relay.ts'
import { decideStart } from './journal/start.ts'
import { KeyRing } from './keys/key-ring.ts'
import { KeyStore } from './keys/store.ts'
import { Connections } from './live/connections.ts'
import { FeedTokens, sweepFeedTokens } from './live/feed-tokens.ts'
import { withGaps } from './live/gaps.ts'
import { createHistory } from './live/history.ts'
import { Hub } from './live/hub.ts'
import type { Log } from './log.ts'
import { createOpenAiModel } from './model/openai.ts'
import { openDataDir } from './ops/data-dir.ts'
import { checkPort, listen } from './ops/listen.ts'
import { watchLoopLag } from './ops/loop-lag.ts'
import { readOpenFilesLimit, withinOpenFiles } from './ops/open-files.ts'
import type { Progress } from './ops/progress.ts'
import { createServiceMetrics } from './ops/service-metrics.ts'
import { Loops } from './ops/supervise.ts'
import { Teardown } from './ops/teardown.ts'
import { unavailableOf } from './postgres/connect.ts'
import { startErasure } from './retention/erasure.ts'
import { startRetention } from './retention/retention.ts'
import { RetentionClock } from './retention/retention-clock.ts'
import { RetentionWatermarks, withinRetention } from './retention/retention-watermarks.ts'
import { createRunDirectory } from './runs/directory.ts'
import { createEventReader } from './runs/events.ts'
import { startStaleRuns } from './runs/stale.ts'
import { startRunStatistics } from './runs/statistics.ts'
import { createRunStore } from './runs/store.ts'
import { SecretStore } from './secrets/store.ts'
import { createVault } from './secrets/vault.ts'
import { startStores } from './stores.ts'
import { createTaskStore } from './tasks/store.ts'
import { clearRows } from './watermarks/columnar-marks.ts'
import { Watermarks } from './watermarks/watermarks.ts'
import { bootstrapWorkspace } from './workspaces/bootstrap.ts'
import { WorkspaceStore } from './workspaces/store.ts'

/** A running service. */
export interface Service {
  /** The URL for clients on this machine. */
  readonly url: string
  /** Whether this start created the first workspace. */
  readonly isFirstStart: boolean
  /** The first workspace's key, to be shown once; null on later starts and when the operator provided the key. */
  readonly freshKey: string | null
  /** `BOOTSTRAP_WORKSPACE_KEY` is not valid for any workspace, and none was created for it. */
  readonly isKeyIgnored: boolean
  /**
   * Resolves when Postgres has gone back to an earlier state. This service has cached a later state, so it must be
   * restarted.
   */
  readonly outdated: Promise<void>
  /** Finishes accepted requests, flushes pending writes, and stops all child processes. Safe to call twice. */
  stop(): Promise<void>
}

export interface ServiceOptions {
  readonly log: Log
  readonly progress: Progress
  readonly clock?: Clock
  /** See {@link Watermarks}. */
  readonly watermarkIntervalMs?: number
}

/** The total limit of guesses of the operator token, as a multiple of the limit per address. */
const OPERATOR_ADDRESSES = 10
const SWEEP_INTERVAL_MS = 600_000
/** How long a stop waits for the last rows to be loaded; the rest is loaded after the next start. */
const LAST_LOAD_MS = 1_500

/**
 * Starts all parts in the order of their dependencies; {@link Service.stop} stops them in reverse order. A start that
 * fails leaves nothing running.
 *
 * @throws StartError for problems that the operator can fix
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  const teardown = new Teardown(options.log)
  try {
    return await start(config, options, teardown)
  } catch (error) {
    await teardown.run()
    throw error
  }
}

async function start(config: Config, options: ServiceOptions, teardown: Teardown): Promise<Service> {
  const { log, progress, clock = systemClock } = options
  const { limits } = config
  const metrics = createServiceMetrics()
  const loops = new Loops(log)
  teardown.add('loop lag', watchLoopLag(metrics.loopLagged))
  const dataDir = openDataDir(config.dataDir)
  teardown.add('data directory', dataDir.release)
  await checkPort(config)

  const { instanceId } = dataDir
  const penalties = new Penalties(config.queries.penaltySeconds, clock)
  const onStuckQuery = (workspaceId: string) => {
    penalties.add(workspaceId)
    log.error('a query could not be cancelled; ClickHouse was restarted', { workspace_id: workspaceId })
  }
  const deps = { log, progress, metrics: metrics.registry, teardown, onStuckQuery }
  await sweepSnapshots(config.dataDir)
  const { sql, heartbeat, columnar, postgresUrl } = await startStores(config, deps)
  const first = await bootstrapWorkspace({ sql, clock, mint, key: config.bootstrapWorkspaceKey })
  if (first.keyIgnored)
    log.warn('BOOTSTRAP_WORKSPACE_KEY is ignored: a workspace already exists, and this key is not valid for it')

  const ring = new KeyRing({
    sql,
    heartbeat,
    clock,
    log,
    instanceId,
    exclusive: config.databaseUrl === undefined,
    supersedes: dataDir.previousInstanceId,
    unknownKeys: new FailureLimit({ what: 'unknown keys', perMinute: config.guessing.unknownKeysPerMinute }),
    loops,
  })
  await ring.start()
  await ring.noteIssued()
  teardown.add('keys', () => ring.stop())

  const journalDir = join(config.dataDir, 'journal')
  await mkdir(journalDir, { recursive: true, mode: 0o700 })
  const watermarks = await Watermarks.open({
    sql,
    columnar,
    dataDir: config.dataDir,
    journalDir,
    intervalMs: options.watermarkIntervalMs,
    clock,
    log,
    loops,
    onSetBack: metrics.storeSetBack,
  })
  const journal = await progress.during('opening the journal', () =>
    openLocalJournal({
      dir: journalDir,
      maxBytes: config.journalMaxBytes,
      keepBytes: config.journalKeepBytes,
      decideStart: (found) => decideStart(found, { dir: journalDir, sql, columnar, watermarks }),
      clock,
      log,
      onCommit: metrics.journalCommitted,
    }),
  )
  teardown.add('journal', () => journal.close())

  const sink = await startSink({
    journal,
    client: columnar,
    clear: (afterSeq, throughSeq, signal) => clearRows(columnar, journal, { afterSeq, throughSeq }, signal),
    dir: journalDir,
    log,
    loops,
    onLoaded: metrics.sinkLoaded,
  })
  teardown.add('sink', () => sink.stop(LAST_LOAD_MS))
  const statistics = await startRunStatistics({ sql, journal, log, loops })
  teardown.add('run statistics', () => statistics.stop())
  const relay = startOutboxRelay({ sql, journal, log, loops })
  teardown.add('outbox relay', () => relay.stop())
  const onChange = () => relay.poke()
  const stale = startStaleRuns({ sql, statistics, clock, log, loops, onChange })
  teardown.add('stale runs', () => stale.stop())
  const retentionClock = await RetentionClock.open({ sql, clock, log, metrics: metrics.registry })
  const sweep = () => sweepIdempotencyKeys(sql, retentionClock).then(() => sweepFeedTokens(sql, clock))
  const endSweep = loops.repeat('sweep of idempotency keys and feed tokens', SWEEP_INTERVAL_MS, sweep)
  teardown.add('sweep of idempotency keys and feed tokens', endSweep)

  const erasure = startErasure({ sql, ring, journal, relay, sink, statistics, columnar, instanceId, clock, log, loops })
  teardown.add('erasing', () => erasure.stop())

  const directory = createRunDirectory({ sql })
  const ids = new EventIdIndex(createEventIdSource({ journal, progress: sink, client: columnar, watermarks }))
  directory.onRunStarted((run) => ids.runStarted(run))
  const limiter = new RateLimiter(config.rateLimits, { clock })
  const retentionWatermarks = new RetentionWatermarks(sql, journal.epoch)
  await retentionWatermarks.load()
  const outdated = Promise.withResolvers<void>()
  await watermarks.start({
    journal,
    sink,
    retentionWatermarks,
    forgetColumnar: () => ids.forgetFetched(),
    onPostgresBack: outdated.resolve,
  })
  teardown.add('watermarks', () => watermarks.stop())
  const stored = createHistory({ columnar, epoch: journal.epoch })
  const history = withinRetention(withGaps(stored, journal), retentionWatermarks)
  const hub = new Hub({ journal, history, log, loops, filtersPerWorkspace: config.feeds.filtersPerWorkspace })
  teardown.add('live feeds', () => hub.stop())
  const feedLimits = withinOpenFiles(config.feeds, readOpenFilesLimit(), log)
  const connections = new Connections({ ring, limits: feedLimits, log, loops })
  const days = config.eventRetentionDays
  const endRetention = startRetention({
    sql,
    columnar,
    journal,
    sink,
    retentionWatermarks,
    days,
    clock: retentionClock,
    log,
    loops,
    metrics: metrics.registry,
  })
  teardown.add('retention', endRetention)
  metrics.observe({ journal, loops, sink, statistics, hub, connections })

  const vault = createVault({ key: config.hosted.secretsKey, dataDir: config.dataDir })
  const secrets = new SecretStore({ sql, clock, vault })
  const { openAiApiKey: apiKey, openAiBaseUrl: baseUrl, egressAllow: allow } = config.hosted
  const hosted = startHosted({
    sql,
    clock,
    log,
    limits,
    config: config.hosted,
    instanceId,
    ring,
    connections,
    slowConsumerMs: config.feeds.slowConsumerMs,
    heartbeatMs: config.feeds.heartbeatMs,
    model: createOpenAiModel({ apiKey, baseUrl, log }),
    egress: createEgress({ allow }),
    secrets,
    onChange,
    loops,
  })
  teardown.add('hosted runs', () => hosted.stop())

  const runs = createRunStore({ sql, clock, limits, directory, onChange, cancelHosted: hosted.invocations.cancel })
  const analytics = createAnalytics({ client: columnar, sink, caps: config.queries, penalties })

  let isStopping = false
  const app: App = createApp({
    envelope: {
      log,
      limits,
      logRequests: config.logLevel === 'debug',
      observeRequest: metrics.requestAnswered,
      unavailableOf,
    },
    guards: {
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
        clientAddress(
          app.server?.requestIP(request)?.address ?? '',
          request.headers.get('x-forwarded-for'),
          config.trustedProxies,
        ),
      feedOrigins: config.feedOrigins,
    },
    ops: {
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
        isStopping: () => isStopping,
      },
    },
    workspaces: new WorkspaceStore({ sql, ring, clock }),
    erasure,
    keys: new KeyStore({ sql, ring, clock }),
    feedTokens: new FeedTokens({ sql, clock, directory, ring }),
    live: {
      hub,
      journal,
      connections,
      runs,
      retentionWatermarkOf: (workspaceId) => retentionWatermarks.known(workspaceId),
      flushChanges: () => relay.flush(),
      takeBudget: (caller) => limiter.take(caller.keyId, 'reads', 1),
      slowConsumerMs: config.feeds.slowConsumerMs,
      heartbeatMs: config.feeds.heartbeatMs,
    },
    agents: new AgentStore({ sql, ring, clock }),
    ingest: createEventIngest({
      runs: directory,
      journal,
      ids,
      limits,
      takeBudget: (caller, events) => limiter.take(caller.keyId, 'events', events),
      onAccepted: metrics.eventsTaken,
    }),
    hosted,
    secrets,
    runs,
    events: createEventReader({ columnar, sink, journal }),
    analytics,
    savedQueries: new SavedQueries({ sql, clock, analytics }),
    tasks: createTaskStore({ sql, clock, limits, directory, onChange }),
  })
  if (config.databaseUrl === undefined && config.clickhouseUrl === undefined) {
    const { version } = packageJson
    const holdSink = (signal: AbortSignal) => sink.hold(signal)
    const parts = { version, dataDir: config.dataDir, postgresUrl, columnar, journal, holdSink, log }
    teardown.add('control', startControl({ dataDir: config.dataDir, takeSnapshot: () => takeSnapshot(parts), log }))
  }
  const listener = listen(app, config)
  teardown.add('requests', () => listener.drain())
  teardown.add('callers that wait for hosted runs', () => hosted.responder.release())
  teardown.add('open feeds', async () => connections.stop())
  teardown.add('readiness', () => {
    isStopping = true
  })
  return {
    url: listener.url,
    isFirstStart: first.workspaceId !== null,
    freshKey: first.freshKey,
    isKeyIgnored: first.keyIgnored,
    outdated: outdated.promise,
    stop: () => teardown.run(),
  }
}
