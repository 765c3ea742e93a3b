import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { takeFileLock } from '../../base/data-dir.ts'
import { openLocalReader } from '../../journal/local/reader.ts'
import { MirroredPosition } from '../../partitions/shared/mirrored-position.ts'
import type { OpenPartition } from '../../partitions/shared/ownership.ts'
import type { SignalBus } from '../../partitions/shared/signals.ts'
import type { Claim, ClusterStore, PartitionRow } from '../../partitions/shared/store.ts'
import { SinkPositionFile } from '../../sink/position.ts'
import { loadIntervalMs } from '../../sink/sink.ts'
import { journalName } from '../../store-marks/mark-file.ts'
import type { StoreMarks } from '../../store-marks/store-marks.ts'
import { WorkerMetrics } from '../workers/metrics.ts'
import {
  LAST_LOAD_MS,
  openLocalLog,
  type Pipeline,
  type PipelineContext,
  startConsumers,
  startStoreMarks,
} from './local.ts'
import { openClusterStore, partitionLimits, startSharedPipeline } from './shared.ts'

/** What the supervisor tells a worker, and how they communicate. */
export interface WorkerContext {
  /** Counted from 0. */
  readonly index: number
  readonly instanceId: string
  readonly previousInstanceId: string | undefined
  /** The number of partitions. */
  readonly partitions: number
  /** Signs what the workers send each other. */
  readonly secret: string
  readonly bus: SignalBus
  /** Calls `listener` with each workspace whose query forced a restart of ClickHouse. */
  readonly onStuckQuery: (listener: (workspaceId: string) => void) => void
}

const LOCK_NAME = 'lock'
/** Long, because the supervisor notices a dead worker at once: one that is only slow keeps its partitions. */
const ALIVE_MS = 15_000

/** Joins the other workers of this machine: the journal's partitions are in files of one data directory. */
export async function startWorkerPipeline(
  context: PipelineContext,
  worker: WorkerContext,
  intervalMs: number | undefined,
): Promise<Pipeline> {
  const { log, config } = context
  const store = openClusterStore(context)
  const outdated = Promise.withResolvers<void>()
  const opened = new Set<StoreMarks>()
  const parts = { context, worker, store, opened, onPostgresBack: outdated.resolve, intervalMs }
  const metrics = new WorkerMetrics({
    index: worker.index,
    own: context.metrics.registry,
    others: () => otherWorkers(store, worker),
  })
  const pipeline = await startSharedPipeline(context, {
    store,
    count: worker.partitions,
    bus: worker.bus,
    secret: worker.secret,
    urlOf: (listeningAt) => listeningAt,
    open: (claimed, _onLost, onUsage) => openPartition(parts, claimed, onUsage),
    openReader: (partition, onEpoch) =>
      openLocalReader({ dir: join(config.dataDir, journalName(partition)), onEpoch, log }),
    isConnected: () => true,
    times: { aliveMs: ALIVE_MS },
    incidents: () => [...opened].flatMap(({ incidents }) => incidents),
    outdated: outdated.promise,
  })
  return { ...pipeline, metrics, privateRoutes: metrics.routes }
}

/** The addresses of the other workers that have started. */
async function otherWorkers(store: ClusterStore, { instanceId }: WorkerContext): Promise<string[]> {
  const nodes = await store.nodes()
  return nodes.flatMap((node) => (node.instanceId !== instanceId && node.isAlive && node.url !== '' ? node.url : []))
}

interface Parts {
  readonly context: PipelineContext
  readonly worker: WorkerContext
  readonly store: ClusterStore
  /** The store marks of the open partitions. */
  readonly opened: Set<StoreMarks>
  readonly onPostgresBack: () => void
  readonly intervalMs: number | undefined
}

/** Locks the files of a partition that this worker has claimed, opens its log, and starts its consumers. */
async function openPartition(parts: Parts, claimed: PartitionRow, onUsage: () => void): Promise<OpenPartition> {
  const dir = join(parts.context.config.dataDir, journalName(claimed.partition))
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const lock = takeFileLock(join(dir, LOCK_NAME))
  if (lock === null) throw new Error('another worker still writes this partition')
  try {
    const open = await openLocked(parts, claimed, onUsage)
    return { ...open, stop: (isLost) => open.stop(isLost).finally(() => lock.close()) }
  } catch (error) {
    lock.close()
    throw error
  }
}

async function openLocked(parts: Parts, claimed: PartitionRow, onUsage: () => void): Promise<OpenPartition> {
  const { context, worker, store, opened, onPostgresBack, intervalMs } = parts
  const { log } = context
  const { partition: id, generation, owner } = claimed
  const claim: Claim = { partition: id, generation, owner: owner! }
  const { dir, journal, storeMarks } = await openLocalLog(context, {
    name: journalName(id),
    ...partitionLimits(context.config, worker.partitions),
    // ClickHouse has the rows of all partitions.
    storedSeq: async () => claimed.endSeq,
    intervalMs,
  })
  try {
    // The files decide; the database tells the other workers.
    if (journal.epoch !== claimed.epoch) await store.beginEpoch(claim, journal.epochs)
    const file = await SinkPositionFile.open(dir)
    const position = new MirroredPosition(file, (at) => store.setPosition(claim, at), log)
    const columnarMark = () => storeMarks.columnarMark()
    const owned = await startConsumers(context, {
      ...{ id, generation, journal, position, columnarMark, onUsage },
      isOneOfMany: true,
      loadIntervalMs: loadIntervalMs(worker.partitions),
    })
    const stop = async (isLost: boolean) => {
      opened.delete(storeMarks)
      await storeMarks.stop()
      await owned.stop(isLost ? 0 : LAST_LOAD_MS)
      await journal.close()
    }
    try {
      await startStoreMarks(context, { journal, storeMarks, owned }, onPostgresBack)
    } catch (error) {
      await stop(true)
      throw error
    }
    opened.add(storeMarks)
    return { ...owned, stop }
  } catch (error) {
    await journal.close()
    throw error
  }
}
