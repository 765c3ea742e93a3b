import { createHmac } from 'node:crypto'
import packageJson from '../../package.json' with { type: 'json' }
import { RunDirectory } from '../activity/runs/directory.ts'
import { startIndexing } from '../activity/runs/search/indexing.ts'
import { startStaleRuns } from '../activity/runs/stale.ts'
import { FailureLimit } from '../base/http/rate-limit.ts'
import { mint } from '../base/ids.ts'
import { Connections } from '../feeds/live/connections.ts'
import { sweepFeedTokens } from '../feeds/live/feed-tokens.ts'
import { startDeliveries } from '../feeds/webhooks/delivery/deliveries.ts'
import { startHosted } from '../hosted/hosted.ts'
import { createEgress, type Egress } from '../outbound/egress/egress.ts'
import { openAiOnDemand } from '../outbound/model/on-demand.ts'
import { startAlerts } from '../sql/alerts/alerts.ts'
import { AgentVersionCopies } from '../sql/analytics/agent-versions.ts'
import { Analytics } from '../sql/analytics/analytics.ts'
import { sweepIdempotencyKeys } from '../stores/idempotency/store.ts'
import { KeyRing } from '../tenants/keys/key-ring.ts'
import type { Peers } from '../tenants/partitions/shared/peers.ts'
import { sweepSignIns } from '../tenants/people/store.ts'
import { SecretStore } from '../tenants/secrets/store.ts'
import { createVault } from '../tenants/secrets/vault.ts'
import { bootstrapWorkspace } from '../tenants/workspaces/bootstrap.ts'
import { type App, createApp } from './app.ts'
import { startControl } from './backup/control.ts'
import { takeSnapshot } from './backup/snapshot.ts'
import type { Config } from './config/config.ts'
import type { Service, ServiceOptions } from './lifecycle.ts'
import { listen, listenPrivately } from './ops/listen.ts'
import { readOpenFilesLimit, withinOpenFiles } from './ops/open-files.ts'
import type { ServiceContext } from './pipeline/context.ts'
import { startLocalPipeline } from './pipeline/local.ts'
import type { Pipeline, PipelineContext } from './pipeline/pipeline.ts'
import { startErasure } from './retention/erasure.ts'
import { startRetention } from './retention/retention.ts'
import { RetentionClock } from './retention/retention-clock.ts'

const SWEEP_INTERVAL_MS = 600_000

/**
 * Starts all components on the stores of `context`, in the order of their dependencies; {@link Service.stop} stops them in
 * reverse order.
 */
export async function startComponents(context: ServiceContext, options: ServiceOptions): Promise<Service> {
  const { config, sql, clock, log, loops, metrics, teardown } = context
  const first = await bootstrapWorkspace({ sql, clock, mint, key: config.bootstrapWorkspaceKey })
  if (first.keyIgnored)
    log.warn('BOOTSTRAP_WORKSPACE_KEY is ignored: a workspace already exists, and this key is not valid for it')

  const ring = await startKeyRing(context)
  const pipeline = await startPipeline({ ...context, ring }, options)
  const { partitions, feeds, onChange } = pipeline
  const directory = new RunDirectory(sql)
  const maintenance = await startMaintenance(context, pipeline, ring, directory)
  directory.onRunStarted = (caller, run) => {
    const { owned } = partitions.of(caller)
    owned?.ids.runStarted(run)
    owned?.scoreIds.runStarted(run)
  }
  const limits = withinOpenFiles(config.feeds, readOpenFilesLimit(), log)
  const connections = new Connections({ ring, limits, log, loops })
  metrics.observe({ partitions, feeds, loops, connections })
  const vault = createVault({
    key: config.hosted.secretsKey ?? sharedSecretsKey(config.cluster),
    dataDir: config.dataDir,
  })
  const secrets = new SecretStore({ sql, clock, vault })
  const egress = createEgress({ allow: config.hosted.egressAllow })
  const hosted = startHostedRuns(context, { ring, connections, secrets, onChange, peers: pipeline.peers, egress })
  const deliveries = startDeliveries({
    ...{ sql, partitions, feeds, egress, vault, clock, log, loops, onChange },
    publicUrl: config.publicUrl,
    metrics: metrics.registry,
    setAside: metrics.setAside,
    ...(options.webhooks && { options: options.webhooks }),
  })
  teardown.add('webhooks', () => deliveries.stop())

  const { columnar, penalties } = context
  const agentVersions = new AgentVersionCopies({ sql, columnar })
  const analytics = new Analytics(columnar, partitions, config.queries, penalties, agentVersions)
  const alerts = startAlerts({ ...context, analytics, partitions, onChange, secondMs: options.alertSecondMs })
  teardown.add('alerts', () => alerts.stop())

  let isStopping = false
  const app: App = createApp({
    ...{ context, ring, pipeline, directory, connections, secrets, vault, hosted, deliveries, analytics, alerts },
    ...maintenance,
    isStopping: () => isStopping,
    peerOf: (request) => app.server?.requestIP(request)?.address,
  })
  allowBackups(context, pipeline)
  const isWorker = options.worker !== undefined
  const listener = listen(app, config, isWorker)
  teardown.add('requests', () => listener.drain())
  const forwarded = isWorker ? listenPrivately(app, config, pipeline.privateRoutes) : listener
  if (isWorker) teardown.add('requests of other workers', () => forwarded.drain())
  teardown.add('callers that wait for hosted runs', () => hosted.responder.release())
  teardown.add('outputs for other processes', async () => hosted.servedOutputs?.stop())
  teardown.add('open feeds', async () => connections.stop())
  teardown.add('partitions', async () => {
    // While what has been sent to webhooks can still be stored.
    await deliveries.stop()
    await pipeline.leave()
  })
  await pipeline.join(forwarded.url)
  teardown.add('readiness', () => {
    isStopping = true
  })
  return {
    url: listener.url,
    isFirstStart: first.workspaceId !== null,
    freshKey: first.freshKey,
    isKeyIgnored: first.keyIgnored,
    outdated: pipeline.outdated,
    stop: () => teardown.run(),
  }
}

/** Starts the pipeline. The modules of clusters and workers are imported only where needed: most services are a single process. */
async function startPipeline(
  context: PipelineContext,
  { worker, storeMarkIntervalMs }: ServiceOptions,
): Promise<Pipeline> {
  const { cluster } = context.config
  if (worker !== undefined) {
    const { startWorkerPipeline } = await import('./pipeline/workers.ts')
    return startWorkerPipeline(context, worker, storeMarkIntervalMs)
  }
  if (cluster === undefined) return startLocalPipeline(context, storeMarkIntervalMs)
  const { startClusterPipeline } = await import('./pipeline/cluster.ts')
  return startClusterPipeline(context, cluster)
}

/** Starts the cache of keys, which trusts itself only while this process holds its lease. */
async function startKeyRing(context: ServiceContext): Promise<KeyRing> {
  const { config, sql, heartbeat, clock, log, loops, dataDir, teardown } = context
  const ring = new KeyRing({
    sql,
    heartbeat,
    clock,
    log,
    instanceId: dataDir.instanceId,
    exclusive: config.databaseUrl === undefined,
    isNode: config.cluster !== undefined,
    supersedes: dataDir.previousInstanceId,
    unknownKeys: new FailureLimit({ what: 'unknown keys', perMinute: config.guessing.unknownKeysPerMinute }),
    loops,
  })
  await ring.start()
  await ring.noteIssued()
  teardown.add('keys', () => ring.stop())
  return ring
}

/** Starts the loops that end stale runs, delete expired keys, tokens and events, and erase workspaces. */
async function startMaintenance(context: ServiceContext, pipeline: Pipeline, ring: KeyRing, directory: RunDirectory) {
  const { config, sql, columnar, clock, log, loops, metrics, dataDir, teardown } = context
  const { partitions, retentionFloors, onChange } = pipeline
  const { instanceId } = dataDir
  const stale = startStaleRuns({ sql, partitions, clock, log, loops, onChange })
  teardown.add('stale runs', () => stale.stop())
  const retentionClock = await RetentionClock.open({ sql, clock, log, metrics: metrics.registry })
  const sweep = async () => {
    await sweepIdempotencyKeys(sql, retentionClock)
    await sweepFeedTokens(sql, clock)
    await sweepSignIns(sql, clock)
  }
  const endSweep = loops.repeat('sweep of idempotency keys and feed tokens', SWEEP_INTERVAL_MS, sweep)
  teardown.add('sweep of idempotency keys and feed tokens', endSweep)
  const erasure = startErasure({ sql, ring, partitions, columnar, directory, instanceId, clock, log, loops })
  teardown.add('erasure', () => erasure.stop())
  const endRetention = startRetention({
    sql,
    columnar,
    partitions,
    retentionFloors,
    days: config.eventRetentionDays,
    clock: retentionClock,
    log,
    loops,
    metrics: metrics.registry,
  })
  teardown.add('retention', endRetention)
  teardown.add('search index', startIndexing({ columnar, partitions, log, loops }))
  return { retentionClock, erasure }
}

interface HostedRunsDeps {
  readonly ring: KeyRing
  readonly connections: Connections
  readonly secrets: SecretStore
  readonly onChange: () => void
  readonly peers: Peers | undefined
  readonly egress: Egress
}

/** Starts the scheduler and executors of hosted runs. */
function startHostedRuns(
  context: ServiceContext,
  { ring, connections, secrets, onChange, peers, egress }: HostedRunsDeps,
) {
  const { config, sql, clock, log, loops, dataDir, teardown } = context
  const { openAiApiKey: apiKey, openAiBaseUrl: baseUrl } = config.hosted
  const hosted = startHosted({
    sql,
    clock,
    log,
    limits: config.limits,
    config: config.hosted,
    owner: dataDir.instanceId,
    ring,
    connections,
    slowConsumerMs: config.feeds.slowConsumerMs,
    heartbeatMs: config.feeds.heartbeatMs,
    model: openAiOnDemand({ apiKey, baseUrl, log }),
    egress,
    secrets,
    onChange,
    peers,
    loops,
  })
  teardown.add('hosted runs', () => hosted.stop())
  return hosted
}

/** The nodes of a cluster must be able to open each other's secrets. */
function sharedSecretsKey(cluster: Config['cluster']): Uint8Array | undefined {
  return cluster === undefined
    ? undefined
    : createHmac('sha256', cluster.secret).update('secrets of workspaces').digest()
}

/** Accepts requests of the backup command if both stores are embedded. */
function allowBackups(context: ServiceContext, { snapshot }: Pipeline): void {
  const { config, postgresUrl, columnar, log, teardown } = context
  if (config.databaseUrl !== undefined || config.clickhouseUrl !== undefined || snapshot === undefined) return
  const { journal, sink } = snapshot
  const { dataDir } = config
  const { version } = packageJson
  const holdSink = (signal: AbortSignal) => sink.hold(signal)
  const snapshotDeps = { version, dataDir, postgresUrl, columnar, journal, holdSink, log }
  teardown.add('control', startControl({ dataDir, takeSnapshot: () => takeSnapshot(snapshotDeps), log }))
}
