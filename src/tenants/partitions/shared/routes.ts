import { Elysia, NotFoundError, t } from 'elysia'
import { Count, Described, Named, Nullable, Timestamp, Uuid } from '../../../base/http/schema.ts'
import type { Forwarder } from '../../keys/forward.ts'
import type { Guards } from '../../keys/guards.ts'
import { SECURITY } from '../../keys/security.ts'
import type { OwnedPartition } from '../partition.ts'
import type { Ownership } from './ownership.ts'
import { PROOF_PATH } from './peers.ts'
import type { NodeRow, SharedTables } from './tables.ts'

/** Answer of `GET /api/v1/cluster`. */
export const Cluster = Named(
  'Cluster',
  t.Object({
    nodes: t.Array(
      t.Object({
        instance_id: Described(Uuid, 'The process.'),
        url: t.String({ description: 'Where other nodes reach it.' }),
        version: t.String({ description: 'The version that it runs.' }),
        started_at: Described(Timestamp, 'When it joined.'),
        alive: t.Boolean({ description: 'Whether it takes part. Others take over the partitions of a dead node.' }),
        is_this: t.Boolean({ description: 'Whether it is the node that answers.' }),
      }),
      { description: 'The nodes, oldest first. An embedded service is the only one.' },
    ),
    partitions: t.Array(
      t.Object({
        partition: Count('The number of the partition.'),
        owner: Described(Nullable(Uuid), 'The instance that writes it; null while no process does.'),
        generation: Count('How often it was claimed.'),
        epoch: t.String({ description: 'Identifies its sequence of positions.' }),
        end_seq: Count('Its last position, as its owner has last reported it.'),
        loaded_seq: Count('ClickHouse has everything up to this position.'),
        lag: Count('Rows that ClickHouse lacks.'),
      }),
      { description: 'The partitions of the journal.' },
    ),
  }),
)
export type Cluster = typeof Cluster.static

interface ClusterRoutesDeps {
  readonly guards: Guards
  /** Describes the nodes and partitions. */
  readonly cluster: () => Promise<Cluster>
}

/** `GET /api/v1/cluster`: the nodes and partitions, for the operator. */
export function clusterRoutes({ guards, cluster }: ClusterRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/cluster', detail: { security: SECURITY.operator } })
    .use(guards.operator)
    .get('', () => cluster(), {
      response: Cluster,
      detail: {
        tags: ['Operation'],
        operationId: 'getCluster',
        summary: 'Read the state of the cluster',
        description:
          'The nodes, and the partitions of the journal with their owners and lags (docs/architecture.md#several-nodes).',
      },
    })
}

const CHALLENGE = /^[0-9a-f-]{36}$/

/** Proves this node's identity to other nodes. A request without a valid challenge gets the usual 404. */
export function proofRoute(forwarder: Pick<Forwarder, 'prove'>) {
  return new Elysia({ detail: { hide: true } }).get(PROOF_PATH, ({ request }) => {
    const challenge = new URL(request.url).searchParams.get('challenge') ?? ''
    const proof = CHALLENGE.test(challenge) ? forwarder.prove(challenge) : null
    if (proof === null) throw new NotFoundError()
    return new Response(proof)
  })
}

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
