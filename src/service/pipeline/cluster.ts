import type { NatsConnection } from '@nats-io/transport-node'
import type { ClusterConfig } from '../../config/config.ts'
import type { Journal } from '../../journal/journal.ts'
import { newEpoch } from '../../journal/log/epochs.ts'
import { connectNats, watchConnection } from '../../journal/nats/connect.ts'
import { openNatsJournal } from '../../journal/nats/journal.ts'
import { openNatsReader } from '../../journal/nats/reader.ts'
import type { OpenPartition } from '../../partitions/shared/ownership.ts'
import { ClusterSinkPosition } from '../../partitions/shared/position.ts'
import type { Signal, SignalBus } from '../../partitions/shared/signals.ts'
import { decideClusterStart } from '../../partitions/shared/start.ts'
import type { Claim, ClusterStore, PartitionRow } from '../../partitions/shared/store.ts'
import { loadIntervalMs } from '../../sink/sink.ts'
import { highestSeq } from '../../store-marks/columnar-marks.ts'
import { noteGap } from '../../store-marks/gaps.ts'
import { LAST_LOAD_MS, type Pipeline, type PipelineContext, startConsumers } from './local.ts'
import { openClusterStore, partitionLimits, startSharedPipeline } from './shared.ts'

const SIGNAL_PREFIX = 'journal.signal.'
/** Nothing in ClickHouse says how far a partition was loaded: Postgres does. */
const NO_MARK = { journal: '00000000-0000-0000-0000-000000000000', beat: 0 }

/** Joins the cluster: the journal's partitions are replicated by NATS JetStream, and this node owns a share of them. */
export async function startClusterPipeline(context: PipelineContext, config: ClusterConfig): Promise<Pipeline> {
  const { columnar, log, progress, teardown } = context
  const nc = await progress.during('connecting to NATS', () => connectNats(config.natsUrls))
  teardown.add('NATS', () => nc.close())
  const store = openClusterStore(context)
  const count = await store.createPartitions({
    count: context.config.partitions,
    home: null,
    epochOf: newEpoch,
    highestSeq: () => highestSeq(columnar),
  })
  const parts = { context, config, count, nc, store }
  return startSharedPipeline(context, {
    store,
    count,
    bus: natsSignals(nc),
    secret: config.secret,
    isConnected: watchConnection(nc),
    urlOf: (listeningAt) => config.instanceUrl ?? listeningAt,
    open: (claimed, onLost, onUsage) => openPartition(parts, claimed, onLost, onUsage),
    async openReader(partition, onEpoch) {
      const row = (await store.partitions())[partition]
      return openNatsReader({ ...logOptions(nc, row), onEpoch, log })
    },
    incidents: () => [],
    outdated: new Promise(() => {}),
  })
}

interface Parts {
  readonly context: PipelineContext
  readonly config: ClusterConfig
  /** The number of partitions. */
  readonly count: number
  readonly nc: NatsConnection
  readonly store: ClusterStore
}

/** Opens the log of a partition that this node has claimed, and starts its consumers. */
async function openPartition(
  { context, config, count, nc, store }: Parts,
  claimed: PartitionRow,
  onLost: (reason: string) => void,
  onUsage: () => void,
): Promise<OpenPartition> {
  const { sql, columnar, clock, log, metrics } = context
  const { partition: id, generation, owner } = claimed
  const claim: Claim = { partition: id, generation, owner: owner! }
  const gaps = [...claimed.gaps]
  const journal: Journal = await openNatsJournal({
    ...logOptions(nc, claimed),
    replicas: config.natsReplicas,
    generation,
    ...partitionLimits(context.config, count),
    decideStart: (found) => decideClusterStart(found, claimed, store),
    async beginEpoch(firstSeq) {
      const epoch = { epoch: newEpoch(), firstSeq }
      await store.beginEpoch(claim, [...claimed.epochs, epoch])
      return epoch
    },
    onGap(gap) {
      gaps.push(gap)
      const { afterSeq, throughSeq } = gap
      const lost = { epoch: claimed.epoch, afterSeq: Math.max(afterSeq, gap.loadedSeq), throughSeq, reason: 'journal' }
      const noted = Promise.all([store.setGaps(claim, gaps), noteGap({ sql, columnar, now: clock.now() }, lost)])
      noted.catch((error) => log.error('cluster: cannot store a gap', { partition: id, error }))
    },
    onLost,
    clock,
    log,
    onCommit: metrics.journalCommitted,
  })
  try {
    const position = new ClusterSinkPosition(store, claim, claimed.position)
    const columnarMark = () => NO_MARK
    const consumers = await startConsumers(context, {
      id,
      generation,
      journal,
      position,
      columnarMark,
      onUsage,
      isOneOfMany: true,
      loadIntervalMs: loadIntervalMs(count),
    })
    return {
      ...consumers,
      async stop(isLost) {
        await consumers.stop(isLost ? 0 : LAST_LOAD_MS)
        await journal.close()
      },
    }
  } catch (error) {
    await journal.close()
    throw error
  }
}

function logOptions(nc: NatsConnection, { partition, sealKey, epochs, gaps }: PartitionRow) {
  return { nc, stream: `journal_${partition}`, subject: `journal.${partition}`, sealKey, epochs, gaps }
}

/** Signals over NATS's own messages, which are not stored. */
function natsSignals(nc: NatsConnection): SignalBus {
  return {
    publish(signal) {
      if (nc.isClosed()) return
      nc.publish(SIGNAL_PREFIX + signal)
    },
    listen(listener) {
      nc.subscribe(`${SIGNAL_PREFIX}*`, {
        callback: (error, { subject }) => {
          if (error === null) listener(subject.slice(SIGNAL_PREFIX.length) as Signal)
        },
      })
    },
  }
}
