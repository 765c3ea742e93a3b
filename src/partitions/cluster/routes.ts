import { Elysia } from 'elysia'
import type { Guards } from '../../keys/guards.ts'
import { SECURITY } from '../../keys/security.ts'
import { Cluster } from './schema.ts'

export interface ClusterRoutesDeps {
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
