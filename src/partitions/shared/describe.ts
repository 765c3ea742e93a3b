import type { OwnedPartition } from '../partition.ts'
import type { NodeRow } from './nodes.ts'
import type { Ownership } from './ownership.ts'
import type { SharedTables } from './partition-rows.ts'
import type { Cluster } from './schema.ts'

/** Describes a cluster from the database, with the current positions of the partitions that this node owns. */
export async function describeCluster(
  tables: SharedTables,
  ownership: Ownership,
  instanceId: string,
): Promise<Cluster> {
  const [nodes, rows] = await Promise.all([tables.nodes.all(), tables.partitions.all()])
  return {
    nodes: nodes.map((node) => nodeOf(node, node.instanceId === instanceId)),
    partitions: rows.map(({ partition, owner, generation, epoch, endSeq, position }) => {
      const owned = ownership.get(partition)
      const positions = {
        endSeq: owned?.journal.endSeq ?? endSeq,
        loadedSeq: owned?.sink.loadedSeq() ?? position.loadedSeq,
      }
      return { partition, owner, generation, epoch, ...figuresOf(positions) }
    }),
  }
}

/** Describes an embedded service as a cluster of one node with one partition. */
export function describeSingle(node: NodeRow, { id, generation, journal, sink }: OwnedPartition): Cluster {
  const figures = figuresOf({ endSeq: journal.endSeq, loadedSeq: sink.loadedSeq() })
  const { instanceId: owner } = node
  return {
    nodes: [nodeOf(node, true)],
    partitions: [{ partition: id, owner, generation, epoch: journal.epoch, ...figures }],
  }
}

function nodeOf({ instanceId, url, version, startedAt, isAlive }: NodeRow, isThis: boolean): Cluster['nodes'][number] {
  const started_at = startedAt.toISOString()
  return { instance_id: instanceId, url, version, started_at, alive: isAlive, is_this: isThis }
}

function figuresOf({ endSeq, loadedSeq }: { readonly endSeq: number; readonly loadedSeq: number }) {
  return { end_seq: Math.max(endSeq, loadedSeq), loaded_seq: loadedSeq, lag: Math.max(0, endSeq - loadedSeq) }
}
