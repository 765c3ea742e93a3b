import packageJson from '../../../package.json' with { type: 'json' }
import { Addresses } from '../../partitions/shared/addresses.ts'
import { describeCluster } from '../../partitions/shared/describe.ts'
import { ClusterFeeds, type ClusterReader } from '../../partitions/shared/feeds.ts'
import { createForwarder } from '../../partitions/shared/forwarder.ts'
import { type OpenPartition, Ownership, type OwnershipTimes } from '../../partitions/shared/ownership.ts'
import { ClusterPartitions } from '../../partitions/shared/partitions.ts'
import { createPeers } from '../../partitions/shared/peers.ts'
import { type SignalBus, Signals } from '../../partitions/shared/signals.ts'
import { ClusterSignature } from '../../partitions/shared/signature.ts'
import { ClusterStore, type PartitionRow } from '../../partitions/shared/store.ts'
import { singleConnection } from '../../postgres/connect.ts'
import { RetentionFloors } from '../../retention/retention-floors.ts'
import { openFeedSource, type Pipeline, type PipelineContext, type ServiceContext, startUsage } from './local.ts'

/** The least that a partition's log may hold before appends are refused. */
const PARTITION_BYTES_MIN = 64 << 20
const END_TIMEOUT_SECONDS = 1

/** Logs that several processes share. */
export interface SharedLogs {
  readonly store: ClusterStore
  /** The number of partitions. */
  readonly count: number
  readonly bus: SignalBus
  /** Signs what the processes send each other. */
  readonly secret: string
  /** Where other processes reach this one, given where it listens. */
  readonly urlOf: (listeningAt: string) => string
  /** @param onUsage to be called after each commit of run statistics with usage */
  readonly open: (
    claimed: PartitionRow,
    onLost: (reason: string) => void,
    onUsage: () => void,
  ) => Promise<OpenPartition>
  /** @param onEpoch to be called when the log has begun a new epoch */
  readonly openReader: (partition: number, onEpoch: () => void) => Promise<ClusterReader>
  /** Whether the logs can be reached at the moment. */
  readonly isConnected: () => boolean
  readonly times?: Partial<OwnershipTimes>
  /** See {@link Pipeline}. */
  readonly incidents: Pipeline['incidents']
  readonly outdated: Promise<void>
}

/** Takes part in the work of several processes: this one owns a share of the journal's partitions. */
export async function startSharedPipeline(context: PipelineContext, logs: SharedLogs): Promise<Pipeline> {
  const { sql, log, loops, teardown, dataDir } = context
  const { store, count, bus, secret, isConnected, times = {} } = logs
  const { instanceId, previousInstanceId } = dataDir
  if (previousInstanceId !== undefined) await store.removeNode(previousInstanceId)
  const signals = new Signals(bus)
  const feeds = createFeeds(context, logs)
  teardown.add('live feeds', () => feeds.stop())
  const onUsage = startUsage(context, () => signals.outboxChanged())
  const node = { instanceId, url: '', version: packageJson.version }
  const ownership = new Ownership({
    store,
    node,
    open(claimed, onLost) {
      // This node's feeds may have read past the end that the last owner stored. Their positions must not get other rows.
      const endSeq = Math.max(claimed.endSeq, feeds.seenSeq(claimed.partition, claimed.epoch))
      return logs.open({ ...claimed, endSeq }, onLost, onUsage)
    },
    isConnected,
    onReleased: () => signals.partitionReleased(),
    log,
    loops,
    times,
  })
  const partitions = new ClusterPartitions({ count, store, ownership, feeds, isConnected })
  await ownership.refresh()
  bus.listen((signal) => {
    if (signal === 'cluster') ownership.wake()
    else for (const { relay } of ownership.all()) relay.wake()
  })
  const signature = new ClusterSignature(secret, instanceId)
  const addresses = new Addresses({ signature, urlOf: (instance) => ownership.urlOf(instance), log })
  return {
    partitions,
    peers: createPeers({ signature, addresses }),
    forwarder: createForwarder({
      partitions,
      signature,
      addresses,
      ownerOf: (partition) => ownership.ownerOf(partition),
      refresh: () => ownership.refresh(),
    }),
    retentionFloors: new RetentionFloors(sql, ''),
    onChange: () => signals.outboxChanged(),
    incidents: logs.incidents,
    outdated: logs.outdated,
    cluster: () => describeCluster(store, ownership, instanceId),
    nodes: () => Math.max(1, ownership.nodes.length),
    async join(url) {
      node.url = logs.urlOf(url)
      await ownership.start()
    },
    leave: () => ownership.stop(),
  }
}

/** The tables of nodes and partitions, on a connection of their own: a busy pool must not make this process look dead. */
export function openClusterStore({ sql, teardown }: ServiceContext): ClusterStore {
  const heartbeat = singleConnection(sql)
  teardown.add('heartbeat', () => heartbeat.end({ timeout: END_TIMEOUT_SECONDS }))
  return new ClusterStore(heartbeat)
}

/** The limits of one partition's log. The configured limits are those of all `count` partitions together. */
export function partitionLimits({ journalMaxBytes, journalKeepBytes }: ServiceContext['config'], count: number) {
  return {
    maxBytes: Math.max(PARTITION_BYTES_MIN, Math.floor(journalMaxBytes / count)),
    keepBytes: Math.floor(journalKeepBytes / count),
  }
}

function createFeeds(context: PipelineContext, { openReader }: SharedLogs): ClusterFeeds {
  const { sql, log, loops } = context
  return new ClusterFeeds({
    openReader,
    async openSource(reader, life) {
      const retentionFloors = new RetentionFloors(sql, reader.epoch)
      await retentionFloors.load()
      return openFeedSource(context, reader, retentionFloors, life)
    },
    log,
    loops,
  })
}
