import packageJson from '../../package.json' with { type: 'json' }
import { RunDirectory } from '../activity/runs/directory.ts'
import { FailureLimit } from '../base/http/rate-limit.ts'
import { mint } from '../base/ids.ts'
import { Connections } from '../feeds/live/connections.ts'
import { sweepFeedTokens } from '../feeds/live/feed-tokens.ts'
import { sweepIdempotencyKeys } from '../stores/idempotency/store.ts'
import { KeyRing } from '../tenants/keys/key-ring.ts'
import { sweepSignIns } from '../tenants/people/store.ts'
import { bootstrapWorkspace } from '../tenants/workspaces/bootstrap.ts'
import { type App, createApp } from './app.ts'
import { startControl } from './backup/control.ts'
import { takeSnapshot } from './backup/snapshot.ts'
import { createEdge } from './edge.ts'
import { startFeatures } from './features.ts'
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
  const { partitions, feeds } = pipeline
  const directory = new RunDirectory(sql)
  const { retentionClock, erasure } = await startMaintenance(context, pipeline, ring, directory)
  directory.onRunStarted = (caller, run) => {
    const { owned } = partitions.of(caller)
    owned?.ids.runStarted(run)
    owned?.scoreIds.runStarted(run)
  }
  const limits = withinOpenFiles(config.feeds, readOpenFilesLimit(), log)
  const connections = new Connections({ ring, limits, log, loops })
  metrics.observe({ partitions, feeds, loops, connections })

  let app: App | undefined
  const peerOf = (request: Request) => app?.server?.requestIP(request)?.address
  const edge = createEdge(context, { ring, pipeline, retentionClock, peerOf })
  const features = startFeatures(context, options, { ...edge, pipeline, directory, connections, erasure })
  const { routes, deliveries, hosted } = features
  let isStopping = false
  app = createApp(context, { routes, pipeline, deliveries, isStopping: () => isStopping })
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

/** Starts the loops that delete expired keys, tokens and events, and erase runs and workspaces. */
async function startMaintenance(context: ServiceContext, pipeline: Pipeline, ring: KeyRing, directory: RunDirectory) {
  const { config, sql, columnar, clock, log, loops, metrics, dataDir, teardown } = context
  const { partitions, retentionFloors } = pipeline
  const { instanceId } = dataDir
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
  return { retentionClock, erasure }
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
