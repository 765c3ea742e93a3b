import packageJson from '../../../package.json' with { type: 'json' }
import { singleConnection } from '../../stores/postgres/connect.ts'
import { SharedFeeds, type SharedReader } from '../../tenants/partitions/shared/feeds.ts'
import { createForwarder } from '../../tenants/partitions/shared/forwarder.ts'
import { Ownership, type OwnershipTimes } from '../../tenants/partitions/shared/ownership.ts'
import { SharedPartitions } from '../../tenants/partitions/shared/partitions.ts'
import { Peers } from '../../tenants/partitions/shared/peers.ts'
import { describeCluster } from '../../tenants/partitions/shared/routes.ts'
import { outboxSignal, type SignalBus } from '../../tenants/partitions/shared/signals.ts'
import { NodeSignature } from '../../tenants/partitions/shared/signature.ts'
import { NodeStore, PartitionStore, type SharedTables } from '../../tenants/partitions/shared/tables.ts'
import { RetentionFloors } from '../retention/retention-floors.ts'
import { openFeedSource, openPartition, startUsage } from './consumers.ts'
import type { ServiceContext } from './context.ts'
import type { Pipeline, PipelineContext } from './pipeline.ts'
import type { Topology } from './topology.ts'

/** The minimum for the bytes that a partition's log may hold before it refuses appends. */
const PARTITION_BYTES_MIN = 64 << 20
const END_TIMEOUT_SECONDS = 1

/** A topology whose logs several processes share. */
interface SharedTopology extends Topology {
  readonly isShared: true
  readonly tables: SharedTables
  readonly bus: SignalBus
  /** Signs what the processes send each other. */
  readonly secret: string
  /** The URL at which other processes reach this one, given the URL at which it listens. */
  readonly urlOf: (listeningAt: string) => string
  /** @param onEpoch to be called when the log has begun a new epoch */
  readonly openReader: (partition: number, onEpoch: () => void) => Promise<SharedReader>
  /** Whether the logs can be reached at the moment. */
  readonly isConnected: () => boolean
  readonly times?: Partial<OwnershipTimes>
  /** See {@link Pipeline}. */
  readonly incidents: Pipeline['incidents']
  readonly outdated: Promise<void>
}

/** Starts the pipeline of one of several processes, which owns a share of the journal's partitions. */
export async function startSharedPipeline(context: PipelineContext, topology: SharedTopology): Promise<Pipeline> {
  const { sql, log, loops, teardown, dataDir } = context
  const { tables, count, bus, secret, isConnected, times = {} } = topology
  const { instanceId, previousInstanceId } = dataDir
  if (previousInstanceId !== undefined) await tables.nodes.remove(previousInstanceId)
  const feeds = new SharedFeeds({
    openReader: topology.openReader,
    async openSource(reader, life) {
      const retentionFloors = new RetentionFloors(sql, reader.epoch)
      await retentionFloors.load()
      return openFeedSource(context, reader, retentionFloors, life)
    },
    log,
    loops,
  })
  teardown.add('live feeds', () => feeds.stop())
  const onChange = outboxSignal(bus)
  const onUsage = startUsage(context, onChange)
  const node = { instanceId, url: '', version: packageJson.version }
  const ownership = new Ownership({
    tables,
    node,
    open(claimed, onLost) {
      // The feeds of this process may have read past the end that the last owner stored. Those positions must not be assigned to other rows.
      const endSeq = Math.max(claimed.endSeq, feeds.seenSeq(claimed.partition, claimed.epoch))
      return openPartition(context, topology, { ...claimed, endSeq }, onLost, onUsage)
    },
    isConnected,
    onReleased: () => bus.publish('cluster'),
    log,
    loops,
    times,
  })
  const partitions = new SharedPartitions({ count, sql, rows: tables.partitions, ownership, feeds, isConnected })
  await ownership.refresh()
  bus.listen((signal) => {
    if (signal === 'cluster') ownership.wake()
    else for (const { relay } of ownership.all()) relay.wake()
  })
  const signature = new NodeSignature(secret, instanceId)
  const peers = new Peers(signature, ownership, log)
  return {
    partitions,
    feeds,
    peers,
    forwarder: createForwarder({ partitions, signature, peers, ownership }),
    retentionFloors: new RetentionFloors(sql, ''),
    onChange,
    incidents: topology.incidents,
    outdated: topology.outdated,
    cluster: () => describeCluster(tables, ownership, instanceId),
    nodes: () => Math.max(1, ownership.nodes.length),
    async join(url) {
      node.url = topology.urlOf(url)
      await ownership.start()
    },
    leave: () => ownership.stop(),
  }
}

/** The tables of nodes and partitions, on a connection of their own: a busy pool must not make this process look dead. */
export function openTables({ sql, teardown }: ServiceContext): SharedTables {
  const heartbeat = singleConnection(sql)
  teardown.add('heartbeat', () => heartbeat.end({ timeout: END_TIMEOUT_SECONDS }))
  return { nodes: new NodeStore(heartbeat), partitions: new PartitionStore(heartbeat) }
}

/** The limits of one partition's log. The configured limits are those of all `count` partitions together. */
export function partitionLimits({ journalMaxBytes, journalKeepBytes }: ServiceContext['config'], count: number) {
  return {
    maxBytes: Math.max(PARTITION_BYTES_MIN, Math.floor(journalMaxBytes / count)),
    keepBytes: Math.floor(journalKeepBytes / count),
  }
}
