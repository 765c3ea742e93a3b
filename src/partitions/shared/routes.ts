import { Elysia, NotFoundError } from 'elysia'
import type { Forwarder } from '../../keys/forward.ts'
import type { Guards } from '../../keys/guards.ts'
import { SECURITY } from '../../keys/security.ts'
import { PROOF_PATH } from './addresses.ts'
import { Cluster } from './schema.ts'

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
