import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { takeFileLock } from '../../base/data-dir.ts'
import { openLocalReader } from '../../stores/journal/local/reader.ts'
import type { SinkPosition } from '../../stores/sink/position.ts'
import { MirroredPosition } from '../../tenants/partitions/shared/positions.ts'
import type { SignalBus } from '../../tenants/partitions/shared/signals.ts'
import type { NodeStore } from '../../tenants/partitions/shared/tables.ts'
import { journalName } from '../store-marks/mark-file.ts'
import type { StoreMarks } from '../store-marks/store-marks.ts'
import { openLogFiles } from './log-files.ts'
import type { Pipeline, PipelineContext } from './pipeline.ts'
import { openTables, partitionLimits, startSharedPipeline } from './shared.ts'
import type { Topology } from './topology.ts'
import type { WorkerStart } from './worker-messages.ts'
import { WorkerMetrics } from './worker-metrics.ts'

/** What a worker gets from the supervisor, and how they communicate. */
export interface WorkerContext extends WorkerStart {
  readonly bus: SignalBus
  /** Calls `listener` with each workspace whose query forced a restart of ClickHouse. */
  readonly onStuckQuery: (listener: (workspaceId: string) => void) => void
}

const LOCK_NAME = 'lock'
/** Long, because the supervisor notices at once when a worker ends. So a worker that is only slow keeps its partitions. */
const ALIVE_MS = 15_000

/** Joins the other workers of this machine: the journal's partitions are in files of one data directory. */
export async function startWorkerPipeline(
  context: PipelineContext,
  worker: WorkerContext,
  intervalMs: number | undefined,
): Promise<Pipeline> {
  const { log, config } = context
  const { index, instanceId, partitions: count, bus, secret } = worker
  const tables = openTables(context)
  const outdated = Promise.withResolvers<void>()
  const watched = new Set<StoreMarks>()
  const limits = { ...partitionLimits(config, count), intervalMs, onPostgresBack: outdated.resolve }
  const dirOf = (partition: number) => join(config.dataDir, journalName(partition))
  const openLog: Topology['openLog'] = async (claimed, opened) => {
    const { partition } = claimed
    await lockDir(dirOf(partition), opened)
    // ClickHouse has the rows of all partitions.
    const options = { ...limits, name: journalName(partition), storedSeq: async () => claimed.endSeq }
    const files = await openLogFiles(context, options, opened)
    const { journal, storeMarks } = files
    // The files decide; the database tells the other workers.
    if (journal.epoch !== claimed.epoch) await tables.partitions.beginEpoch(claimed, journal.epochs)
    const mirror = (at: SinkPosition) => tables.partitions.setPosition(claimed, at)
    watched.add(storeMarks)
    opened.defer(() => void watched.delete(storeMarks))
    return { ...files, position: new MirroredPosition(files.position, mirror, log) }
  }
  const others = () => urlsOfOthers(tables.nodes, instanceId)
  const metrics = new WorkerMetrics({ index, own: context.metrics.registry, others })
  const pipeline = await startSharedPipeline(context, {
    count,
    isShared: true,
    tables,
    bus,
    secret,
    urlOf: (listeningAt) => listeningAt,
    openLog,
    openReader: (partition, onEpoch) => openLocalReader({ dir: dirOf(partition), onEpoch, log }),
    isConnected: () => true,
    times: { aliveMs: ALIVE_MS },
    incidents: () => [...watched].flatMap(({ incidents }) => incidents),
    outdated: outdated.promise,
  })
  return { ...pipeline, metrics, privateRoutes: metrics.routes }
}

/** Locks a partition's files, because their last writer may be slow rather than dead. @throws Error while it still holds the lock */
async function lockDir(dir: string, opened: AsyncDisposableStack): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const lock = takeFileLock(join(dir, LOCK_NAME))
  if (lock === null) throw new Error('another worker still writes this partition')
  opened.defer(() => lock.close())
}

/** The addresses of the other workers that have started. */
async function urlsOfOthers(nodes: NodeStore, instanceId: string): Promise<string[]> {
  const all = await nodes.all()
  return all.flatMap((node) => (node.instanceId !== instanceId && node.isAlive && node.url !== '' ? node.url : []))
}
